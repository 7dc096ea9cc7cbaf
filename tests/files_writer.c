/* Writing .npy files: their bytes, and that a target is complete or untouched whatever happens. */
#include "files_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static lnorm_file_writer *create(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape) {
    lnorm_error error = stale_error();
    lnorm_file_writer *writer = lnorm_file_create(path, dtype, ndim, shape, &error);
    assert_succeeded(&error);
    assert_non_null(writer);
    return writer;
}

static void put(lnorm_file_writer *writer, const void *buffer, int64_t first, int64_t count) {
    lnorm_error error = stale_error();
    assert_int_equal(lnorm_file_write(writer, buffer, first, count, &error), LNORM_OK);
    assert_succeeded(&error);
}

static void commit(lnorm_file_writer *writer) {
    lnorm_error error = stale_error();
    assert_int_equal(lnorm_file_commit(writer, &error), LNORM_OK);
    assert_succeeded(&error);
}

static void assert_content(const char *path, const void *bytes, size_t size) {
    unsigned char content[2000];
    assert_int_equal(read_bytes(path, content, sizeof content), size);
    assert_memory_equal(content, bytes, size);
}

/* What numpy.save wrote for numpy.array([[1, 2, 3], [4, 5, 6]]) in these types (NumPy 2.4, ml_dtypes 0.6): each header
 * 128 bytes, padded by spaces. */
static void the_bytes_of_numpy(void **state) {
    const struct {
        lnorm_dtype dtype;
        const char *descr;
        int size;
        uint64_t bits[6];
    } types[] = {
        {LNORM_F64,
         "<f8",
         8,
         {0x3FF0000000000000, 0x4000000000000000, 0x4008000000000000, 0x4010000000000000, 0x4014000000000000,
          0x4018000000000000}},
        {LNORM_F32, "<f4", 4, {0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000, 0x40C00000}},
        {LNORM_F16, "<f2", 2, {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}},
        {LNORM_BF16, "<V2", 2, {0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0}},
    };
    const int64_t shape[] = {2, 3};
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        unsigned char expected[128 + 48], native[48];
        const int size = types[t].size;
        const uint16_t one = 1;
        int used = 10 + snprintf((char *)expected + 10, 100,
                                 "{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }", types[t].descr);
        memcpy(expected, "\x93NUMPY\x01\x00\x76\x00", 10);
        memset(expected + used, ' ', (size_t)(127 - used));
        expected[127] = '\n';
        for (int i = 0; i < 6; i++) {
            put_bits(expected + 128 + i * size, types[t].bits[i], size, 0);
            put_bits(native + i * size, types[t].bits[i], size, !*(const unsigned char *)&one);
        }
        lnorm_file_writer *writer = create("y.npy", types[t].dtype, 2, shape);
        assert_true(lnorm_file_writer_seekable(writer));
        put(writer, native + 4 * size, 4, 2); /* any order, any place */
        put(writer, native + 1 * size, 1, 3);
        put(writer, native, 0, 1);
        commit(writer);
        assert_content("y.npy", expected, (size_t)(128 + 6 * size));
        assert_int_equal(scratch_entries(), 1);
    }
}

/* Headers of numpy.save with ranks 0 and 1, without elements, with long extents. */
static void headers_of_every_rank(void **state) {
    const struct {
        int ndim;
        int64_t shape[3];
        const char *text;
        size_t size;
    } cases[] = {
        {0, {0}, "(), }", 128},
        {1, {0}, "(0,), }", 128},
        {2, {0, 5}, "(0, 5), }", 128},
        {3, {1, 0, 123456789012345678}, "(1, 0, 123456789012345678), }", 128},
        {3, {0, 123456789012345678, 1}, "(0, 123456789012345678, 1), }", 128},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[128], content[200];
        lnorm_file_writer *writer = create("y.npy", LNORM_F16, cases[i].ndim, cases[i].shape);
        put(writer, "\1\2", 0, cases[i].ndim == 0);
        commit(writer);
        int used =
            10 + snprintf(header + 10, 110, "{'descr': '<f2', 'fortran_order': False, 'shape': %s", cases[i].text);
        memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
        memset(header + used, ' ', (size_t)(127 - used));
        header[127] = '\n';
        assert_int_equal(read_bytes("y.npy", content, sizeof content), cases[i].ndim ? 128 : 130);
        assert_memory_equal(content, header, 128);
        lnorm_file_close(open_file("y.npy"));
    }
}

