/* Names for code that is compiled once per instruction set: each of its identifiers stands for one with the set's name
 * at the end (vd_add_avx2, ln_forward_scalar). Symbols then tell profiles apart, and all sets fit into one file, as
 * they do in the distribution. LNORM_ISA_SUFFIX is read where a name is used, not here.
 *
 * Included before the vec_*.h, so that what is not vector code is compiled for no instruction set in particular. */
#ifndef LNORM_KERNELS_NAMES_H
#define LNORM_KERNELS_NAMES_H

#include "../simd/isa_build.h"
#include "bundle.h"
#include "tiles.h"

#define LNORM_ISA_PASTE(name, suffix) name##_##suffix
#define LNORM_ISA_EXPAND(name, suffix) LNORM_ISA_PASTE(name, suffix)
#define LNORM_ISA_NAME(name) LNORM_ISA_EXPAND(name, LNORM_ISA_SUFFIX)
#define LNORM_ISA_TABLE LNORM_ISA_EXPAND(lnorm_kernels, LNORM_ISA_SUFFIX)
#define LNORM_ISA_QUOTE(suffix) #suffix
#define LNORM_ISA_STRING_OF(suffix) LNORM_ISA_QUOTE(suffix)
#define LNORM_ISA_STRING LNORM_ISA_STRING_OF(LNORM_ISA_SUFFIX)

/* vec_avx2.h, vec_avx512.h, vec_scalar.h */
#define vd LNORM_ISA_NAME(vd)
#define vd_zero LNORM_ISA_NAME(vd_zero)
#define vd_set1 LNORM_ISA_NAME(vd_set1)
#define vd_add LNORM_ISA_NAME(vd_add)
#define vd_sub LNORM_ISA_NAME(vd_sub)
#define vd_mul LNORM_ISA_NAME(vd_mul)
#define vd_div LNORM_ISA_NAME(vd_div)
#define vd_drop_negative LNORM_ISA_NAME(vd_drop_negative)
#define vd_reciprocal_root LNORM_ISA_NAME(vd_reciprocal_root)
#define vd_turn LNORM_ISA_NAME(vd_turn)
#define vd_square_add LNORM_ISA_NAME(vd_square_add)
#define vd_mask64 LNORM_ISA_NAME(vd_mask64)
#define vd_mask32 LNORM_ISA_NAME(vd_mask32)
#define vd_keep LNORM_ISA_NAME(vd_keep)
#define vd_fold LNORM_ISA_NAME(vd_fold)
#define vd_load_f64 LNORM_ISA_NAME(vd_load_f64)
#define vd_load_f64_part LNORM_ISA_NAME(vd_load_f64_part)
#define vd_load_f32 LNORM_ISA_NAME(vd_load_f32)
#define vd_load_f32_part LNORM_ISA_NAME(vd_load_f32_part)
#define vd_halves LNORM_ISA_NAME(vd_halves)
#define vd_halves_part LNORM_ISA_NAME(vd_halves_part)
#define vd_widen_f16 LNORM_ISA_NAME(vd_widen_f16)
#define vd_widen_bf16 LNORM_ISA_NAME(vd_widen_bf16)
#define vd_load_f16 LNORM_ISA_NAME(vd_load_f16)
#define vd_load_f16_part LNORM_ISA_NAME(vd_load_f16_part)
#define vd_load_bf16 LNORM_ISA_NAME(vd_load_bf16)
#define vd_load_bf16_part LNORM_ISA_NAME(vd_load_bf16_part)
#define vd_store_f64 LNORM_ISA_NAME(vd_store_f64)
#define vd_store_f64_part LNORM_ISA_NAME(vd_store_f64_part)
#define vd_store_f32 LNORM_ISA_NAME(vd_store_f32)
#define vd_store_f32_part LNORM_ISA_NAME(vd_store_f32_part)
#define vd_put_halves LNORM_ISA_NAME(vd_put_halves)
#define vd_put_halves_part LNORM_ISA_NAME(vd_put_halves_part)
#define vd_round_f16 LNORM_ISA_NAME(vd_round_f16)
#define vd_round_bf16 LNORM_ISA_NAME(vd_round_bf16)
#define vd_unusual LNORM_ISA_NAME(vd_unusual)
#define vd_store_unusual_bf16 LNORM_ISA_NAME(vd_store_unusual_bf16)
#define vd_store_f16 LNORM_ISA_NAME(vd_store_f16)
#define vd_store_f16_part LNORM_ISA_NAME(vd_store_f16_part)
#define vd_store_bf16 LNORM_ISA_NAME(vd_store_bf16)
#define vd_store_bf16_part LNORM_ISA_NAME(vd_store_bf16_part)
#define vd_mask LNORM_ISA_NAME(vd_mask)

