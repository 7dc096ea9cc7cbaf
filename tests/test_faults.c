/* lnorm_files, layers and pools while calls of the C library fail, one after the other, every one once: a message, the
 * right status, nothing left behind, nothing lost, and what succeeds all the same is right. */
#include "faults/faults.h"
#include "files_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLS = 300, ROWS = 70, BYTES = 4 * COLS * ROWS };

/* A deed does something with the library and undoes all of it but the file "out". */
typedef lnorm_status deed(lnorm_error *error);

static float values[ROWS * COLS];
static unsigned char wanted[2 * BYTES], found[2 * BYTES];

static lnorm_status read_all(lnorm_file *file, lnorm_error *error) {
    float got[COLS];
    if (!file)
        return error->status;
    lnorm_status status = lnorm_file_read(file, got, 0, COLS, error);
    if (!status)
        assert_memory_equal(got, values, sizeof got);
    lnorm_file_close(file);
    return status;
}

static lnorm_status read_npy(lnorm_error *error) {
    return read_all(lnorm_file_open("x.npy", NULL, error), error);
}

static lnorm_status read_pipe(lnorm_error *error) {
    return read_all(lnorm_file_open("-", NULL, error), error);
}

/* Standard input becomes a pipe that holds row.npy; what it was before. */
static int pipe_in(void) {
    int ends[2];
    char file[4096];
    size_t size = read_bytes("row.npy", file, sizeof file);
    assert_int_equal(pipe(ends), 0);
    assert_true(write(ends[1], file, size) == (ssize_t)size);
    close(ends[1]);
    return redirect(0, ends[0]);
}

static lnorm_status read_tensor(lnorm_error *error) {
    return read_all(lnorm_file_open("model.safetensors:a.norm.weight", NULL, error), error);
}

static lnorm_status read_model(lnorm_error *error) {
    lnorm_model *model = lnorm_model_open("model.safetensors", error);
    if (!model)
        return error->status;
    assert_int_equal(lnorm_model_norms(model), 2);
    lnorm_status status = read_all(lnorm_model_read(model, lnorm_model_norm_at(model, 0)->weight, error), error);
    lnorm_model_close(model);
    return status;
}

static lnorm_status write_npy_file(lnorm_error *error) {
    const int64_t shape[] = {ROWS, COLS};
    lnorm_file_writer *writer = lnorm_file_create("out", LNORM_F32, 2, shape, error);
    if (!writer)
        return error->status;
    lnorm_status status = lnorm_file_write(writer, values, 0, ROWS * COLS, error);
    if (!status)
        return lnorm_file_commit(writer, error);
    lnorm_file_abort(writer);
    return status;
}

static lnorm_status write_by_link(lnorm_error *error) {
    unlink("link");
    assert_int_equal(symlink("out", "link"), 0);
    const int64_t shape[] = {COLS};
    lnorm_file_writer *writer = lnorm_file_create("link", LNORM_F32, 1, shape, error);
    lnorm_status status = writer ? lnorm_file_write(writer, values, 0, COLS, error) : error->status;
    if (writer && !status)
        status = lnorm_file_commit(writer, error);
    else
        lnorm_file_abort(writer);
    unlink("link");
    return status;
}

static lnorm_status save_model(const char *path, lnorm_error *error) {
    const int64_t shape[] = {COLS};
    const lnorm_tensor row = lnorm_dense(values, LNORM_F32, 1, shape);
    const lnorm_named_tensor tensors[] = {
        {"a.norm.weight", row}, {"a.norm.bias", row}, {"b.ln.weight", row}, {"other", row}};
    return lnorm_model_save(path, tensors, 4, error);
}

static lnorm_status write_model(lnorm_error *error) {
    return save_model("out", error);
}

static lnorm_layer *layer_of_row(lnorm_error *error) {
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    config.normalized_size = COLS;
    return lnorm_layer_create(&config, error);
}

