/* lnorm: layer normalisation and its family in C.
 *
 *     y = (x - mean) / sqrt(variance + eps) * weight + bias
 *
 * This file is the manual. It reads from top to bottom:
 *
 *   1. Statuses and errors
 *   2. Level 1: contiguous rows, one function per element type
 *   3. Level 2: tensors: any element types, strides, axes and options; plans, tasks, executors
 *   4. Level 3: a layer that owns its parameters
 *   5. Threads: a pool, for who has none of his own
 *
 * Words. A *group* is the set of elements that share one mean and one variance; at level 1 a group is a row. `rows` is
 * the number of groups there, `cols` the number of elements in each. *weight* is gamma, *bias* is beta, *rstd* is
 * 1/sqrt(variance + eps). The variance is the biased one (divided by cols, not cols - 1).
 *
 * Sources of the formulas:
 *   [LN]   J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, arXiv:1607.06450 (2016), eqs. 3 and 4
 *   [RMS]  B. Zhang, R. Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467 (2019), eq. 4
 *   [GN]   Y. Wu, K. He, Group Normalization, arXiv:1803.08494 (2018), eqs. 1, 2 and 7
 *   [IN]   D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance Normalization, arXiv:1607.08022 (2016)
 *   [BN]   S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167 (2015), algorithms 1 and 2
 *   [ARITH] docs/arithmetic.md: every operation in its order, the gradients' derivation included
 *
 * Rules that hold for every function, unless it says otherwise:
 *
 * - Determinism. A result depends on the operation, the logical shapes, the values and the element types: never on
 *   the number of rows, the position of a row, threads, instruction set, memory layout or alignment [ARITH]. (Sign
 *   and payload of a NaN are unspecified.)
 * - Accuracy. y in f32, f16 and bf16 is within 0.501 ulp of max(|y|, |weight|, |weight*xhat|, |bias|), y of f64 input
 *   within 1 ulp of the same (f64 outputs of narrow input are what comes before the last rounding: some more u); the
 *   other outputs: [ARITH] sections 14 and 19; LNORM_FAST: see there. Finite input never overflows on the way
 *   (exceptions: [ARITH] sections 14, 15 and 22). Where the mean is computed and removed, a constant group gives
 *   exactly the bias (0 without one).
 * - A NaN or an infinity in x makes its own group NaN (where statistics are given: its own element) and leaves every
 *   other group as it is. (RMS norm of narrow types: an infinity makes its own element NaN, and the finite ones of
 *   its group 0*weight.)
 * - Aliasing. In a forward pass y may be x, in a backward pass dx may be dy or x: the same memory with the same
 *   strides and element type. Otherwise an output must not overlap any input or other output, and a workspace nothing
 *   at all. Inputs may overlap each other.
 * - Threads. Every function may be called from any thread, at the same time as any other, as long as no two calls
 *   write the same memory. The library prints nothing and starts no thread but those of a pool (section 5); levels 1
 *   and 2 allocate nothing and leave errno alone. Stack: up to 128 KiB where the library is optimised, 300 KiB where it
 *   is not. The caller's rounding mode, flush-to-zero setting and trap masks neither change a result nor are changed
 *   (floating-point status flags may be raised).
 * - Errors. Arguments are checked before anything is written, and before any early exit for empty input. On an error
 *   nothing has been written but the error's own description.
 * - Extents are int64_t, counted in elements; strides too. Element addresses need the alignment of their type (which
 *   is not checked).
 */
#ifndef LNORM_H
#define LNORM_H

#include <stddef.h>
#include <stdint.h>

#define LNORM_VERSION_MAJOR 0
#define LNORM_VERSION_MINOR 1
#define LNORM_VERSION_PATCH 0
#define LNORM_VERSION_STRING "0.1.0"

#if defined LNORM_STATIC
#define LNORM_API
#elif defined _WIN32 && defined LNORM_BUILD_SHARED
#define LNORM_API __declspec(dllexport)
#elif defined _WIN32 && defined LNORM_USE_SHARED
#define LNORM_API __declspec(dllimport)
#elif defined __GNUC__ && !defined _WIN32
#define LNORM_API __attribute__((visibility("default")))
#else
#define LNORM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * 1. Statuses and errors
 * ------------------------------------------------------------------------------------------------------------------ */

