/* What the tests of lnorm_files share: a directory to work in, files written byte by byte, and errors compared word for
 * word. Every test begins in an empty directory, so the names in messages are short and known. */
#ifndef FILES_SCRATCH_H
#define FILES_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lnorm_files.h"

/* For cmocka's setup and teardown: makes an empty directory and goes there; removes it. */
int scratch_enter(void **state);
int scratch_leave(void **state);
#define SCRATCH_TEST(function) cmocka_unit_test_setup_teardown(function, scratch_enter, scratch_leave)

/* The entries of the directory "." (without . and ..), and those that begin with ".lnorm-". */
int scratch_entries(void);
int scratch_temporaries(void);

void write_bytes(const char *path, const void *bytes, size_t size);
/* Returns the size, which must be below `room`. */
size_t read_bytes(const char *path, void *bytes, size_t room);

/* An .npy file of this version with this text as header and then `bytes` bytes 1, 2, 3, ... */
void write_npy(const char *path, int version, const char *header, size_t bytes);
/* A .safetensors file with this header and then `bytes` bytes 1, 2, 3, ... */
void write_safetensors(const char *path, const char *header, size_t bytes);

/* The lowest `size` bytes of bits, in the given order. */
void put_bits(unsigned char *to, uint64_t bits, int size, int big_endian);

/* Errors: begun with old text, so that success must clear it. */
lnorm_error stale_error(void);
void assert_failed(const lnorm_error *error, lnorm_status status, const char *message);
void assert_succeeded(const lnorm_error *error);

/* Opening fails with this message, however the error is received. */
void refuses_file(const char *path, lnorm_status status, const char *message);
void refuses_model(const char *path, lnorm_status status, const char *message);
lnorm_file *open_file(const char *path);
lnorm_model *open_model(const char *path);

/* Replaces standard input or output (0 or 1) by fd, which is closed; gives back what was there before. */
int redirect(int standard, int fd);
void restore(int standard, int saved);

/* /dev/null for those of 0 to 2 that this process was started without, lest a file of a test becomes one of them. */
void open_standard_descriptors(void);

/* Runs the function in a child that has no privileges; its result. The test is skipped where root cannot give them up. */
int as_nobody(int (*function)(void));

int npy_tests(void);
int stream_tests(void);
int writer_tests(void);
int model_tests(void);
int norm_tests(void);
int layer_tests(void);

#endif
