/* Layers saved and loaded: every type into every type, and errors that leave the layer as it was. */
#include "files_scratch.h"

#include "access.h"

#include <string.h>

enum { COUNT = 6 };
static const int64_t shape[] = {2, 3};

static const lnorm_dtype *types(void) {
    static lnorm_dtype all[4];
    all[0] = LNORM_F64;
    all[1] = LNORM_F32;
    all[2] = LNORM_F16;
    all[3] = LNORM_BF16;
    return all;
}

static lnorm_layer *create(lnorm_dtype dtype, int weight, int bias) {
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    config.normalized_shape = shape;
    config.normalized_ndim = 2;
    config.dtype = dtype;
    config.elementwise_affine = weight;
    config.bias = bias;
    lnorm_layer *layer = lnorm_layer_create(&config, NULL);
    assert_non_null(layer);
    return layer;
}

static void save(const lnorm_layer *layer, const char *prefix) {
    lnorm_error error = stale_error();
    assert_int_equal(lnorm_layer_save(layer, "m.safetensors", prefix, &error), LNORM_OK);
    assert_succeeded(&error);
}

static void load(lnorm_layer *layer, const char *prefix) {
    lnorm_error error = stale_error();
    assert_int_equal(lnorm_layer_load(layer, "m.safetensors", prefix, &error), LNORM_OK);
    assert_succeeded(&error);
}

static size_t bytes_of(const lnorm_tensor *tensor) {
    return (size_t)COUNT * tensor->dtype.bits / 8;
}

/* Bytes 1, 2, 3, ...: different numbers, in each type. */
static void number(const lnorm_tensor *tensor, int first) {
    for (size_t i = 0; i < bytes_of(tensor); i++)
        ((unsigned char *)tensor->data)[i] = (unsigned char)((size_t)first + i);
}

static void assert_same(const lnorm_tensor *a, const lnorm_tensor *b) {
    assert_memory_equal(a->data, b->data, bytes_of(a));
}

static void there_and_back(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 3; kind++) {
            lnorm_layer *from = create(types()[t], kind > 0, kind > 1), *to = create(types()[t], kind > 0, kind > 1);
            if (kind > 0)
                number(lnorm_layer_weight(from), 1);
            if (kind > 1)
                number(lnorm_layer_bias(from), 60);
            save(from, t % 2 ? "encoder.norm." : NULL);
            lnorm_model *model = open_model("m.safetensors");
            assert_int_equal(lnorm_model_count(model), kind);
            assert_int_equal(lnorm_model_find(model, t % 2 ? "encoder.norm.weight" : "weight") != NULL, kind > 0);
            assert_int_equal(lnorm_model_find(model, t % 2 ? "encoder.norm.bias" : "bias") != NULL, kind > 1);
            lnorm_model_close(model);
            load(to, t % 2 ? "encoder.norm." : "");
            if (kind > 0)
                assert_same(lnorm_layer_weight(to), lnorm_layer_weight(from));
            if (kind > 1)
                assert_same(lnorm_layer_bias(to), lnorm_layer_bias(from));
            lnorm_layer_destroy(from);
            lnorm_layer_destroy(to);
        }
}

static uint64_t bits_at(const lnorm_tensor *tensor, int index) {
    uint64_t wide = 0;
    uint32_t word = 0;
    uint16_t half = 0;
    const char *at = (const char *)tensor->data + (ptrdiff_t)index * tensor->dtype.bits / 8;
    memcpy(&wide, at, tensor->dtype.bits == 64 ? 8 : 0);
    memcpy(&word, at, tensor->dtype.bits == 32 ? 4 : 0);
    memcpy(&half, at, tensor->dtype.bits == 16 ? 2 : 0);
    return tensor->dtype.bits == 64 ? wide : tensor->dtype.bits == 32 ? word : half;
}

static void set_bits(const lnorm_tensor *tensor, int index, uint64_t bits) {
    const uint32_t word = (uint32_t)bits;
    const uint16_t half = (uint16_t)bits;
    char *at = (char *)tensor->data + (ptrdiff_t)index * tensor->dtype.bits / 8;
    memcpy(at,
           tensor->dtype.bits == 64   ? (const void *)&bits
           : tensor->dtype.bits == 32 ? (const void *)&word
                                      : &half,
           tensor->dtype.bits / 8);
}