typedef enum lnorm_status {
    LNORM_OK = 0,
    LNORM_INVALID_ARGUMENT,  /* a value no call can have: eps < 0, rows < 0, a NULL that is not allowed, overlap */
    LNORM_SHAPE_MISMATCH,    /* shapes that do not belong together */
    LNORM_UNSUPPORTED_DTYPE, /* an element type other than f64, f32, f16, bf16 */
    LNORM_UNSUPPORTED,       /* legal, but not built: a non-zero tail of a newer struct, a device that is not the CPU */
    LNORM_OUT_OF_MEMORY,     /* layers and pools only */
    LNORM_NOT_AVAILABLE      /* LNORM_ISA names an instruction set this machine or this build does not have */
} lnorm_status;

/* A short English name of a status ("shape mismatch"), never NULL, static storage. */
LNORM_API const char *lnorm_status_string(lnorm_status status);

/* Receives what went wrong. Start from LNORM_ERROR_INIT: with a size of 0 nothing is written. Every function
 * that takes one accepts NULL; on success it is left with LNORM_OK and "".
 * `message` names the argument, what was expected and what came; it is cut at its end when too long. */
typedef struct lnorm_error {
    size_t size; /* sizeof(lnorm_error), as every struct that users fill begins with its size */
    lnorm_status status;
    char message[500];
} lnorm_error;
#define LNORM_ERROR_INIT {sizeof(lnorm_error), LNORM_OK, {0}}

/* The version of the library that runs (LNORM_VERSION_STRING is that of the header), static storage. */
LNORM_API const char *lnorm_version(void);

/* The instruction set in use: "neon" (AArch64), "sse2", "avx2", "avx512" (x86-64), "scalar" (other machines, and builds
 * with LNORM_SCALAR). It is chosen once, at the first call, as the widest that this machine runs; the environment
 * variable LNORM_ISA, read then, overrides that choice. NULL if LNORM_ISA names one that this machine or build does not
 * have, or if the compiler was made to fuse operations that must round one by one (clang -ffp-contract=fast): every
 * computing function then returns LNORM_NOT_AVAILABLE. */
LNORM_API const char *lnorm_isa(void);

/* ------------------------------------------------------------------------------------------------------------------
 * 2. Level 1: contiguous rows
 *
 * Arrays are row-major and dense: x, y, dx, dy hold rows*cols elements, weight, bias, dweight, dbias cols elements,
 * mean and rstd rows elements. 16-bit elements are stored in uint16_t (f16: IEEE binary16, bf16: the upper half of an
 * f32). mean and rstd are float, for f64 double.
 *
 * Outputs that may be NULL are not computed, and that changes no bit of the others. weight NULL means that no
 * multiplication takes place, bias NULL no addition. rows = 0 or cols = 0 is legal: nothing is written but mean and
 * rstd (NaN for groups of no elements) and, with rows = 0, dweight = dbias = 0.
 *
 * eps is used as the f64 it is. It must be >= 0 and finite, or LNORM_EPS_DEFAULT: 1e-5 for layer norm; for RMS norm
 * 2^-23, in the f64 functions 2^-52. With eps = 0 and zero variance rstd is 0.
 *
 * Errors: LNORM_INVALID_ARGUMENT for rows < 0, cols < 0, rows, cols or rows*cols beyond 2^60, eps < 0, infinite or NaN,
 * an input of at least one element that is NULL, a workspace that is smaller than asked for, and arrays that overlap
 * otherwise than y = x, dx = dy, dx = x. LNORM_NOT_AVAILABLE: see lnorm_isa. (Level 2 gives the message, too.)
 * ------------------------------------------------------------------------------------------------------------------ */

/* "The default of the operation". A value that nobody computes by accident, unlike 0, which is a legal eps. */
#define LNORM_EPS_DEFAULT (-8.9884656743115795e307)

/* Layer norm [LN]: mean = sum(x)/cols, variance = sum((x - mean)^2)/cols, rstd = 1/sqrt(variance + eps),
 * y = (x - mean)*rstd*weight + bias, per row. y, mean, rstd may be NULL. */
LNORM_API lnorm_status lnorm_layer_norm_f64(double *y, double *mean, double *rstd, const double *x,
                                            const double *weight, const double *bias, int64_t rows, int64_t cols,
                                            double eps);