static void refused_arguments(void **state) {
    const int64_t shape[] = {2, -1}, large[] = {INT64_MAX / 4, 3};
    lnorm_error error = stale_error();
    (void)state;
    assert_null(lnorm_file_create(NULL, LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "path: expected a pointer, got NULL");
    assert_null(lnorm_file_create("y.npy", LNORM_F32, 1, NULL, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "shape: expected a pointer, got NULL");
    assert_null(lnorm_file_create("", LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "path: expected a file name, got an empty one");
    assert_null(lnorm_file_create("y.npy", LNORM_DTYPE(0, 64), 1, shape, &error));
    assert_failed(&error, LNORM_UNSUPPORTED_DTYPE,
                  "'y.npy': expected float64, float32, float16 or bfloat16, got a type of "
                  "code 0, 64 bits, 1 lanes");
    assert_null(lnorm_file_create("y.npy", LNORM_F32, 17, shape, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'y.npy': ndim: expected 0 to 16, got 17");
    assert_null(lnorm_file_create("y.npy", LNORM_F32, 2, shape, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'y.npy': shape [2, -1]: expected extents of at least 0");
    assert_null(lnorm_file_create("y.npy", LNORM_F32, 2, large, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "'y.npy': shape [2305843009213693951, 3] of float32 is 2^62 bytes or more");
    assert_int_equal(lnorm_file_commit(NULL, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "writer: expected what lnorm_file_create gave, got NULL");
    lnorm_file_abort(NULL);
    assert_int_equal(scratch_entries(), 0);
}

static void refused_runs(void **state) {
    const int64_t shape[] = {3};
    const float buffer[3] = {1, 2, 3};
    lnorm_error error = stale_error();
    (void)state;
    lnorm_file_writer *writer = create("y.npy", LNORM_F32, 1, shape);
    assert_int_equal(lnorm_file_write(writer, buffer, 1, 3, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'y.npy': expected elements among its 3, got 3 from 1 on");
    assert_int_equal(lnorm_file_write(writer, NULL, 1, 1, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "buffer: expected 1 elements, got NULL");
    put(writer, NULL, 3, 0);
    put(writer, buffer, 1, 2);
    assert_int_equal(lnorm_file_commit(writer, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'y.npy': expected 3 elements to be written, got 2");
    assert_int_equal(scratch_entries(), 0);
}

/* Until the commit the target is as it was; the temporary file is beside it, and gone after an abort. */
static void nothing_before_the_commit(void **state) {
    const int64_t shape[] = {1};
    const float one = 1;
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    write_bytes("d/y.npy", "old", 3);
    for (int abort = 1; abort >= 0; abort--) {
        lnorm_file_writer *writer = create("d/y.npy", LNORM_F32, 1, shape);
        assert_int_equal(strncmp(lnorm_file_writer_temporary(writer), "d/.lnorm-", 9), 0);
        assert_int_equal(access(lnorm_file_writer_temporary(writer), F_OK), 0);
        put(writer, &one, 0, 1);
        assert_content("d/y.npy", "old", 3);
        if (abort)
            lnorm_file_abort(writer);
        else
            commit(writer);
        assert_int_equal(chdir("d"), 0);
        assert_int_equal(scratch_entries(), 1);
        assert_int_equal(chdir(".."), 0);
    }
    lnorm_file_close(open_file("d/y.npy"));
}

static mode_t mode_of(const char *path) {
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    return about.st_mode;
}

static void save_one(const char *path) {
    const int64_t shape[] = {1};
    const float one = 1;
    lnorm_file_writer *writer = create(path, LNORM_F32, 1, shape);
    put(writer, &one, 0, 1);
    commit(writer);
}

static void permissions(void **state) {
    mode_t before = umask(027);
    (void)state;
    save_one("new.npy");
    assert_int_equal(mode_of("new.npy") & 07777, 0640);
    write_bytes("old.npy", "old", 3);
    assert_int_equal(chmod("old.npy", 0606), 0);
    save_one("old.npy");
    assert_int_equal(mode_of("old.npy") & 07777, 0606);
    umask(before);
}

static void symbolic_links(void **state) {
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    write_bytes("d/there", "old", 3);
    assert_int_equal(symlink("d/link", "link"), 0); /* link -> d/link -> d/there */
    assert_int_equal(symlink("there", "d/link"), 0);
    assert_int_equal(symlink("d/new", "dangling"), 0);
    save_one("link");
    save_one("dangling");
    assert_true(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("d/link")) && S_ISLNK(mode_of("dangling")));
    assert_true(S_ISREG(mode_of("d/there")) && S_ISREG(mode_of("d/new")));
    lnorm_file_close(open_file("d/there"));
    lnorm_file_close(open_file("d/new"));
    assert_int_equal(scratch_entries(), 3);
    assert_int_equal(symlink("loop", "loop"), 0);
    lnorm_error error = stale_error();
    assert_null(lnorm_file_create("loop", LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_NOT_AVAILABLE, "'loop': cannot be written: Too many levels of symbolic links");
}

static int protected_targets(void) {
    lnorm_error error = stale_error();
    if (lnorm_file_create("y.npy", LNORM_F32, 0, NULL, &error) ||
        strcmp(error.message, "'y.npy': exists and may not be written: Permission denied"))
        return 2;
    if (lnorm_file_create("d/y.npy", LNORM_F32, 0, NULL, &error) ||
        strcmp(error.message, "'d/y.npy': a temporary file beside it cannot be created: Permission denied"))
        return 3;
    return 1;
}

static void targets_that_cannot_be(void **state) {
    lnorm_error error = stale_error();
    (void)state;
    assert_int_equal(mkdir("d", 0500), 0);
    assert_null(lnorm_file_create("d", LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_NOT_AVAILABLE, "'d': expected a file to write: Is a directory");
    assert_null(lnorm_file_create("none/y.npy", LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_NOT_AVAILABLE,
                  "'none/y.npy': a temporary file beside it cannot be created: No such file or directory");
    write_bytes("y.npy", "old", 3);
    assert_null(lnorm_file_create("y.npy/z", LNORM_F32, 0, NULL, &error));
    assert_failed(&error, LNORM_NOT_AVAILABLE, "'y.npy/z': cannot be written: Not a directory");
    assert_int_equal(chmod("y.npy", 0444), 0);
    assert_int_equal(chmod("d", 0555), 0);
    assert_int_equal(as_nobody(protected_targets), 1);
    assert_content("y.npy", "old", 3);
}

/* The directory goes away under the writer. */
static void vanishing_directory(void **state) {
    const int64_t shape[] = {1};
    const float one = 1;
    lnorm_error error = stale_error();
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    lnorm_file_writer *writer = create("d/y.npy", LNORM_F32, 1, shape);
    put(writer, &one, 0, 1);
    assert_int_equal(rename("d", "e"), 0);
    assert_int_equal(lnorm_file_commit(writer, &error), LNORM_NOT_AVAILABLE);
    assert_failed(&error, LNORM_NOT_AVAILABLE,
                  "'d/y.npy': the finished file cannot be given its name: No such file or directory");
    assert_int_equal(access("e/y.npy", F_OK), -1);
}

/* A limit of 64 KiB for files: writing fails on the way, and the target stays. */
static void no_room_for_the_file(void **state) {
    static const float zeros[10000];
    const int64_t shape[] = {100000};
    struct rlimit before, limit;
    lnorm_error error = stale_error();
    int64_t written = 0;
    (void)state;
    write_bytes("y.npy", "old", 3);
    lnorm_file_writer *writer = create("y.npy", LNORM_F32, 1, shape);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 65536;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (!lnorm_file_write(writer, zeros, written, 10000, &error))
        written += 10000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_failed(&error, LNORM_NOT_AVAILABLE, "'y.npy': cannot be written: File too large");
    assert_int_equal(written, 10000);
    assert_int_equal(lnorm_file_commit(writer, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'y.npy': cannot be finished after an error");
    assert_content("y.npy", "old", 3);
    assert_int_equal(scratch_entries(), 1);
}

static void killed_while_writing(void **state) {
    (void)state;
    write_bytes("old.npy", "old", 3);
    for (int i = 0; i < 2; i++) {
        static const float zeros[1000];
        const int64_t shape[] = {2000};
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (!child) {
            lnorm_file_writer *writer = lnorm_file_create(i ? "new.npy" : "old.npy", LNORM_F32, 1, shape, NULL);
            lnorm_file_write(writer, zeros, 0, 1000, NULL);
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(access("new.npy", F_OK), -1);
        assert_content("old.npy", "old", 3);
        assert_int_equal(scratch_temporaries(), i + 1);
    }
    save_one("new.npy"); /* what is left behind is in nobody's way */
    lnorm_file_close(open_file("new.npy"));
}

/* ---- streams ---- */

/* As lnorm_file_create("-") with standard output replaced by fd. */
static lnorm_file_writer *create_on(int fd, int32_t ndim, const int64_t *shape, lnorm_error *error) {
    int saved = redirect(STDOUT_FILENO, fd);
    *error = stale_error();
    lnorm_file_writer *writer = lnorm_file_create("-", LNORM_F32, ndim, shape, error);
    restore(STDOUT_FILENO, saved);
    return writer;
}

static void standard_output(void **state) {
    const int64_t shape[] = {3};
    const float buffer[3] = {1, 2, 3};
    lnorm_error error;
    unsigned char expected[141];
    const size_t size = 140;
    (void)state;
    lnorm_file_writer *writer = create("y.npy", LNORM_F32, 1, shape);
    put(writer, buffer, 0, 3);
    commit(writer);
    assert_int_equal(read_bytes("y.npy", expected, sizeof expected), size);
    writer = create_on(open("out", O_WRONLY | O_CREAT, 0600), 1, shape, &error);
    assert_succeeded(&error);
    assert_false(lnorm_file_writer_seekable(writer));
    assert_null(lnorm_file_writer_temporary(writer));
    put(writer, buffer, 0, 1);
    assert_int_equal(lnorm_file_write(writer, buffer + 2, 2, 1, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "standard output: is written in order: expected elements from 1 on, got elements from 2 on");
    put(writer, buffer + 1, 1, 2);
    commit(writer);
    assert_content("out", expected, size);
}

/* Devices by their names, without privileges: a fault here must not be able to replace them. */
static int devices(void) {
    const int64_t shape[] = {3};
    const float numbers[3] = {1, 2, 3};
    const lnorm_named_tensor tensor = {"a", lnorm_dense(numbers, LNORM_F32, 1, shape)};
    lnorm_error error = stale_error();
    if (lnorm_file_create("/dev/full", LNORM_F32, 1, shape, &error) ||
        strcmp(error.message, "'/dev/full': cannot be written: No space left on device"))
        return 2;
    if (lnorm_model_save("/dev/full", &tensor, 1, &error) != LNORM_NOT_AVAILABLE ||
        strcmp(error.message, "'/dev/full': cannot be written: No space left on device"))
        return 3;
    lnorm_file_writer *writer = lnorm_file_create("/dev/null", LNORM_F32, 1, shape, &error);
    if (!writer || lnorm_file_writer_seekable(writer) || lnorm_file_write(writer, numbers, 0, 3, &error) ||
        lnorm_file_commit(writer, &error))
        return 4;
    return 1;
}

static void full_device(void **state) {
    const int64_t shape[] = {3};
    lnorm_error error;
    (void)state;
    assert_null(create_on(open("/dev/full", O_WRONLY), 1, shape, &error));
    assert_failed(&error, LNORM_NOT_AVAILABLE, "standard output: cannot be written: No space left on device");
    assert_int_equal(as_nobody(devices), 1);
    assert_true(S_ISCHR(mode_of("/dev/null")) && S_ISCHR(mode_of("/dev/full")));
}

static void closed_pipe(void **state) {
    static const float zeros[100000];
    const int64_t shape[] = {100000};
    int ends[2];
    lnorm_error error;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    lnorm_file_writer *writer = create_on(ends[1], 1, shape, &error);
    assert_succeeded(&error);
    close(ends[0]);
    assert_int_equal(lnorm_file_write(writer, zeros, 0, 100000, &error), LNORM_NOT_AVAILABLE);
    assert_failed(&error, LNORM_NOT_AVAILABLE, "standard output: cannot be written: Broken pipe");
    lnorm_file_abort(writer);
    signal(SIGPIPE, SIG_DFL);
}

/* A pipe that takes less than it is given and does not block, and a reader that is slow. */
static void short_writes(void **state) {
    static float numbers[100000];
    const int64_t shape[] = {100000};
    int ends[2], status;
    lnorm_error error;
    (void)state;
    for (int i = 0; i < 100000; i++)
        numbers[i] = (float)i;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        static unsigned char got[400128];
        size_t used = 0;
        close(ends[1]);
        for (ssize_t n; (n = read(ends[0], got + used, 3000 < sizeof got - used ? 3000 : sizeof got - used)) > 0;)
            used += (size_t)n;
        _exit(used == sizeof got &&
              (*(const unsigned char *)&(uint16_t){1} == 0 || !memcmp(got + 128, numbers, sizeof numbers)));
    }
    close(ends[0]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    lnorm_file_writer *writer = create_on(ends[1], 1, shape, &error);
    put(writer, numbers, 0, 100000);
    commit(writer);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void closed_standard_output(void **state) {
    lnorm_error error = stale_error();
    (void)state;
    fflush(NULL);
    int saved = dup(STDOUT_FILENO);
    close(STDOUT_FILENO);
    lnorm_file_writer *writer = lnorm_file_create("-", LNORM_F32, 0, NULL, &error);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    assert_null(writer);
    assert_failed(&error, LNORM_NOT_AVAILABLE, "standard output: cannot be opened for writing: Bad file descriptor");
}

int writer_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(the_bytes_of_numpy),
        SCRATCH_TEST(headers_of_every_rank),
        SCRATCH_TEST(refused_arguments),
        SCRATCH_TEST(refused_runs),
        SCRATCH_TEST(nothing_before_the_commit),
        SCRATCH_TEST(permissions),
        SCRATCH_TEST(symbolic_links),
        SCRATCH_TEST(targets_that_cannot_be),
        SCRATCH_TEST(vanishing_directory),
        SCRATCH_TEST(no_room_for_the_file),
        SCRATCH_TEST(killed_while_writing),
        SCRATCH_TEST(standard_output),
        SCRATCH_TEST(full_device),
        SCRATCH_TEST(closed_pipe),
        SCRATCH_TEST(short_writes),
        SCRATCH_TEST(closed_standard_output),
    };
    return cmocka_run_group_tests_name("writing", tests, NULL, NULL);
}