static lnorm_status load_and_save_layer(lnorm_error *error) {
    lnorm_layer *layer = layer_of_row(error);
    if (!layer)
        return error->status;
    lnorm_status status = lnorm_layer_load(layer, "model.safetensors", "a.norm.", error);
    const float *weight = lnorm_layer_weight(layer)->data, *bias = lnorm_layer_bias(layer)->data;
    for (int i = 0; i < COLS; i++) { /* all or nothing */
        assert_true(weight[i] == (status ? 1.0f : values[i]));
        assert_true(bias[i] == (status ? 0.0f : values[i]));
    }
    if (!status)
        status = lnorm_layer_save(layer, "out", "a.", error);
    lnorm_layer_destroy(layer);
    return status;
}

/* Backward does without memory, so only creation can fail. */
static lnorm_status train_layer(lnorm_error *error) {
    static float gradient[ROWS * COLS], first[COLS];
    static int known;
    const int64_t shape[] = {ROWS, COLS};
    const lnorm_tensor x = lnorm_dense(values, LNORM_F32, 2, shape), dx = lnorm_dense(gradient, LNORM_F32, 2, shape);
    lnorm_layer *layer = layer_of_row(error);
    if (!layer)
        return error->status;
    assert_int_equal(lnorm_layer_backward(layer, &dx, &x, &x, error), LNORM_OK);
    const float *sums = lnorm_layer_weight_grad(layer)->data;
    if (!known++)
        memcpy(first, sums, sizeof first);
    assert_memory_equal(first, sums, sizeof first);
    lnorm_layer_destroy(layer);
    return LNORM_OK;
}

/* Threads that cannot be started are done without. */
static lnorm_status use_pool(lnorm_error *error) {
    static float y[ROWS * COLS], first[ROWS * COLS];
    static int known;
    const int64_t shape[] = {1, ROWS * COLS};
    const lnorm_tensor x = lnorm_dense(values, LNORM_F32, 2, shape), out = lnorm_dense(y, LNORM_F32, 2, shape);
    const int64_t axes[] = {0};
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_pool *pool = lnorm_pool_create(5, error);
    if (!pool)
        return error->status;
    op.axes = axes;
    op.axes_count = 1;
    io.x = &x;
    io.y = &out;
    for (int i = 0; i < 3; i++)
        assert_int_equal(lnorm_run(&op, &io, lnorm_pool_executor(pool), error), LNORM_OK);
    if (!known++)
        memcpy(first, y, sizeof first);
    assert_memory_equal(first, y, sizeof first);
    lnorm_pool_destroy(pool);
    return LNORM_OK;
}

static const struct {
    const char *name;
    deed *run;
    int writes, memory_only;
} deeds[] = {{"an .npy file read", read_npy, 0, 0},
             {"a pipe read", read_pipe, 0, 0},
             {"a tensor read", read_tensor, 0, 0},
             {"a model read", read_model, 0, 0},
             {"an .npy file written", write_npy_file, 1, 0},
             {"a link written to", write_by_link, 1, 0},
             {"a model written", write_model, 1, 0},
             {"a layer loaded and saved", load_and_save_layer, 1, 0},
             {"a layer trained", train_layer, 0, 1},
             {"a pool used", use_pool, 0, 1}};
enum { DEEDS = sizeof deeds / sizeof *deeds };

static int descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count;
}

static void enter(void **state) {
    lnorm_error error = LNORM_ERROR_INIT;
    const int64_t shape[] = {COLS};
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = (float)(i % 101) - 40.0f;
    assert_int_equal(write_npy_file(&error), 0);
    assert_int_equal(rename("out", "whole.npy"), 0);
    lnorm_file_writer *writer = lnorm_file_create("row.npy", LNORM_F32, 1, shape, &error);
    assert_int_equal(lnorm_file_write(writer, values, 0, COLS, &error), 0);
    assert_int_equal(lnorm_file_commit(writer, &error), 0);
    assert_int_equal(rename("whole.npy", "x.npy"), 0);
    assert_int_equal(save_model("model.safetensors", &error), 0);
}

/* What the deed leaves in "out" where nothing fails. */
static size_t expectation(int d) {
    lnorm_error error = LNORM_ERROR_INIT;
    int saved = pipe_in();
    assert_int_equal(deeds[d].run(&error), LNORM_OK);
    restore(0, saved);
    return deeds[d].writes ? read_bytes("out", wanted, sizeof wanted) : 0;
}