/* Numbers whose conversion shows how often and how it is rounded, as bits of f64, f32, f16, bf16 in this order; 0 where
 * that type is not the one converted from or to. */
static void conversions(void **state) {
    static const struct {
        int from, to;
        uint64_t from_bits, to_bits;
    } cases[] = {
        /* just above the middle of 1 and the next f32, bf16, f16: up. By way of f32 the last two would be ties, and
           even */
        {0, 1, 0x3FF0000010000001, 0x3F800001},
        {0, 3, 0x3FF0100000000001, 0x3F81},
        {0, 2, 0x3FF0020000000001, 0x3C01},
        /* ties: to even, down and up */
        {0, 1, 0x3FF0000010000000, 0x3F800000},
        {0, 1, 0x3FF0000030000000, 0x3F800002},
        {1, 3, 0x3F808000, 0x3F80},
        {1, 3, 0x3F818000, 0x3F82},
        {1, 2, 0x3F801000, 0x3C00},
        {1, 2, 0x3F803000, 0x3C02},
        /* overflow, at the middle beyond the largest number, and just below */
        {0, 1, 0x47EFFFFFF0000000, 0x7F800000},
        {0, 1, 0xC7EFFFFFEFFFFFFF, 0xFF7FFFFF},
        {1, 2, 0x477FF000, 0x7C00},
        {1, 2, 0x477FEFFF, 0x7BFF},
        {1, 3, 0x7F7F8000, 0x7F80},
        {3, 2, 0x4780, 0x7C00},
        /* subnormal results and operands, and what is less than half of the least */
        {0, 1, 0x36A0000000000000, 0x00000001},
        {0, 1, 0x3690000000000000, 0},
        {0, 1, 0x3690000000000001, 1},
        {1, 2, 0x33800000, 0x0001},
        {1, 2, 0x33000000, 0x0000},
        {1, 2, 0x33000001, 0x0001},
        {2, 1, 0x0001, 0x33800000},
        {2, 0, 0x8001, 0xBE70000000000000},
        {3, 1, 0x0001, 0x00010000},
        {1, 3, 0x00018000, 0x0002},
        {1, 0, 1, 0x36A0000000000000},
        {0, 3, 0x0000000000000001, 0x0000},
        {0, 3, 0x8000000000000001, 0x8000},
        /* zeros and infinities */
        {0, 1, 0x8000000000000000, 0x80000000},
        {2, 3, 0x8000, 0x8000},
        {3, 2, 0x8000, 0x8000},
        {1, 2, 0x80000000, 0x8000},
        {0, 2, 0x7FF0000000000000, 0x7C00},
        {1, 3, 0xFF800000, 0xFF80},
        {2, 0, 0xFC00, 0xFFF0000000000000},
        {3, 1, 0x7F80, 0x7F800000},
        /* exact */
        {2, 3, 0x3C00, 0x3F80},
        {3, 0, 0x4049, 0x4009200000000000},
        {1, 0, 0x40490FDB, 0x400921FB60000000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lnorm_layer *from = create(types()[cases[i].from], 1, 1), *to = create(types()[cases[i].to], 1, 1);
        set_bits(lnorm_layer_weight(from), 4, cases[i].from_bits);
        set_bits(lnorm_layer_bias(from), 5, cases[i].from_bits);
        save(from, "x.");
        load(to, "x.");
        if (bits_at(lnorm_layer_weight(to), 4) != cases[i].to_bits ||
            bits_at(lnorm_layer_bias(to), 5) != cases[i].to_bits)
            fail_msg("case %zu: %llx", i, (unsigned long long)bits_at(lnorm_layer_weight(to), 4));
        set_bits(lnorm_layer_weight(from), 4, bits_at(lnorm_layer_weight(from), 3)); /* 1 */
        save(from, "x.");
        load(to, "x.");
        assert_true(bits_at(lnorm_layer_weight(to), 4) == bits_at(lnorm_layer_weight(to), 0));
        lnorm_layer_destroy(from);
        lnorm_layer_destroy(to);
    }
}

/* Random bits, all exponents and so all kinds of numbers, against the core's rounding. */
static void conversions_at_random(void **state) {
    enum { MANY = 3000 };
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    uint64_t z = 1;
    (void)state;
    config.normalized_size = MANY;
    config.bias = 0;
    for (int pair = 0; pair < 16; pair++) {
        config.dtype = types()[pair / 4];
        lnorm_layer *from = lnorm_layer_create(&config, NULL);
        config.dtype = types()[pair % 4];
        lnorm_layer *to = lnorm_layer_create(&config, NULL);
        const lnorm_tensor *x = lnorm_layer_weight(from), *y = lnorm_layer_weight(to);
        for (int i = 0; i < MANY; i++) {
            z = z * 0x5851F42D4C957F2D + 0x14057B7EF767814F;
            uint64_t bits = z >> 32 | z << 32;
            if (i % 2 && pair / 4 == 0) /* exponents that narrower types have, more often than chance gives them */
                bits = (bits & 0x800FFFFFFFFFFFFF) | (uint64_t)(1023 - 155 + i % 310) << 52;
            if (i % 3 == 0) /* few bits: ties */
                bits &= ~(uint64_t)0 << (x->dtype.bits / 2 + 6);
            set_bits(x, i, bits);
        }
        save(from, "");
        load(to, "");
        for (int i = 0; i < MANY; i++) {
            double exact = lnorm_load((enum lnorm_element)(pair / 4), x->data, i), got, expected;
            char rounded[8];
            lnorm_store((enum lnorm_element)(pair % 4), rounded, 0, exact);
            expected = lnorm_load((enum lnorm_element)(pair % 4), rounded, 0);
            got = lnorm_load((enum lnorm_element)(pair % 4), y->data, i);
            if (expected != expected ? got == got : lnorm_bits_of_f64(got) != lnorm_bits_of_f64(expected))
                fail_msg("%d: %a became %a, not %a", pair, exact, got, expected);
        }
        lnorm_layer_destroy(from);
        lnorm_layer_destroy(to);
    }
}

static void nan_stays_nan(void **state) {
    static const uint64_t nan[] = {0x7FF0000000000001, 0x7F800001, 0x7C01, 0x7F81};
    static const uint64_t infinity[] = {0x7FF0000000000000, 0x7F800000, 0x7C00, 0x7F80};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            lnorm_layer *from = create(types()[i], 1, 1), *to = create(types()[j], 1, 1);
            set_bits(lnorm_layer_weight(from), 1, nan[i]);
            save(from, "");
            load(to, "");
            uint64_t sign = (uint64_t)1 << (lnorm_layer_weight(to)->dtype.bits - 1);
            assert_true((bits_at(lnorm_layer_weight(to), 1) & (sign - 1)) > infinity[j]);
            lnorm_layer_destroy(from);
            lnorm_layer_destroy(to);
        }
}