LNORM_API lnorm_status lnorm_layer_norm_f32(float *y, float *mean, float *rstd, const float *x, const float *weight,
                                            const float *bias, int64_t rows, int64_t cols, double eps);
LNORM_API lnorm_status lnorm_layer_norm_f16(uint16_t *y, float *mean, float *rstd, const uint16_t *x,
                                            const uint16_t *weight, const uint16_t *bias, int64_t rows, int64_t cols,
                                            double eps);
LNORM_API lnorm_status lnorm_layer_norm_bf16(uint16_t *y, float *mean, float *rstd, const uint16_t *x,
                                             const uint16_t *weight, const uint16_t *bias, int64_t rows, int64_t cols,
                                             double eps);

/* RMS norm [RMS]: rstd = 1/sqrt(sum(x^2)/cols + eps), y = x*rstd*weight, per row. y, rstd may be NULL. */
LNORM_API lnorm_status lnorm_rms_norm_f64(double *y, double *rstd, const double *x, const double *weight, int64_t rows,
                                          int64_t cols, double eps);
LNORM_API lnorm_status lnorm_rms_norm_f32(float *y, float *rstd, const float *x, const float *weight, int64_t rows,
                                          int64_t cols, double eps);
LNORM_API lnorm_status lnorm_rms_norm_f16(uint16_t *y, float *rstd, const uint16_t *x, const uint16_t *weight,
                                          int64_t rows, int64_t cols, double eps);
LNORM_API lnorm_status lnorm_rms_norm_bf16(uint16_t *y, float *rstd, const uint16_t *x, const uint16_t *weight,
                                           int64_t rows, int64_t cols, double eps);

/* Gradients of layer norm. With xhat = (x - mean)*rstd and g = dy*weight, per row:
 *
 *     dx = rstd*(g - sum(g)/cols - xhat*(sum(g*xhat)/cols)),   dweight = sum over rows of dy*xhat,   dbias = sum of dy.
 *
 * The statistics are computed anew from x, so a forward pass has nothing to save. Any of dx, dweight, dbias may be
 * NULL; weight may be NULL (dweight is then the gradient at weight = 1).
 *
 * workspace: lnorm_backward_workspace(rows, cols) bytes at any alignment, contents of no interest before or after; a
 * smaller workspace_size is an error. NULL is allowed: dx costs the same; dweight and dbias are then computed a strip
 * of columns at a time, and x is read once more per strip (docs/arithmetic.md, "Workspace"). */
LNORM_API lnorm_status lnorm_layer_norm_backward_f64(double *dx, double *dweight, double *dbias, const double *dy,
                                                     const double *x, const double *weight, int64_t rows, int64_t cols,
                                                     double eps, void *workspace, size_t workspace_size);
LNORM_API lnorm_status lnorm_layer_norm_backward_f32(float *dx, float *dweight, float *dbias, const float *dy,
                                                     const float *x, const float *weight, int64_t rows, int64_t cols,
                                                     double eps, void *workspace, size_t workspace_size);
LNORM_API lnorm_status lnorm_layer_norm_backward_f16(uint16_t *dx, uint16_t *dweight, uint16_t *dbias,
                                                     const uint16_t *dy, const uint16_t *x, const uint16_t *weight,
                                                     int64_t rows, int64_t cols, double eps, void *workspace,
                                                     size_t workspace_size);
LNORM_API lnorm_status lnorm_layer_norm_backward_bf16(uint16_t *dx, uint16_t *dweight, uint16_t *dbias,
                                                      const uint16_t *dy, const uint16_t *x, const uint16_t *weight,
                                                      int64_t rows, int64_t cols, double eps, void *workspace,
                                                      size_t workspace_size);

/* Gradients of RMS norm: with xhat = x*rstd, g = dy*weight, per row
 *     dx = rstd*(g - xhat*(sum(g*xhat)/cols)),   dweight = sum over rows of dy*xhat.   Otherwise as above. */
LNORM_API lnorm_status lnorm_rms_norm_backward_f64(double *dx, double *dweight, const double *dy, const double *x,
                                                   const double *weight, int64_t rows, int64_t cols, double eps,
                                                   void *workspace, size_t workspace_size);
LNORM_API lnorm_status lnorm_rms_norm_backward_f32(float *dx, float *dweight, const float *dy, const float *x,
                                                   const float *weight, int64_t rows, int64_t cols, double eps,
                                                   void *workspace, size_t workspace_size);