/* One run with a fault in it; returns whether it came to the fault. *failed: it was noticed. */
static int attempt(int d, const char *call, long nth, int effect, size_t size, int *failed) {
    lnorm_error error = LNORM_ERROR_INIT;
    write_bytes("out", "before", 6);
    int saved = pipe_in(), entries = scratch_entries(), open_ones = descriptors();
    long blocks = faults_blocks();
    faults_arm(call, nth, effect);
    lnorm_status status = deeds[d].run(&error);
    long fired = faults_disarm();
    if (faults_blocks() != blocks || descriptors() != open_ones || scratch_entries() != entries)
        fail_msg("%s, %s %ld: %ld blocks, %d descriptors, %d files left over", deeds[d].name, call, nth,
                 faults_blocks() - blocks, descriptors() - open_ones, scratch_entries() - entries);
    restore(0, saved);
    *failed = status != LNORM_OK;
    if (status != error.status || !status != !error.message[0])
        fail_msg("%s, %s %ld: status %d, error %d '%s'", deeds[d].name, call, nth, status, error.status, error.message);
    int json = !!strstr(error.message, "expected a JSON object"); /* so says jansson without memory for a word */
    if (effect == ENOMEM && status && status != LNORM_OUT_OF_MEMORY && !json)
        fail_msg("%s, %s %ld: '%s'", deeds[d].name, call, nth, error.message);
    if (effect == EIO && status && (status != LNORM_NOT_AVAILABLE || !strstr(error.message, "Input/output error")))
        fail_msg("%s, %s %ld: '%s'", deeds[d].name, call, nth, error.message);
    size_t there = read_bytes("out", found, sizeof found);
    int whole = deeds[d].writes && there == size && !memcmp(found, wanted, size);
    int before = there == 6 && !memcmp(found, "before", 6);
    if (!(status || !deeds[d].writes ? before : whole))
        fail_msg("%s, %s %ld: status %d, but \"out\" is neither old nor new", deeds[d].name, call, nth, status);
    return fired != 0;
}

/* Every call of this name fails once. Returns how many were noticed. */
static int each(int d, const char *call, int effect) {
    size_t size = expectation(d);
    int noticed = 0, failed, n = 1;
    while (attempt(d, call, n, effect, size, &failed)) {
        noticed += failed;
        n++;
        assert_true(n < 10000);
    }
    assert_false(failed);
    return noticed;
}

static void test_no_memory(void **state) {
    enter(state);
    for (int d = 0; d < DEEDS; d++)
        assert_true(each(d, "malloc", ENOMEM) > 0);
}

static void test_refused_calls(void **state) {
    static const char *const calls[] = {"open", "read", "write", "fsync", "close", "rename", "fchmod", "mkstemp",
                                        "fstat", "lseek", "fcntl"};
    enter(state);
    for (int d = 0; d < DEEDS; d++)
        for (size_t c = 0; c < sizeof calls / sizeof *calls && !deeds[d].memory_only; c++)
            each(d, calls[c], EIO);
    assert_true(each(4, "fsync", EIO) == 1); /* the file, but not the directory */
    assert_true(each(4, "write", ENOSPC) == 2);
    assert_true(each(4, "rename", EIO) == 1);
    assert_true(each(1, "mkstemp", EIO) == 1);
}

/* Interrupted and short transfers are resumed. */
static void test_resumed_calls(void **state) {
    static const char *const calls[] = {"open", "read", "write", "fsync"};
    int failed;
    enter(state);
    for (int d = 0; d < DEEDS; d++)
        for (size_t c = 0; c < sizeof calls / sizeof *calls && !deeds[d].memory_only; c++) {
            size_t size = expectation(d);
            attempt(d, calls[c], 0, EINTR, size, &failed);
            assert_false(failed);
            attempt(d, calls[c], 0, 0, size, &failed);
            assert_false(failed);
        }
}

static void test_no_threads(void **state) {
    enter(state);
    assert_int_equal(each(DEEDS - 1, "thread", EAGAIN), 0);
    assert_int_equal(each(DEEDS - 1, "thread", ENOMEM), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_no_memory), SCRATCH_TEST(test_refused_calls),
                                       SCRATCH_TEST(test_resumed_calls), SCRATCH_TEST(test_no_threads)};
    open_standard_descriptors();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