/* elements.inc */
#define ln_element_bytes LNORM_ISA_NAME(ln_element_bytes)
#define vd_load_whole LNORM_ISA_NAME(vd_load_whole)
#define vd_load_part LNORM_ISA_NAME(vd_load_part)
#define vd_load LNORM_ISA_NAME(vd_load)
#define vd_store_whole LNORM_ISA_NAME(vd_store_whole)
#define vd_store_part LNORM_ISA_NAME(vd_store_part)
#define vd_store LNORM_ISA_NAME(vd_store)
#define ln_convert LNORM_ISA_NAME(ln_convert)
#define ln_widen LNORM_ISA_NAME(ln_widen)
#define ln_narrow LNORM_ISA_NAME(ln_narrow)
#define ln_affine_columns LNORM_ISA_NAME(ln_affine_columns)
#define ln_add LNORM_ISA_NAME(ln_add)

/* block.inc */
#define ln_lanes LNORM_ISA_NAME(ln_lanes)
#define ln_fold_lanes LNORM_ISA_NAME(ln_fold_lanes)
#define ln_clear_lanes LNORM_ISA_NAME(ln_clear_lanes)
#define ln_padded LNORM_ISA_NAME(ln_padded)
#define ln_pad LNORM_ISA_NAME(ln_pad)
#define ln_block_moments LNORM_ISA_NAME(ln_block_moments)
#define ln_block_shifted LNORM_ISA_NAME(ln_block_shifted)
#define ln_sum_block LNORM_ISA_NAME(ln_sum_block)
#define ln_gradient_form LNORM_ISA_NAME(ln_gradient_form)
#define ln_normalised LNORM_ISA_NAME(ln_normalised)
#define ln_add_gradient LNORM_ISA_NAME(ln_add_gradient)
#define ln_block_gradient LNORM_ISA_NAME(ln_block_gradient)

/* rows_short.inc */
#define LN_SHORT_ROWS LNORM_ISA_NAME(LN_SHORT_ROWS)
#define ln_short LNORM_ISA_NAME(ln_short)
#define ln_short_move LNORM_ISA_NAME(ln_short_move)
#define ln_short_turn_in LNORM_ISA_NAME(ln_short_turn_in)
#define ln_short_turn_out LNORM_ISA_NAME(ln_short_turn_out)
#define ln_short_halve LNORM_ISA_NAME(ln_short_halve)
#define ln_short_fold LNORM_ISA_NAME(ln_short_fold)
#define ln_short_sum LNORM_ISA_NAME(ln_short_sum)
#define ln_short_deviations LNORM_ISA_NAME(ln_short_deviations)
#define ln_short_statistics LNORM_ISA_NAME(ln_short_statistics)
#define ln_short_statistics_of LNORM_ISA_NAME(ln_short_statistics_of)
#define ln_short_apply LNORM_ISA_NAME(ln_short_apply)
#define ln_short_tile LNORM_ISA_NAME(ln_short_tile)
#define ln_rows_short LNORM_ISA_NAME(ln_rows_short)

/* rows_forward.inc */
#define ln_row_moments LNORM_ISA_NAME(ln_row_moments)
#define ln_rows_statistics LNORM_ISA_NAME(ln_rows_statistics)
#define ln_row LNORM_ISA_NAME(ln_row)
#define ln_forward_value LNORM_ISA_NAME(ln_forward_value)
#define ln_forward_columns LNORM_ISA_NAME(ln_forward_columns)
#define ln_forward_sweep LNORM_ISA_NAME(ln_forward_sweep)
#define ln_forward_shifted LNORM_ISA_NAME(ln_forward_shifted)
#define ln_forward_f32 LNORM_ISA_NAME(ln_forward_f32)
#define ln_forward_f16 LNORM_ISA_NAME(ln_forward_f16)
#define ln_forward_bf16 LNORM_ISA_NAME(ln_forward_bf16)
#define ln_forward_of LNORM_ISA_NAME(ln_forward_of)
#define ln_row_at LNORM_ISA_NAME(ln_row_at)
#define ln_forward_tile LNORM_ISA_NAME(ln_forward_tile)
#define ln_forward_one LNORM_ISA_NAME(ln_forward_one)
#define ln_rows_forward LNORM_ISA_NAME(ln_rows_forward)