LNORM_API lnorm_status lnorm_rms_norm_backward_f16(uint16_t *dx, uint16_t *dweight, const uint16_t *dy,
                                                   const uint16_t *x, const uint16_t *weight, int64_t rows,
                                                   int64_t cols, double eps, void *workspace, size_t workspace_size);
LNORM_API lnorm_status lnorm_rms_norm_backward_bf16(uint16_t *dx, uint16_t *dweight, const uint16_t *dy,
                                                    const uint16_t *x, const uint16_t *weight, int64_t rows,
                                                    int64_t cols, double eps, void *workspace, size_t workspace_size);

/* Bytes of workspace for any of the eight backward functions at this size; 0 for sizes they refuse. */
LNORM_API size_t lnorm_backward_workspace(int64_t rows, int64_t cols);

/* ------------------------------------------------------------------------------------------------------------------
 * 3. Level 2: tensors
 * ------------------------------------------------------------------------------------------------------------------ */

/* Element type: DLPack's DLDataType, member for member. lanes is 1. */
typedef struct lnorm_dtype {
    uint8_t code;  /* 2: IEEE float, 4: bfloat (others: LNORM_UNSUPPORTED_DTYPE) */
    uint8_t bits;  /* 64, 32 or 16 for code 2; 16 for code 4 */
    uint16_t lanes;
} lnorm_dtype;
#ifdef __cplusplus
#define LNORM_DTYPE(code, bits) (lnorm_dtype{code, bits, 1})
#else
#define LNORM_DTYPE(code, bits) ((lnorm_dtype){code, bits, 1})
#endif
#define LNORM_F64 LNORM_DTYPE(2, 64)
#define LNORM_F32 LNORM_DTYPE(2, 32)
#define LNORM_F16 LNORM_DTYPE(2, 16)
#define LNORM_BF16 LNORM_DTYPE(4, 16)

/* DLPack's DLDevice. Only the CPU (device_type 1) is supported; 0, a struct left zero, is taken as the CPU. */
typedef struct lnorm_device {
    int32_t device_type;
    int32_t device_id;
} lnorm_device;

enum { LNORM_MAX_NDIM = 16 };

/* A view of memory: DLPack's DLTensor, member for member; a DLTensor * may be cast to it.
 * Element [i0, i1, ...] is at data + byte_offset + itemsize*(i0*strides[0] + i1*strides[1] + ...).
 * strides NULL means row-major and dense. Inputs may have any strides, 0 and negative ones included; an output must not
 * give two of its elements the same place. shape and strides are read while a plan is made, not later. data may be NULL
 * where the tensor has no element. */
typedef struct lnorm_tensor {
    void *data;
    lnorm_device device;
    int32_t ndim; /* 0 .. LNORM_MAX_NDIM */
    lnorm_dtype dtype;
    const int64_t *shape;   /* [ndim], each >= 0 */
    const int64_t *strides; /* [ndim] in elements, or NULL */
    uint64_t byte_offset;
} lnorm_tensor;

/* Keeps gcc -O0 -Wall, which does not look into lnorm_dense, from a warning of an output that holds nothing yet. */
#if defined __GNUC__ && __GNUC__ >= 11 && !defined __clang__ && !defined __OPTIMIZE__
#define LNORM_NOT_READ __attribute__((access(none, 1)))
#else
#define LNORM_NOT_READ
#endif

/* A dense row-major tensor on the CPU. data may be memory that is only read: the library writes outputs only. */
LNORM_NOT_READ
static inline lnorm_tensor lnorm_dense(const void *data, lnorm_dtype dtype, int32_t ndim, const int64_t *shape) {
    lnorm_tensor tensor = {NULL, {1, 0}, ndim, dtype, shape, NULL, 0};
    tensor.data = (void *)(uintptr_t)data;
    return tensor;
}

/* What is normalised over. x = [N, C, *] for the last three.
 *
 *   kind                 elements that share a mean and variance         weight and bias are indexed by
 *   LNORM_LAYER_NORM     the trailing axes (normalized_shape), or axes   those axes
 *   LNORM_RMS_NORM       the same; no mean is removed                    those axes
 *   LNORM_GROUP_NORM     C/groups channels of a sample and all of *      C       [GN]
 *   LNORM_INSTANCE_NORM  one channel of a sample, all of *               C       [IN]
 *   LNORM_BATCH_NORM     one channel of all samples: N and all of *      C       [BN] */
