#include "files_scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch[4096];
static int before = -1;

int scratch_enter(void **state) {
    const char *directory = getenv("TMPDIR");
    (void)state;
    snprintf(scratch, sizeof scratch, "%s/lnorm-test-XXXXXX", directory && *directory ? directory : "/tmp");
    before = open(".", O_RDONLY);
    return before < 0 || !mkdtemp(scratch) || chmod(scratch, 0777) || chdir(scratch);
}

/* What is in the directory, one level of directories included. */
static void clear(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        char inner[8192];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlink(inner)) {
            chmod(inner, 0700);
            clear(inner);
            rmdir(inner);
        }
    }
    if (directory)
        closedir(directory);
}

int scratch_leave(void **state) {
    (void)state;
    clear(scratch);
    int failed = fchdir(before) || rmdir(scratch);
    close(before);
    return failed;
}

static int entries(const char *prefix) {
    DIR *directory = opendir(".");
    struct dirent *entry;
    int count = 0;
    while ((entry = readdir(directory)))
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
                 !strncmp(entry->d_name, prefix, strlen(prefix));
    closedir(directory);
    return count;
}

int scratch_entries(void) {
    return entries("");
}

int scratch_temporaries(void) {
    return entries(".lnorm-");
}

void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

size_t read_bytes(const char *path, void *bytes, size_t room) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    assert_true(size < room);
    return size;
}

static size_t count_up(unsigned char *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(i + 1);
    return bytes;
}

void write_npy(const char *path, int version, const char *header, size_t bytes) {
    unsigned char file[8192];
    size_t length = strlen(header), used = 8;
    int field = version == 1 ? 2 : 4;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    put_bits(file + used, length, field, 0);
    used += (size_t)field;
    memcpy(file + used, header, length);
    used += length;
    used += count_up(file + used, bytes);
    write_bytes(path, file, used);
}

void write_safetensors(const char *path, const char *header, size_t bytes) {
    unsigned char file[8192];
    size_t length = strlen(header), used = 8;
    put_bits(file, length, 8, 0);
    memcpy(file + used, header, length);
    used += length;
    used += count_up(file + used, bytes);
    write_bytes(path, file, used);
}

void put_bits(unsigned char *to, uint64_t bits, int size, int big_endian) {
    for (int i = 0; i < size; i++)
        to[big_endian ? size - 1 - i : i] = (unsigned char)(bits >> (8 * i) & 0xFF);
}

lnorm_error stale_error(void) {
    lnorm_error error = {sizeof error, LNORM_OUT_OF_MEMORY, "old text"};
    return error;
}

void assert_failed(const lnorm_error *error, lnorm_status status, const char *message) {
    assert_string_equal(error->message, message);
    assert_int_equal(error->status, status);
}

void assert_succeeded(const lnorm_error *error) {
    assert_failed(error, LNORM_OK, "");
}

void refuses_file(const char *path, lnorm_status status, const char *message) {
    lnorm_error error = stale_error();
    assert_null(lnorm_file_open(path, NULL, &error));
    assert_failed(&error, status, message);
    assert_null(lnorm_file_open(path, NULL, NULL));
}

void refuses_model(const char *path, lnorm_status status, const char *message) {
    lnorm_error error = stale_error();
    assert_null(lnorm_model_open(path, &error));
    assert_failed(&error, status, message);
    assert_null(lnorm_model_open(path, NULL));
}

lnorm_file *open_file(const char *path) {
    lnorm_error error = stale_error();
    lnorm_file *file = lnorm_file_open(path, NULL, &error);
    assert_succeeded(&error);
    assert_non_null(file);
    return file;
}

lnorm_model *open_model(const char *path) {
    lnorm_error error = stale_error();
    lnorm_model *model = lnorm_model_open(path, &error);
    assert_succeeded(&error);
    assert_non_null(model);
    return model;
}

int redirect(int standard, int fd) {
    fflush(NULL);
    int saved = dup(standard);
    dup2(fd, standard);
    close(fd);
    return saved;
}

void restore(int standard, int saved) {
    fflush(NULL);
    dup2(saved, standard);
    close(saved);
}

void open_standard_descriptors(void) {
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        continue;
    close(fd);
}

enum { POWERLESS = 99 };

int as_nobody(int (*function)(void)) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(POWERLESS);
        _exit(function());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == POWERLESS) {
        print_message("SKIPPED: root may not become another user here, as in some containers\n");
        skip();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
