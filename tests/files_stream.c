/* Standard input and other things that cannot be read at any place: short reads, signals, pipes that do not block. */
#include "files_scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEADER "{'descr': '<f4', 'fortran_order': False, 'shape': (50000,), }\n"
enum { COUNT = 50000, SIZE = 10 + sizeof HEADER - 1 + COUNT * 4 };

static unsigned char array[SIZE + 3];

static void make_array(void) {
    memcpy(array, "\x93NUMPY\x01\x00", 8);
    put_bits(array + 8, sizeof HEADER - 1, 2, 0);
    memcpy(array + 10, HEADER, sizeof HEADER - 1);
    for (int i = 0; i < COUNT; i++)
        put_bits(array + SIZE - (COUNT - i) * 4, (uint64_t)i, 4, 0);
}

/* A child that writes `size` bytes of the array to the pipe, a few at first; returns the end to read. */
static int feed(size_t size, pid_t *child) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    make_array();
    *child = fork();
    if (!*child) {
        close(ends[0]);
        signal(SIGPIPE, SIG_DFL);
        for (size_t done = 0, portion = 1; done < size; done += portion, portion += 1 + portion / 2) {
            const struct timespec pause = {0, 2000000};
            portion = portion < size - done ? portion : size - done;
            for (size_t put = 0; put < portion;)
                put += (size_t)write(ends[1], array + done + put, portion - put);
            nanosleep(&pause, NULL);
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static void assert_array(lnorm_file *file) {
    static uint32_t buffer[COUNT];
    lnorm_error error = stale_error();
    assert_non_null(file);
    assert_int_equal(lnorm_file_count(file), COUNT);
    for (int pass = 0; pass < 2; pass++) { /* at any place, more than once */
        memset(buffer, 0, sizeof buffer);
        assert_int_equal(lnorm_file_read(file, buffer + 100, 100, COUNT - 100, &error), LNORM_OK);
        assert_int_equal(lnorm_file_read(file, buffer, 0, 100, &error), LNORM_OK);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(buffer[i], i);
    }
    lnorm_file_close(file);
}

/* Opens "-" with `size` bytes of the array coming through a pipe. */
static lnorm_file *open_piped(size_t size, int flags, lnorm_error *error) {
    pid_t child;
    int end = feed(size, &child), status;
    fcntl(end, F_SETFL, flags);
    int saved = redirect(STDIN_FILENO, end);
    *error = stale_error();
    lnorm_file *file = lnorm_file_open("-", NULL, error);
    restore(STDIN_FILENO, saved);
    while (waitpid(child, &status, 0) != child)
        ;
    return file;
}

static void interrupted(int number) {
    (void)number;
}

static void standard_input(void **state) {
    lnorm_error error;
    (void)state;
    lnorm_file *file = open_piped(SIZE, 0, &error);
    assert_succeeded(&error);
    assert_string_equal(lnorm_file_path(file), "-");
    assert_array(file);
    assert_int_equal(scratch_entries(), 0);
    file = open_piped(SIZE, O_NONBLOCK, &error);
    assert_succeeded(&error);
    assert_array(file);
}

static void signals_while_reading(void **state) {
    struct sigaction action = {0}, old;
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    lnorm_error error;
    (void)state;
    action.sa_handler = interrupted; /* without SA_RESTART */
    sigaction(SIGALRM, &action, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    lnorm_file *file = open_piped(SIZE, 0, &error);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_succeeded(&error);
    assert_array(file);
}

static void truncated_standard_input(void **state) {
    lnorm_error error;
    (void)state;
    assert_null(open_piped(SIZE - 7, 0, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "standard input: truncated: shape [50000] of float32 takes 200000 bytes of "
                  "data, 199993 are there, 7 bytes are missing");
    assert_null(open_piped(30, 0, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "standard input: truncated: its header ends at byte 72, the file at byte "
                  "30: 42 bytes are missing");
    assert_null(open_piped(0, 0, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "standard input: truncated: the first part of its header ends at byte 8, "
                  "the file at byte 0: 8 bytes are missing");
    assert_null(open_piped(SIZE + 2, 0, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "standard input: expected the end of the file after the 200000 bytes of "
                  "data that shape [50000] of float32 takes, got more bytes");
}

/* A file as standard input is read where it is, from where it stands. */
static void file_as_standard_input(void **state) {
    (void)state;
    make_array();
    unsigned char *file = malloc(5 + SIZE);
    memcpy(file, "skip!", 5);
    memcpy(file + 5, array, SIZE);
    write_bytes("x", file, 5 + SIZE);
    free(file);
    int fd = open("x", O_RDONLY);
    assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
    setenv("TMPDIR", "no/such/directory", 1); /* it needs no temporary file */
    int saved = redirect(STDIN_FILENO, fd);
    lnorm_file *input = lnorm_file_open("-", NULL, NULL);
    restore(STDIN_FILENO, saved);
    unsetenv("TMPDIR");
    assert_array(input);
}

static void no_room_for_a_copy(void **state) {
    const char *was = getenv("TMPDIR");
    char *kept = was ? strdup(was) : NULL;
    lnorm_error error;
    (void)state;
    setenv("TMPDIR", "no/such/directory", 1);
    assert_null(open_piped(100, 0, &error));
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    assert_failed(&error, LNORM_NOT_AVAILABLE,
                  "standard input cannot be read at any place, and a temporary file cannot be "
                  "created in 'no/such/directory' (TMPDIR): No such file or directory");
}

static void closed_standard_input(void **state) {
    lnorm_error error = stale_error();
    (void)state;
    int saved = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    lnorm_file *file = lnorm_file_open("-", NULL, &error);
    dup2(saved, STDIN_FILENO);
    close(saved);
    assert_null(file);
    assert_failed(&error, LNORM_NOT_AVAILABLE, "standard input: cannot be opened for reading: Bad file descriptor");
}

/* Named pipes and devices; what never ends is refused at its first bytes. */
static void pipes_and_devices(void **state) {
    pid_t child;
    int status;
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    make_array();
    child = fork();
    if (!child) {
        int fd = open("pipe", O_WRONLY);
        size_t done = 0;
        while (done < SIZE)
            done += (size_t)write(fd, array + done, SIZE - done);
        _exit(0);
    }
    assert_array(open_file("pipe"));
    waitpid(child, &status, 0);
    refuses_file("/dev/zero", LNORM_INVALID_ARGUMENT,
                 "'/dev/zero': expected an .npy file, which begins with the bytes 93 4e "
                 "55 4d 50 59, got 00 00 00 00 00 00");
    refuses_model("/dev/zero", LNORM_INVALID_ARGUMENT, "'/dev/zero': expected a regular file");
    refuses_model("-", LNORM_INVALID_ARGUMENT,
                  "path: a .safetensors file cannot be read from standard input ('./-' is a file "
                  "of that name)");
}

int stream_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(standard_input),           SCRATCH_TEST(signals_while_reading),
        SCRATCH_TEST(truncated_standard_input), SCRATCH_TEST(file_as_standard_input),
        SCRATCH_TEST(no_room_for_a_copy),       SCRATCH_TEST(closed_standard_input),
        SCRATCH_TEST(pipes_and_devices),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