typedef enum lnorm_kind {
    LNORM_LAYER_NORM = 0,
    LNORM_RMS_NORM,
    LNORM_GROUP_NORM,
    LNORM_INSTANCE_NORM,
    LNORM_BATCH_NORM
} lnorm_kind;

/* What is computed. With M(a) the mean of a over a group, xhat = (x - mean)*rstd, g = dy*weight (derivations: [ARITH]):
 *
 *   pass                   reads                     writes (any that is not NULL)
 *   LNORM_FORWARD          x weight bias             y = xhat*weight + bias, mean, rstd, running_mean, running_var
 *   LNORM_BACKWARD         x weight dy               dx = rstd*((g - M(g)) - xhat*M(g*xhat)), dweight = sum dy*xhat,
 *                                                    dbias = sum dy
 *   LNORM_DOUBLE_BACKWARD  x weight dy v             the gradients of sum(v*dx) by dy, x and weight: ddy, dx, dweight
 *   LNORM_FORWARD_MODE     x weight x_tangent        the directional derivatives y_tangent, mean_tangent, rstd_tangent
 *                          weight_tangent bias_tangent
 *
 * The last two are for layer norm and RMS norm; the other kinds give LNORM_UNSUPPORTED. Tensors that a pass has no use
 * for are ignored, so that one lnorm_io can serve several plans. */
typedef enum lnorm_pass {
    LNORM_FORWARD = 0,
    LNORM_BACKWARD,
    LNORM_DOUBLE_BACKWARD,
    LNORM_FORWARD_MODE
} lnorm_pass;

/* Where mean and rstd come from.
 *   LNORM_COMPUTED  from x; in a forward pass io.mean and io.rstd are outputs
 *   LNORM_SAVED     from io.mean and io.rstd, which hold what a forward pass gave for this x: gradients take into
 *                   account that they depend on x. (Rounded to f32 they cost accuracy; f64 ones hardly do.)
 *   LNORM_CONSTANT  from io.mean, and io.rstd or io.variance (rstd = 1/sqrt(variance + eps)): numbers that do not
 *                   depend on x, as in batch norm inference, where io.variance is the running variance. dx = rstd*g.
 * RMS norm has no mean: io.mean is ignored there, and io.variance is the mean square. */
typedef enum lnorm_statistics { LNORM_COMPUTED = 0, LNORM_SAVED, LNORM_CONSTANT } lnorm_statistics;

/* Which arithmetic [ARITH].
 *   LNORM_ACCURATE  everything in f64 (f64 input: in about twice f64's precision), rounded once
 *   LNORM_FAST      forward and backward of f32, f16, bf16: what is one per element in f32. Its bits are fixed, too.
 *                   y is within 24 ulp of f32 (of f16 0.56, of bf16 0.51) of the scale under "Accuracy"; statistics,
 *                   gradients and what may overflow: [ARITH] section 22. Constant groups give the bias. Other passes,
 *                   f64 input and groups of at most 16 elements are as with LNORM_ACCURATE: asking never fails. */
typedef enum lnorm_arithmetic { LNORM_ACCURATE = 0, LNORM_FAST } lnorm_arithmetic;