static void refuses_to_load(const char *path, const char *prefix, int bias, lnorm_status status, const char *message) {
    lnorm_error error = stale_error();
    lnorm_layer *layer = create(LNORM_F32, 1, bias), *same = create(LNORM_F32, 1, bias);
    number(lnorm_layer_weight(layer), 1);
    number(lnorm_layer_weight(same), 1);
    assert_int_equal(lnorm_layer_load(layer, path, prefix, &error), status);
    assert_failed(&error, status, message);
    assert_int_equal(lnorm_layer_load(layer, path, prefix, NULL), status);
    assert_same(lnorm_layer_weight(layer), lnorm_layer_weight(same));
    if (bias)
        assert_same(lnorm_layer_bias(layer), lnorm_layer_bias(same));
    lnorm_layer_destroy(layer);
    lnorm_layer_destroy(same);
}

#define T(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void refused_files(void **state) {
    const char *m = "m.safetensors";
    (void)state;
    refuses_to_load(m, "n.", 1, LNORM_NOT_AVAILABLE,
                    "'m.safetensors': cannot be opened for reading: No such file or directory");
    write_safetensors(m, "{" T("n.weight", "F32", "[2,3]", "[0,24]") "," T("m.bias", "F32", "[2,3]", "[24,48]") "}",
                      48);
    refuses_to_load(m, "n.", 1, LNORM_INVALID_ARGUMENT,
                    "'m.safetensors': the key 'n.bias' is missing (it has 2 others)");
    refuses_to_load(m, "m.", 1, LNORM_INVALID_ARGUMENT,
                    "'m.safetensors': the key 'm.weight' is missing (it has 2 others)");
    refuses_to_load(m, NULL, 1, LNORM_INVALID_ARGUMENT,
                    "'m.safetensors': the key 'weight' is missing (it has 2 others)");
    write_safetensors(m,
                      "{" T("n.weight", "F32", "[2,3]", "[0,24]") "," T("n.bias", "F32", "[2,3]", "[24,48]") "," T(
                          "n.more", "U8", "[1]", "[48,49]") "," T("n.deeper.more", "U8", "[1]", "[49,50]") "}",
                      50);
    refuses_to_load(m, "n.", 0, LNORM_INVALID_ARGUMENT,
                    "'m.safetensors': the key 'n.bias' is unexpected: the layer has weight only");
    refuses_to_load(m, "n.", 1, LNORM_INVALID_ARGUMENT,
                    "'m.safetensors': the key 'n.more' is unexpected: the layer has weight and bias");
    write_safetensors(m,
                      "{" T("weight", "F32", "[2,3]", "[0,24]") "," T("bias", "F32", "[6]", "[24,48]") "," T(
                          "deeper.more", "U8", "[1]", "[48,49]") "}",
                      49);
    refuses_to_load(m, "", 1, LNORM_SHAPE_MISMATCH,
                    "'m.safetensors': key 'bias': expected shape [2, 3], the layer's, got [6]");
    write_safetensors(m, "{" T("weight", "F32", "[2,3]", "[0,24]") "," T("bias", "I32", "[2,3]", "[24,48]") "}", 48);
    refuses_to_load(m, "", 1, LNORM_UNSUPPORTED_DTYPE,
                    "'m.safetensors': tensor 'bias': expected float64, float32, float16 or "
                    "bfloat16 (F64, F32, F16, BF16), got 'I32'");
    write_safetensors(m, "{}", 1);
    refuses_to_load(
        m, "", 1, LNORM_INVALID_ARGUMENT,
        "'m.safetensors': expected the end of the file after the 0 bytes of data that the tensors take, got 1 "
        "bytes more");
    refuses_to_load(NULL, "", 1, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
}

