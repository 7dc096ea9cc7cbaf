/* names.h for the wide kernels, and what they share: compiled once, not per instruction set. */
#ifndef LNORM_KERNELS_WIDE_NAMES_H
#define LNORM_KERNELS_WIDE_NAMES_H

#include "names.h"
#include "../reference_wide.h"
#include "../wide.h"

enum {
    LN_WIDE_TILE_ROWS = 8,
    LN_WIDE_TILE_ELEMENTS = 1 << 14 /* 128 KiB: the second reading of a tile finds it in the level 2 cache */
};

/* wide_pairs.inc */
#define vp LNORM_ISA_NAME(vp)
#define vp_set1 LNORM_ISA_NAME(vp_set1)
#define vp_two_sum LNORM_ISA_NAME(vp_two_sum)
#define vp_two_product LNORM_ISA_NAME(vp_two_product)
#define vp_add LNORM_ISA_NAME(vp_add)
#define vp_mul LNORM_ISA_NAME(vp_mul)
#define vp_mul_double LNORM_ISA_NAME(vp_mul_double)
#define vp_norm LNORM_ISA_NAME(vp_norm)
#define vp_keep LNORM_ISA_NAME(vp_keep)
#define vp_fold LNORM_ISA_NAME(vp_fold)
#define vd_flush LNORM_ISA_NAME(vd_flush)
#define vd_load_left LNORM_ISA_NAME(vd_load_left)
#define vd_store_left LNORM_ISA_NAME(vd_store_left)

/* wide_statistics.inc */
#define ln_range LNORM_ISA_NAME(ln_range)
#define ln_range_take LNORM_ISA_NAME(ln_range_take)
#define ln_wide_range LNORM_ISA_NAME(ln_wide_range)
#define ln_wide_constant LNORM_ISA_NAME(ln_wide_constant)
#define ln_wide_scaled LNORM_ISA_NAME(ln_wide_scaled)
#define ln_wide_shift LNORM_ISA_NAME(ln_wide_shift)
#define ln_wide_deviation LNORM_ISA_NAME(ln_wide_deviation)
#define ln_wide_sums LNORM_ISA_NAME(ln_wide_sums)
#define ln_wide_block_moments LNORM_ISA_NAME(ln_wide_block_moments)
#define ln_wide_moments LNORM_ISA_NAME(ln_wide_moments)
#define ln_wide_moments_of LNORM_ISA_NAME(ln_wide_moments_of)
#define ln_wide_statistics LNORM_ISA_NAME(ln_wide_statistics)

/* wide_quick.inc */
#define ln_quick LNORM_ISA_NAME(ln_quick)
#define ln_quick_sums LNORM_ISA_NAME(ln_quick_sums)
#define LN_QUICK_CHAINS LNORM_ISA_NAME(LN_QUICK_CHAINS)
#define LN_QUICK_STEPS LNORM_ISA_NAME(LN_QUICK_STEPS)
#define ln_quick_start LNORM_ISA_NAME(ln_quick_start)
#define ln_quick_chunk LNORM_ISA_NAME(ln_quick_chunk)
#define ln_quick_row LNORM_ISA_NAME(ln_quick_row)
#define ln_quick_guess LNORM_ISA_NAME(ln_quick_guess)
#define ln_quick_sum LNORM_ISA_NAME(ln_quick_sum)
#define ln_quick_statistics LNORM_ISA_NAME(ln_quick_statistics)
#define ln_quick_round LNORM_ISA_NAME(ln_quick_round)

/* wide_forward.inc */
#define ln_wide_row LNORM_ISA_NAME(ln_wide_row)
#define ln_wide_know LNORM_ISA_NAME(ln_wide_know)
#define ln_wide_mean_and_rstd LNORM_ISA_NAME(ln_wide_mean_and_rstd)
#define ln_wide_begin LNORM_ISA_NAME(ln_wide_begin)
#define ln_wide_vectors LNORM_ISA_NAME(ln_wide_vectors)
#define ln_wide_block LNORM_ISA_NAME(ln_wide_block)
#define ln_quick_apply LNORM_ISA_NAME(ln_quick_apply)
#define ln_quick_block LNORM_ISA_NAME(ln_quick_block)
#define ln_wide_apply LNORM_ISA_NAME(ln_wide_apply)
#define ln_wide_apply_block LNORM_ISA_NAME(ln_wide_apply_block)
#define ln_wide_row_fits LNORM_ISA_NAME(ln_wide_row_fits)
#define ln_wide_affine LNORM_ISA_NAME(ln_wide_affine)
#define ln_wide_read_affine LNORM_ISA_NAME(ln_wide_read_affine)
#define ln_quick_deviation LNORM_ISA_NAME(ln_quick_deviation)
#define ln_wide_few LNORM_ISA_NAME(ln_wide_few)
#define ln_wide_tile LNORM_ISA_NAME(ln_wide_tile)
#define ln_wide_forward LNORM_ISA_NAME(ln_wide_forward)

/* wide_backward.inc */
#define ln_wide_form LNORM_ISA_NAME(ln_wide_form)
#define ln_wide_form_of LNORM_ISA_NAME(ln_wide_form_of)
#define ln_wide_xhat LNORM_ISA_NAME(ln_wide_xhat)
#define ln_wide_direction LNORM_ISA_NAME(ln_wide_direction)
#define ln_wide_largest LNORM_ISA_NAME(ln_wide_largest)
#define ln_wide_block_means LNORM_ISA_NAME(ln_wide_block_means)
#define ln_wide_means LNORM_ISA_NAME(ln_wide_means)
#define ln_wide_means_of LNORM_ISA_NAME(ln_wide_means_of)
#define ln_wide_project LNORM_ISA_NAME(ln_wide_project)
#define ln_wide_gradient LNORM_ISA_NAME(ln_wide_gradient)
#define ln_wide_moderate LNORM_ISA_NAME(ln_wide_moderate)
#define ln_wide_sums_fit LNORM_ISA_NAME(ln_wide_sums_fit)
#define ln_wide_accumulate LNORM_ISA_NAME(ln_wide_accumulate)
#define ln_wide_add_row LNORM_ISA_NAME(ln_wide_add_row)
#define ln_wide_add_sums LNORM_ISA_NAME(ln_wide_add_sums)
#define ln_wide_columns LNORM_ISA_NAME(ln_wide_columns)

#endif