/* An operation. Start from LNORM_OP_INIT: layer norm over the last axis, forward, eps 1e-5. */
typedef struct lnorm_op {
    size_t size;
    lnorm_kind kind;
    lnorm_pass pass;
    lnorm_statistics statistics;
    lnorm_arithmetic arithmetic;
    double eps; /* >= 0 and finite, or LNORM_EPS_DEFAULT: 1e-5; RMS norm: 2^-23, where x is f64 2^-52 */

    /* Layer and RMS norm: give one of the two, or neither for the last axis. */
    const int64_t *normalized_shape; /* [normalized_ndim]: must equal the trailing extents of x */
    const int64_t *axes;             /* [axes_count]: any axes of x, in any order, negative ones from the end */
    int32_t normalized_ndim;         /* >= 1 where normalized_shape is not NULL */
    int32_t axes_count;              /* >= 1 where axes is not NULL */

    int64_t groups; /* group norm: must divide C */

    /* 0: weight and bias (and their gradients and tangents) have the shape of the table above: normalized_shape, or the
     * extents of `axes` in ascending order, or [C].
     * 1: they broadcast over x as in NumPy and ONNX: aligned at the last axis, each extent 1 or that of x. This gives
     * per-row weights ([rows, 1]), adaptive layer norm ([B, 1, H] over [B, T, H]), scalars ([1]). Gradients are summed
     * over the axes that broadcast. weight and bias may differ in shape. */
    int32_t affine_broadcast;
    int32_t weight_offset; /* 1: use 1 + weight for weight, an f64 addition; where weight is NULL it is ignored */
    int32_t accumulate;    /* 1: dweight and dbias are added to what is there (one f64 addition, then rounded) */
    int32_t reserved;      /* 0 */

    /* Batch norm, running statistics: running <- (1 - q)*running + q*new, where new is the mean, or the unbiased
     * variance (at one element per channel the running variance stays). q = momentum, 0 <= momentum <= 1; where
     * batches > 0, q = 1/batches: the cumulative average, batches counting this one. */
    double momentum;
    int64_t batches;
} lnorm_op;
#define LNORM_OP_INIT                                                                                                  \
    {sizeof(lnorm_op), LNORM_LAYER_NORM, LNORM_FORWARD, LNORM_COMPUTED, LNORM_ACCURATE, 1e-5, NULL, NULL, 0, 0, 0, 0, \
     0, 0, 0, 0.1, 0}

/* The tensors. NULL is absent; outputs that are NULL are not computed, which changes no bit of the others (with none at
 * all a call checks its arguments and does nothing).
 *
 * Shapes. x, y, dy, dx, v, ddy, x_tangent, y_tangent: that of x. weight, dweight, weight_tangent and bias, dbias,
 * bias_tangent: see lnorm_op. mean, rstd, variance, mean_tangent, rstd_tangent: one element per group: the extents of x
 * that are not normalised over, in order, with or without extents of 1 in between or in the normalised axes' places
 * ([N, G] for group norm, [N, C] for instance norm, [C] for batch norm); or one axis of all groups in logical order.
 * running_mean, running_var: [C], read and written, batch norm only.
 *
 * Element types: f64, f32, f16, bf16, each tensor for itself. Where x, weight, bias, dy, v or a tangent that the pass
 * reads is f64, all outputs come from the wide arithmetic (about twice f64's precision), then rounded once. */
typedef struct lnorm_io {
    size_t size;
    const lnorm_tensor *x, *weight, *bias, *y, *mean, *rstd, *variance;
    const lnorm_tensor *running_mean, *running_var;
    const lnorm_tensor *dy, *dx, *dweight, *dbias;
    const lnorm_tensor *v, *ddy;
    const lnorm_tensor *x_tangent, *weight_tangent, *bias_tangent, *y_tangent, *mean_tangent, *rstd_tangent;
    void *workspace;       /* lnorm_plan_workspace() bytes at any alignment, or NULL: slower, the same bits */
    size_t workspace_size; /* fewer bytes than asked for is LNORM_INVALID_ARGUMENT, not a crash */
} lnorm_io;
#define LNORM_IO_INIT                                                                                                 \
    {sizeof(lnorm_io), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,      \
     NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0}

/* A checked operation on described tensors. Lives where the user puts it (a stack will do), holds no pointer to the op,
 * the io or their shapes, needs no release, may be copied, and may be used by any number of threads at once. */
typedef struct lnorm_plan {
    union {
        unsigned char bytes[5120];
        uint64_t word;
        double number;
        void *pointer;
    } opaque;
} lnorm_plan;

/* Checks everything that does not depend on data pointers and fills `plan`. The tensors' data is neither read nor
 * written and may be NULL.
 * Errors: LNORM_INVALID_ARGUMENT, LNORM_SHAPE_MISMATCH (among them, word for word as users of PyTorch know it, "Given
 * normalized_shape=[2], expected input with shape [*, 2], but got input of size[4, 2, 3]"), LNORM_UNSUPPORTED_DTYPE,
 * LNORM_UNSUPPORTED, LNORM_NOT_AVAILABLE. A plan that failed stays unusable: running it returns the status again. */
LNORM_API lnorm_status lnorm_plan_init(lnorm_plan *plan, const lnorm_op *op, const lnorm_io *io, lnorm_error *error);