/* rows_backward.inc */
#define ln_row_gradient LNORM_ISA_NAME(ln_row_gradient)
#define ln_row_means LNORM_ISA_NAME(ln_row_means)
#define ln_add_columns LNORM_ISA_NAME(ln_add_columns)
#define ln_backward_lanes LNORM_ISA_NAME(ln_backward_lanes)
#define ln_backward_load LNORM_ISA_NAME(ln_backward_load)
#define ln_backward_columns LNORM_ISA_NAME(ln_backward_columns)
#define ln_backward_sweep LNORM_ISA_NAME(ln_backward_sweep)
#define ln_backward_wanted LNORM_ISA_NAME(ln_backward_wanted)
#define ln_backward_tail LNORM_ISA_NAME(ln_backward_tail)
#define ln_backward_row LNORM_ISA_NAME(ln_backward_row)
#define ln_backward_tile_of LNORM_ISA_NAME(ln_backward_tile_of)
#define ln_rows_backward LNORM_ISA_NAME(ln_rows_backward)

/* gather.inc */
#define ln_move LNORM_ISA_NAME(ln_move)
#define ln_move_any LNORM_ISA_NAME(ln_move_any)
#define ln_move_block LNORM_ISA_NAME(ln_move_block)
#define ln_element_of LNORM_ISA_NAME(ln_element_of)
#define ln_gather LNORM_ISA_NAME(ln_gather)
#define ln_put_lane LNORM_ISA_NAME(ln_put_lane)
#define ln_scatter LNORM_ISA_NAME(ln_scatter)
#define ln_gather_affine LNORM_ISA_NAME(ln_gather_affine)

/* general_groups.inc */
#define ln_given_statistics LNORM_ISA_NAME(ln_given_statistics)
#define ln_sum_moments LNORM_ISA_NAME(ln_sum_moments)
#define ln_statistics LNORM_ISA_NAME(ln_statistics)
#define ln_update_running LNORM_ISA_NAME(ln_update_running)
#define ln_apply LNORM_ISA_NAME(ln_apply)
#define ln_forward_blocks LNORM_ISA_NAME(ln_forward_blocks)
#define ln_forward LNORM_ISA_NAME(ln_forward)
#define ln_sum_gradient LNORM_ISA_NAME(ln_sum_gradient)
#define ln_gradient_means LNORM_ISA_NAME(ln_gradient_means)
#define ln_apply_gradient LNORM_ISA_NAME(ln_apply_gradient)
#define ln_backward_block LNORM_ISA_NAME(ln_backward_block)
#define ln_backward LNORM_ISA_NAME(ln_backward)

/* general_affine.inc */
#define ln_records_of LNORM_ISA_NAME(ln_records_of)
#define ln_put_gradient LNORM_ISA_NAME(ln_put_gradient)
#define ln_add_product LNORM_ISA_NAME(ln_add_product)
#define ln_add_lane LNORM_ISA_NAME(ln_add_lane)
#define ln_strip_block LNORM_ISA_NAME(ln_strip_block)
#define ln_store_strip LNORM_ISA_NAME(ln_store_strip)
#define ln_affine_strip LNORM_ISA_NAME(ln_affine_strip)
#define ln_sum_inner LNORM_ISA_NAME(ln_sum_inner)
#define ln_add_outer LNORM_ISA_NAME(ln_add_outer)
#define ln_affine_entries LNORM_ISA_NAME(ln_affine_entries)
#define ln_affine_bundles LNORM_ISA_NAME(ln_affine_bundles)

/* general.inc */
#define ln_affine_task LNORM_ISA_NAME(ln_affine_task)
#define ln_dx LNORM_ISA_NAME(ln_dx)
#define ln_general_task LNORM_ISA_NAME(ln_general_task)

#endif
