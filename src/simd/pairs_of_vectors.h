/* Two vectors of 16-bit elements at once, where there is nothing to gain by it. */

LNORM_INLINE void vd_load_pair_f16(const void *at, vd a[2]) {
    a[0] = vd_load_f16(at);
    a[1] = vd_load_f16((const char *)at + 2 * VD_WIDTH);
}

LNORM_INLINE void vd_load_pair_bf16(const void *at, vd a[2]) {
    a[0] = vd_load_bf16(at);
    a[1] = vd_load_bf16((const char *)at + 2 * VD_WIDTH);
}

LNORM_INLINE void vd_store_pair_f16(void *at, const vd a[2]) {
    vd_store_f16(at, a[0]);
    vd_store_f16((char *)at + 2 * VD_WIDTH, a[1]);
}

LNORM_INLINE void vd_store_pair_bf16(void *at, const vd a[2]) {
    vd_store_bf16(at, a[0]);
    vd_store_bf16((char *)at + 2 * VD_WIDTH, a[1]);
}