/* Groups (how many means and variances), elements in each, and the bytes of workspace that make the plan fastest.
 * All are 0 for a plan that failed. */
LNORM_API int64_t lnorm_plan_groups(const lnorm_plan *plan);
LNORM_API int64_t lnorm_plan_group_size(const lnorm_plan *plan);
LNORM_API size_t lnorm_plan_workspace(const lnorm_plan *plan);

/* Checks the data pointers and the workspace of an io whose tensors are those the plan was made for (other memory, the
 * same descriptions): no NULL where elements are due, no forbidden overlap between dense tensors (for interleaved views
 * that is the caller's duty). lnorm_execute does this itself; call it before running tasks by hand. */
LNORM_API lnorm_status lnorm_plan_check(const lnorm_plan *plan, const lnorm_io *io, lnorm_error *error);

/* Runs the plan on the calling thread (executor NULL) or through an executor. Where there is less to do than waking a
 * thread costs (below some 32 thousand elements), the executor is not called. Errors: those of lnorm_plan_check, and
 * the plan's own if it failed. */
struct lnorm_executor;
LNORM_API lnorm_status lnorm_execute(const lnorm_plan *plan, const lnorm_io *io, const struct lnorm_executor *executor);

/* Plan and execution in one call; where io has no workspace, on the library's own if 24 KiB are enough. */
LNORM_API lnorm_status lnorm_run(const lnorm_op *op, const lnorm_io *io, const struct lnorm_executor *executor,
                                 lnorm_error *error);

/* The work as numbered tasks, for engines with threads of their own: all tasks of a phase may run at the same time, in
 * any order, each exactly once; a phase begins when the one before has ended. Numbers are fixed by the plan (a task may
 * turn out to have nothing to do). The pointers in io must be the same for all of them. A task cannot fail where
 * lnorm_plan_check passed; a phase or task out of range is LNORM_INVALID_ARGUMENT.
 *
 *     for (int phase = 0; phase < lnorm_plan_phases(&plan); phase++, barrier())        I am number ith of nth
 *         for (int64_t i = ith; i < lnorm_plan_tasks(&plan, phase); i += nth)
 *             lnorm_plan_run(&plan, &io, phase, i); */
LNORM_API int lnorm_plan_phases(const lnorm_plan *plan);
LNORM_API int64_t lnorm_plan_tasks(const lnorm_plan *plan, int phase);
LNORM_API lnorm_status lnorm_plan_run(const lnorm_plan *plan, const lnorm_io *io, int phase, int64_t task);

/* Somebody else's threads. parallel_for must call task(argument, i) exactly once for each i in 0 .. count-1, in any
 * order, on any threads, with any floating-point environment, and return when all calls have returned, their writes
 * visible to the caller. It must not fail. */
typedef struct lnorm_executor {
    size_t size;
    void *context; /* handed to parallel_for */
    void (*parallel_for)(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument);
} lnorm_executor;
#define LNORM_EXECUTOR_INIT {sizeof(lnorm_executor), NULL, NULL}

/* ------------------------------------------------------------------------------------------------------------------
 * 4. Level 3: a layer that owns its parameters
 * ------------------------------------------------------------------------------------------------------------------ */

typedef struct lnorm_layer lnorm_layer;

/* Start from LNORM_LAYER_CONFIG_INIT and give normalized_size (an int) or normalized_shape. */
typedef struct lnorm_layer_config {
    size_t size;
    lnorm_kind kind;                 /* LNORM_LAYER_NORM or LNORM_RMS_NORM (which has no bias) */
    int32_t normalized_ndim;
    const int64_t *normalized_shape; /* [normalized_ndim], each >= 0; copied */
    int64_t normalized_size;         /* where normalized_shape is NULL: short for {normalized_size}; -1: not given */
    double eps;                      /* as in lnorm_op */
    int32_t elementwise_affine;      /* 0: no weight and no bias */
    int32_t bias;                    /* 0: no bias */
    lnorm_dtype dtype;               /* of weight, bias and their gradients */
    int32_t reserved;                /* 0 */
    const lnorm_executor *executor;  /* NULL: the calling thread; must outlive the layer */
} lnorm_layer_config;
#define LNORM_LAYER_CONFIG_INIT                                                                                       \
    {sizeof(lnorm_layer_config), LNORM_LAYER_NORM, 0, NULL, -1, LNORM_EPS_DEFAULT, 1, 1, {2, 32, 1}, 0, NULL}

