/* Statistics that a recorded forward pass saves for the gradients, and when these may use them: the bits must be those
 * of statistics computed anew, as everybody else computes them.
 *
 * RMS norm has one number for each row, an f64: it is always of use. Layer norm has three: r multiplies x - c - t
 * (docs/arithmetic.md, section 4). Saved are mean = c + t and r. On path A, and of sums in runs in the fast arithmetic
 * (section 22), t is +0.0: these are c and r themselves. Rows of path B have to be told by the two numbers.
 *
 * Of more than 16 finite elements that take path B, with m, q, v and E as there, u = 2^-53:
 *   - v*64 < m*m, so q <= m*m*(1 + 1/64)*(1 + 2u) and M|x| <= 1.01*|m|; m is not 0.
 *   - c is m, and |t| <= 3*E*u*M|x| < 2^-43*|m|: mean is within 2^-42 of m, and not 0.
 *   - Path B's variance w and path A's v are the variance but for errors below 4*E*u*q < 2^-43*m*m:
 *     w < m*m/64 + 2^-42*m*m < mean*mean/63.
 *   - If r is not 0 then 1/(r*r) <= (w + eps)*(1 + 8u) <= (mean*mean/63 + eps)*(1 + 8u), and so
 *     (mean*mean/60 + eps*(1 + 2^-40))*r*r > 1, also after the five roundings of that. (Where eps is so small that
 *     2^-40 of it is lost, it is below 2^-1000, and nothing beside mean*mean, of f32 numbers above 2^-420.)
 * So a row is not of path B if mean is 0, or if r is above 0 and that number at most 1. A NaN fails. */
#include "core.h"

/* From where on they are worth a tensor more. Short rows take path B. (Nothing but types and shapes decides, or the
 * second pass of a checkpoint might save another number of tensors than the first.) */
enum { WORTH_FROM = 24576, SHORT = 16 };

int64_t statistics_to_save(const lnorm_op *op, const lnorm_tensor *x, int64_t elements) {
    int64_t cols = 1;
    if ((op->kind != LNORM_LAYER_NORM && op->kind != LNORM_RMS_NORM) || x->dtype.bits == 64 || elements < WORTH_FROM)
        return 0;
    for (int32_t i = 1; i <= op->normalized_ndim; i++)
        cols *= x->shape[x->ndim - i];
    if (cols <= SHORT)
        return 0;
    return elements / cols * (op->kind == LNORM_LAYER_NORM ? 2 : 1);
}

static int row_is_exact(double mean, double rstd, double eps) {
    const double bound = mean * mean * (1.0 / 60) + eps * (1 + 0x1p-40);
    return mean == 0 || (rstd > 0 && bound * rstd * rstd <= 1);
}

int statistics_are_exact(const double *rstd, const double *mean, int64_t rows, double eps) {
    int exact = 1;
    for (int64_t i = 0; i < rows && mean; i++)
        exact &= row_is_exact(mean[i], rstd[i], eps);
    return exact;
}
