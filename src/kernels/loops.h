/* The loops over vectors of columns, group norm and the general form: what an instruction set brings of them. All else
 * (where elements lie, in which order sums are added up, statistics from sums) is the same for every instruction set
 * and compiled once: gather.c, blocks.c, general*.c, columns*.c, channels.c. A call of a loop is for a block of
 * elements or for some rows, never for a vector. */
#ifndef LNORM_KERNELS_LOOPS_H
#define LNORM_KERNELS_LOOPS_H

#include "../grid.h"
#include "../kernels.h"
#include "../simd/isa_build.h"
#include "bundle.h"
#include "columns.h"

struct lnorm_loops {
    int wide_vector, narrow_vector; /* f64 and f32 in a vector */

    /* Conversions: exact, or rounded once. */
    void (*widen)(enum lnorm_element element, const void *from, double *to, int64_t n);
    void (*narrow)(enum lnorm_element element, const double *from, void *to, int64_t n);
    void (*to_f32)(enum lnorm_element element, const void *from, float *to, int64_t n);
    void (*from_f32)(enum lnorm_element element, const float *from, char *to, int64_t n);
    /* Copies past the caches. */
    void (*stream)(char *to, const char *from, int64_t bytes);
    /* A matrix [rows][columns] of elements of 2 or 4 bytes becomes [columns][rows]: pitches in bytes. */
    void (*turn)(int64_t size, char *to, int64_t to_pitch, const char *from, int64_t from_pitch, int64_t rows,
                 int64_t columns);

    /* Of groups in one piece each, `pitch` bytes apart, which are computed: cols, eps and center are those of `a`. Fast
     * and of 16 bits: one group, or LN_FAST_TILE elements in all. */
    void (*statistics)(int fast, enum lnorm_element element, ln_record *s, const char *x, int64_t pitch, int rows,
                       const lnorm_rows *a);

    /* Blocks of at most LNORM_BLOCK elements. */
    lnorm_add *add;
    /* `soon`: bytes from x on that will be read soon: they are asked for, some way ahead. */
    void (*sum_block)(enum lnorm_element element, enum ln_sum_of what, const char *x, int64_t n, double c,
                      int64_t soon, void *sum);
    void (*add_run)(double *sum, const float *term); /* a run's two sums of each lane, to those of others */
    void (*add_product)(double *sums, const double *x, const double *dy, const ln_record *s, int64_t n);
    /* Element i has weight and bias number i & columns: all bits, or none. Fast: x, weight and bias have room up to a
     * multiple of 16. */
    void (*apply)(double *x, const ln_record *s, const double *weight, const double *bias, int64_t columns, int64_t n);
    void (*apply_fast)(float *x, const ln_fast_form *form, const float *weight, const float *bias, int64_t columns,
                       int64_t n);
    /* Gradients; in the fast arithmetic of groups that are regular. Sums of g and g*xhat, in the accurate arithmetic also
     * of dy and dy*xhat, of how many terms it was: at most to the end of a block, in the accurate arithmetic of LN_TERMS
     * at most without the last, fewer than LNORM_LANES to the end of either sum's. dx in f32 or (accurate only) f64;
     * dy*xhat in f32. */
    int64_t (*sum_terms)(int fast, const ln_terms *f, ln_term_sums *of_g, ln_term_sums *of_dy);
    void (*dx_terms)(int fast, enum lnorm_element element, const ln_terms *f, void *dx);
    void (*fast_products)(const ln_terms *f, float *term);
    /* Eight rows of terms in f32, added up, to f64 sums: whole vectors of columns. */
    void (*add_eight)(double *sums, const float *term, int64_t pitch, int64_t n);
    /* y of at most LN_CHANNEL_RUNS runs. `streams`: past the caches. */
    void (*channel_runs)(int fast, enum lnorm_element element, const ln_channel_run *run, int runs, int streams);

    /* Columns of a strip, whole vectors of them. */
    void (*sum_rows)(const ln_row_sums *f, ln_column_lanes *lanes);
    void (*sum_runs)(int columns, const ln_lane_rows *rows, double *sum_a, double *sum_b); /* of a lane */
    void (*fold_lanes)(const double *lanes, int64_t pitch, int columns, double *sum);
    void (*keep_lanes)(double *lanes, int64_t pitch, int columns, const uint64_t *bits); /* those that are set */
    void (*moments)(int center, int shifted, int64_t rows, int columns, const double *sum_a, const double *sum_b,
                    double *mean, double *variance);
    void (*roots)(const double *v, double eps, int columns, double *r);
    void (*sweep)(int fast, enum lnorm_element element, const ln_columns *s, const ln_sweep *f, int64_t rows);
    void (*gradient_lane)(int fast, const ln_columns *s, const ln_gradient_rows *rows, int by_row, int sums, int lane,
                          ln_gradient_lanes *to);
    void (*dx)(int fast, enum lnorm_element element, const ln_columns *s, const ln_gradient_sweep *f, int64_t rows);
};

#endif