/* A layer with weight = 1, bias = 0, gradients 0; NULL on an error (LNORM_OUT_OF_MEMORY among them). The caller owns it
 * and gives it to lnorm_layer_destroy, which accepts NULL. */
LNORM_API lnorm_layer *lnorm_layer_create(const lnorm_layer_config *config, lnorm_error *error);
LNORM_API void lnorm_layer_destroy(lnorm_layer *layer);

/* y = the norm of x, both of shape [*, normalized_shape], any strides and element types. Reads the layer only, so any
 * number of threads may do it at once. */
LNORM_API lnorm_status lnorm_layer_forward(const lnorm_layer *layer, const lnorm_tensor *y, const lnorm_tensor *x,
                                           lnorm_error *error);

/* dx (may be NULL) from dy and the x of the forward pass; the gradients of weight and bias are *added* to the layer's
 * own, rounded once per call. Nothing was saved by the forward pass. Not at the same time as another call that writes
 * the same layer. Memory: a workspace that is kept until the layer is destroyed; without memory for it the call still
 * succeeds, slower. */
LNORM_API lnorm_status lnorm_layer_backward(lnorm_layer *layer, const lnorm_tensor *dx, const lnorm_tensor *dy,
                                            const lnorm_tensor *x, lnorm_error *error);

/* Gradients to 0; weight to 1 and bias to 0. */
LNORM_API void lnorm_layer_zero_grad(lnorm_layer *layer);
LNORM_API void lnorm_layer_reset_parameters(lnorm_layer *layer);

/* Views of the parameters and gradients (dense, of shape normalized_shape), to read and to write; NULL where the layer
 * has none. They live as long as the layer. */
LNORM_API const lnorm_tensor *lnorm_layer_weight(const lnorm_layer *layer);
LNORM_API const lnorm_tensor *lnorm_layer_bias(const lnorm_layer *layer);
LNORM_API const lnorm_tensor *lnorm_layer_weight_grad(const lnorm_layer *layer);
LNORM_API const lnorm_tensor *lnorm_layer_bias_grad(const lnorm_layer *layer);

/* ------------------------------------------------------------------------------------------------------------------
 * 5. Threads
 *
 * Nothing above needs this section: without an executor everything runs on the calling thread, and engines with threads
 * of their own write an lnorm_executor or run a plan's tasks themselves. Results do not depend on it.
 *
 *     lnorm_pool *pool = lnorm_pool_create(0, NULL);
 *     lnorm_execute(&plan, &io, lnorm_pool_executor(pool));
 *     lnorm_pool_destroy(pool);
 * ------------------------------------------------------------------------------------------------------------------ */

typedef struct lnorm_pool lnorm_pool;

/* A pool of at most `threads` threads, the caller's included; 0: as many as there are processors in the calling
 * thread's affinity mask. NULL on an error: LNORM_INVALID_ARGUMENT (below 0 or above 4096), LNORM_OUT_OF_MEMORY. The
 * caller owns it.
 *
 * Threads are started when a job first needs them; where the system refuses, there are fewer, and no job fails. They
 * sleep while there is nothing to do, and have signals blocked. After a fork the child has a working pool, too, whose
 * threads start anew (a task itself must not fork and return). Built with LNORM_NO_THREADS, and on Windows in this
 * version, a pool is the calling thread alone, whatever was asked for: lnorm_pool_threads says 1. */
LNORM_API lnorm_pool *lnorm_pool_create(int32_t threads, lnorm_error *error);

/* Ends the threads. No call that uses the pool may be running, and none may follow; NULL is accepted. */
LNORM_API void lnorm_pool_destroy(lnorm_pool *pool);

/* At most so many threads work at a job, the caller's included: what was asked for. 1 for NULL. */
LNORM_API int32_t lnorm_pool_threads(const lnorm_pool *pool);

/* The pool as an executor, wherever one is wanted: it belongs to the pool and lives as long. NULL for NULL, which means
 * the calling thread. Any number of threads may use it at once, from within tasks, too: one call at a time has the
 * pool's threads, and the others do not wait but do their work alone. Its parallel_for may also be called with tasks
 * that have nothing to do with lnorm. */
LNORM_API const lnorm_executor *lnorm_pool_executor(const lnorm_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