static void refused_arguments(void **state) {
    lnorm_error error = stale_error();
    lnorm_layer *layer = create(LNORM_F32, 1, 1), *bare = create(LNORM_F32, 0, 0);
    (void)state;
    assert_int_equal(lnorm_layer_load(NULL, "m.safetensors", "", &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "layer: expected what lnorm_layer_create gave, got NULL");
    assert_int_equal(lnorm_layer_save(NULL, "m.safetensors", "", &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "layer: expected what lnorm_layer_create gave, got NULL");
    assert_int_equal(lnorm_layer_save(layer, "none/m", "", &error), LNORM_NOT_AVAILABLE);
    assert_failed(&error, LNORM_NOT_AVAILABLE,
                  "'none/m': a temporary file beside it cannot be created: No such file or directory");
    assert_int_equal(lnorm_layer_save(layer, "m.safetensors", "\xFF", &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "tensor '\xFFweight': expected a name in UTF-8");
    save(layer, "");
    assert_int_equal(lnorm_layer_load(bare, "m.safetensors", "", &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "'m.safetensors': the key 'bias' is unexpected: the layer has no parameters");
    lnorm_layer_destroy(layer);
    lnorm_layer_destroy(bare);
}

int layer_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(there_and_back), SCRATCH_TEST(conversions),   SCRATCH_TEST(conversions_at_random),
        SCRATCH_TEST(nan_stays_nan),  SCRATCH_TEST(refused_files), SCRATCH_TEST(refused_arguments),
    };
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
