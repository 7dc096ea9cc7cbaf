/* Which tensors count as norms. */
#include "files_scratch.h"

#include <stdio.h>
#include <string.h>

typedef struct named {
    const char *name;
    int ndim; /* of extents 2 */
} named;

/* Saves empty-ish tensors of these names, F32; their order in the file is that of the names. */
static lnorm_model *model_of(const named *list, int count) {
    static const float zeros[8];
    static const int64_t twos[] = {2, 2, 2};
    lnorm_named_tensor tensors[40];
    for (int i = 0; i < count; i++)
        tensors[i] = (lnorm_named_tensor){list[i].name, lnorm_dense(zeros, LNORM_F32, list[i].ndim, twos)};
    assert_int_equal(lnorm_model_save("m.safetensors", tensors, count, NULL), LNORM_OK);
    return open_model("m.safetensors");
}

static void assert_norm(const lnorm_model *model, int64_t index, const char *name, const char *weight,
                        const char *bias) {
    const lnorm_model_norm *norm = lnorm_model_norm_at(model, index);
    assert_non_null(norm);
    assert_string_equal(norm->name, name);
    assert_string_equal(norm->weight->name, weight);
    assert_int_equal(norm->weight->shape[0], 2);
    if (bias)
        assert_string_equal(norm->bias->name, bias);
    else
        assert_null(norm->bias);
}

/* Found or not, by name alone: name.weight with name.bias. */
static void by_name(void **state) {
    static const char *const norms[] = {"LayerNorm",
                                        "layer_norm",
                                        "norm",
                                        "norm1",
                                        "ln_1",
                                        "ln_f",
                                        "ln1",
                                        "ln",
                                        "RMSNorm",
                                        "attn_ln",
                                        "model.layers.0.input_layernorm",
                                        "h.0.q_norm",
                                        "a.norms.3",
                                        "norm.0",
                                        "LAYERNORM",
                                        "bert/LayerNorm"};
    static const char *const others[] = {"dense",      "lnx",     "aln", "kiln", "vulnerable",
                                         "norm.dense", "norms/x", "0",   "w.1"};
    (void)state;
    for (size_t i = 0; i < sizeof norms / sizeof *norms + sizeof others / sizeof *others; i++) {
        size_t count = sizeof norms / sizeof *norms;
        const char *name = i < count ? norms[i] : others[i - count];
        char weight[80], bias[80];
        snprintf(weight, sizeof weight, "%s.weight", name);
        snprintf(bias, sizeof bias, "%s.bias", name);
        const named list[] = {{weight, 1}, {bias, 1}};
        lnorm_model *model = model_of(list, 2);
        if (lnorm_model_norms(model) != (i < count))
            fail_msg("%s: %lld", name, (long long)lnorm_model_norms(model));
        if (i < count)
            assert_norm(model, 0, name, weight, bias);
        lnorm_model_close(model);
    }
}

static void by_shape_and_company(void **state) {
    static const named list[] = {
        {"a.norm.bias", 1},
        {"a.norm.weight", 1},
        {"b.norm.bias", 1},
        {"c.norm.weight", 2},
        {"d.norm.bias", 2},
        {"d.norm.weight", 1},
        {"e/LayerNorm/beta", 1},
        {"e/LayerNorm/gamma", 1},
        {"f.norm.scale", 1},
        {"g.norm.weight", 1},
        {"h.bn_norm.running_mean", 1},
        {"h.bn_norm.weight", 1},
        {"i.norm.beta", 1},
        {"i.norm.weight", 1},
        {"j.norm.weight_v", 1},
        {"norm.gamma", 0},
    };
    (void)state;
    lnorm_model *model = model_of(list, sizeof list / sizeof *list);
    assert_int_equal(lnorm_model_norms(model), 5);
    assert_norm(model, 0, "a.norm", "a.norm.weight", "a.norm.bias");
    assert_norm(model, 1, "e/LayerNorm", "e/LayerNorm/gamma", "e/LayerNorm/beta");
    assert_norm(model, 2, "f.norm", "f.norm.scale", NULL);
    assert_norm(model, 3, "g.norm", "g.norm.weight", NULL);
    assert_norm(model, 4, "i.norm", "i.norm.weight", NULL); /* beta belongs to gamma */
    assert_null(lnorm_model_norm_at(model, -1));
    assert_null(lnorm_model_norm_at(model, 5));
    lnorm_model_close(model);
}

/* Without a name before it, where there is nothing else in the file. */
static void a_layer_alone(void **state) {
    static const named list[] = {{"bias", 1}, {"weight", 1}, {"x", 1}};
    (void)state;
    lnorm_model *model = model_of(list, 2);
    assert_int_equal(lnorm_model_norms(model), 1);
    assert_norm(model, 0, "", "weight", "bias");
    lnorm_model_close(model);
    model = model_of(list + 1, 1);
    assert_int_equal(lnorm_model_norms(model), 1);
    assert_norm(model, 0, "", "weight", NULL);
    lnorm_model_close(model);
    model = model_of(list, 3);
    assert_int_equal(lnorm_model_norms(model), 0);
    lnorm_model_close(model);
}

/* In the order of the data, which need not be that of the header. */
static void file_order(void **state) {
    (void)state;
    write_safetensors("m.safetensors",
                      "{\"a.norm.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                      "\"b.norm.weight\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                      8);
    lnorm_model *model = open_model("m.safetensors");
    assert_int_equal(lnorm_model_norms(model), 2);
    assert_string_equal(lnorm_model_norm_at(model, 0)->name, "b.norm");
    assert_string_equal(lnorm_model_norm_at(model, 0)->weight->dtype_name, "I32");
    assert_string_equal(lnorm_model_norm_at(model, 1)->name, "a.norm");
    lnorm_model_close(model);
}

int norm_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(by_name),
        SCRATCH_TEST(by_shape_and_company),
        SCRATCH_TEST(a_layer_alone),
        SCRATCH_TEST(file_order),
    };
    return cmocka_run_group_tests_name("norms of a model", tests, NULL, NULL);
}
