/* Reading .npy files written here byte by byte: what they mean, and every way in which they can be wrong. */
#include "files_scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct type {
    const char *descr;
    lnorm_dtype dtype;
    int size, big_endian;
} type;

static int big_endian_machine(void) {
    const uint16_t one = 1;
    return !*(const unsigned char *)&one;
}

static uint64_t bits_at(const void *buffer, int64_t index, int size) {
    uint64_t wide = 0;
    uint32_t word = 0;
    uint16_t half = 0;
    const char *at = (const char *)buffer + index * size;
    memcpy(&wide, at, size == 8 ? 8 : 0);
    memcpy(&word, at, size == 4 ? 4 : 0);
    memcpy(&half, at, size == 2 ? 2 : 0);
    return size == 8 ? wide : size == 4 ? word : half;
}

static uint64_t pattern(int64_t index, int size) {
    return (0x0123456789ABCDEFu * (uint64_t)(index + 1)) >> (64 - 8 * size);
}

/* A file of shape (2, 3, 4) of this type, whose elements are the numbers of `pattern`. */
static void write_pattern(const type *t, int version, int fortran_order) {
    char header[200];
    unsigned char data[24 * 8], file[512];
    for (int i = 0; i < 24; i++)
        put_bits(data + i * t->size, pattern(i, t->size), t->size, t->big_endian);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3, 4), }       \n", t->descr,
             fortran_order ? "True" : "False");
    write_npy("x.npy", version, header, 0);
    size_t used = read_bytes("x.npy", file, sizeof file);
    memcpy(file + used, data, (size_t)(24 * t->size));
    write_bytes("x.npy", file, used + (size_t)(24 * t->size));
}

static void assert_pattern(const type *t, int fortran_order) {
    static const int64_t shape[] = {2, 3, 4}, rows[] = {12, 4, 1}, columns[] = {1, 2, 6};
    lnorm_file *file = open_file("x.npy");
    const lnorm_tensor *tensor = lnorm_file_tensor(file);
    lnorm_error error = stale_error();
    assert_memory_equal(&tensor->dtype, &t->dtype, sizeof t->dtype);
    assert_null(tensor->data);
    assert_int_equal(tensor->ndim, 3);
    assert_memory_equal(tensor->shape, shape, sizeof shape);
    assert_memory_equal(tensor->strides, fortran_order ? columns : rows, sizeof rows);
    assert_int_equal(lnorm_file_count(file), 24);
    assert_int_equal(lnorm_file_big_endian(file), t->big_endian);
    assert_string_equal(lnorm_file_path(file), "x.npy");
    for (int64_t first = 0; first <= 24; first += 5)
        for (int64_t count = 0; first + count <= 24; count += 7) {
            unsigned char buffer[24 * 8 + 2];
            memset(buffer, 0xA5, sizeof buffer);
            assert_int_equal(lnorm_file_read(file, buffer + 1, first, count, &error), LNORM_OK);
            assert_succeeded(&error);
            for (int64_t i = 0; i < count; i++)
                assert_true(bits_at(buffer + 1, i, t->size) == pattern(first + i, t->size));
            assert_int_equal(buffer[0], 0xA5);
            assert_int_equal(buffer[1 + count * t->size], 0xA5);
        }
    lnorm_file_close(file);
}

static void every_type_version_and_order(void **state) {
    const int native = big_endian_machine();
    const type types[] = {
        {"<f8", LNORM_F64, 8, 0},  {">f8", LNORM_F64, 8, 1},  {"=f8", LNORM_F64, 8, native},
        {"<f4", LNORM_F32, 4, 0},  {">f4", LNORM_F32, 4, 1},  {"=f4", LNORM_F32, 4, native},
        {"<f2", LNORM_F16, 2, 0},  {">f2", LNORM_F16, 2, 1},  {"=f2", LNORM_F16, 2, native},
        {"<V2", LNORM_BF16, 2, 0}, {">V2", LNORM_BF16, 2, 1}, {"bfloat16", LNORM_BF16, 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int version = 1; version <= 3; version++)
            for (int fortran_order = 0; fortran_order < 2; fortran_order++) {
                write_pattern(&types[i], version, fortran_order);
                assert_pattern(&types[i], fortran_order);
            }
}

static void raw_bytes_as_bf16(void **state) {
    lnorm_file_options options = LNORM_FILE_OPTIONS_INIT;
    lnorm_error error = stale_error();
    uint16_t half = 0;
    (void)state;
    write_npy("x.npy", 1, "{'descr': '|V2', 'fortran_order': False, 'shape': (2,), }\n", 4);
    refuses_file("x.npy", LNORM_UNSUPPORTED_DTYPE,
                 "'x.npy': expected float64, float32, float16 or bfloat16, got two raw "
                 "bytes per element (descr '|V2'), which may be bfloat16 but need not: say so if it is (as_bf16; "
                 "of the program: --bf16)");
    options.as_bf16 = 1;
    lnorm_file *file = lnorm_file_open("x.npy", &options, &error);
    assert_succeeded(&error);
    assert_int_equal(lnorm_file_tensor(file)->dtype.code, 4);
    assert_int_equal(lnorm_file_read(file, &half, 1, 1, &error), LNORM_OK);
    assert_int_equal(half, 0x0403);
    lnorm_file_close(file);
    options.reserved = 1;
    assert_null(lnorm_file_open("x.npy", &options, &error));
    assert_failed(&error, LNORM_UNSUPPORTED, "options: a member that this version does not know is set");
    options.size = 8;
    assert_null(lnorm_file_open("x.npy", &options, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT,
                  "options.size: expected sizeof(lnorm_file_options), at least 16, got 8 "
                  "(start from LNORM_FILE_OPTIONS_INIT)");
}

/* Headers that are legal though NumPy writes them otherwise: shape and number of elements. */
static void unusual_headers(void **state) {
    static const struct {
        const char *header;
        int ndim;
        int64_t count;
    } cases[] = {
        {"{'descr': '<f2', 'fortran_order': False, 'shape': ()}\n", 0, 1},
        {"{\"shape\":(3,),\"fortran_order\":True,\"descr\":\"<f2\"}\n", 1, 3},
        {"{ 'fortran_order' : False , 'shape' : ( 3 , ) , 'descr' : '<f2' , }    \n", 1, 3},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1, 3,), }\n", 2, 3},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (3L, 2L), }\n", 2, 6},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (0,), }\n", 1, 0},
        {"{'descr': '<f2', 'fortran_order': True, 'shape': (2, 0, 9223372036854775), }\n", 3, 0},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2), }\n", 16, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_npy("x.npy", 1, cases[i].header, (size_t)cases[i].count * 2);
        lnorm_file *file = open_file("x.npy");
        assert_int_equal(lnorm_file_tensor(file)->ndim, cases[i].ndim);
        assert_int_equal(lnorm_file_count(file), cases[i].count);
        lnorm_file_close(file);
    }
}

#define WITH(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2,), }\n"
#define SHAPED(shape) "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }\n"
#define NOT_FLOAT "'x.npy': expected float64, float32, float16 or bfloat16, got "
#define KEYS "'x.npy': header: expected the keys descr, fortran_order and shape, each once, got "

/* Eight bytes of data; the header begins at byte 10. */
static const struct {
    const char *header;
    lnorm_status status;
    const char *message;
} bad_headers[] = {
    {WITH("<i8"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "int64 (descr '<i8')"},
    {WITH(">u2"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "uint16 (descr '>u2')"},
    {WITH("|b1"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "bool (descr '|b1')"},
    {WITH("<c16"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "complex128 (descr '<c16')"},
    {WITH("<f16"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "float128 (descr '<f16')"},
    {WITH("|O"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "Python objects (descr '|O')"},
    {WITH("|S5"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "byte strings (descr '|S5')"},
    {WITH("<U5"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "text (descr '<U5')"},
    {WITH("<M8[ns]"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "datetime64 (descr '<M8[ns]')"},
    {WITH("<m8"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "timedelta64 (descr '<m8')"},
    {WITH("<V1"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "raw bytes (descr '<V1')"},
    {WITH("|f8"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "float64 (descr '|f8')"},
    {WITH("f8"), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "an unknown type (descr 'f8')"},
    {WITH(""), LNORM_UNSUPPORTED_DTYPE, NOT_FLOAT "an unknown type (descr '')"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", LNORM_UNSUPPORTED_DTYPE,
     NOT_FLOAT "records of several fields"},
    {"", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 10: expected '{', got its end"},
    {" " WITH("<f4"), LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 10: expected '{', got ' '"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 67: expected spaces and one line feed at its end, got its end"},
    {WITH("<f4") " ", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 67: expected spaces and one line feed at its end, got '\\x0a'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }x\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 67: expected spaces and one line feed at its end, got 'x'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), ", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 66: expected a key in quotes, got its end"},
    {"{,}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 11: expected a key in quotes, got ','"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 26: expected ',' or '}', got '''"},
    {"{'descr', '<f4'}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 18: expected ':', got ','"},
    {"{'descr': '<f4', 'shape': (2,)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header: the key 'fortran_order' is missing"},
    {"{'descr': '<f4', 'fortran_order': False}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header: the key 'shape' is missing"},
    {"{}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header: the key 'descr' is missing"},
    {"{'descr': '<f4', 'descr': '<f4'}\n", LNORM_INVALID_ARGUMENT, KEYS "'descr' twice"},
    {"{'descr': '<f4', 'order': False}\n", LNORM_INVALID_ARGUMENT, KEYS "'order'"},
    {"{'descr': '<f4}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 25: expected the end of a short string, got '\\x0a'"},
    {"{'descr': '<f4", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 24: expected the end of a string, got its end"},
    {"{'descr': '<\\x664'}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 22: expected the end of a short string, got '\\'"},
    {"{'descr': 4}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 20: expected a string (descr), got '4'"},
    {"{'d\xC3\xA9': 4}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 13: expected the end of a short string, got '\xC3'"},
    {"{'fortran_order': 0}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 28: expected True or False (fortran_order), got '0'"},
    {"{'fortran_order': Truee}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 32: expected ',' or '}', got 'e'"},
    {"{'shape': [2]}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 20: expected '(' (shape is a tuple), got '['"},
    {"{'shape': (2)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 22: expected ',' (a tuple of one is written (n,)), got ')'"},
    {"{'shape': (2 3)}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 23: expected ',' or ')', got '3'"},
    {"{'shape': (-2,)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 21: expected an integer of at least 0, got '-'"},
    {"{'shape': (,)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 21: expected an integer of at least 0, got ','"},
    {"{'shape': (02,)}\n", LNORM_INVALID_ARGUMENT,
     "'x.npy': header, byte 21: expected an integer without leading zeros, got '0'"},
    {"{'shape': (2.0,)}\n", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 22: expected ',' or ')', got '.'"},
    {"{'shape': (2", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 22: expected ',' or ')', got its end"},
    {SHAPED("(9223372036854775808,)"), LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 61: an extent of 2^63 or more"},
    {SHAPED("(4294967296, 4294967296)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': shape [4294967296, 4294967296] of float32 is 2^62 bytes or more"},
    {SHAPED("(9223372036854775807,)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': shape [9223372036854775807] of float32 is 2^62 bytes or more"},
    {SHAPED("(0, 9223372036854775807)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': shape [0, 9223372036854775807] of float32 is 2^62 bytes or more"},
    {SHAPED("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)"), LNORM_UNSUPPORTED, "'x.npy': expected at most 16 axes, got more"},
    {SHAPED("(3,)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': truncated: shape [3] of float32 takes 12 bytes of data, 8 are there, 4 bytes are missing"},
    {SHAPED("(1048576, 1048576, 1024)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': truncated: shape [1048576, 1048576, 1024] of float32 takes 4503599627370496 bytes of data, 8 are there, "
     "4503599627370488 bytes are missing"},
    {SHAPED("()"), LNORM_INVALID_ARGUMENT,
     "'x.npy': expected the end of the file after the 4 bytes of data that shape [] of float32 takes, got more bytes"},
    {SHAPED("(0,)"), LNORM_INVALID_ARGUMENT,
     "'x.npy': expected the end of the file after the 0 bytes of data that shape [0] of float32 takes, got more bytes"},
};

static void malformed_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        write_npy("x.npy", 1, bad_headers[i].header,
                  *bad_headers[i].header && strchr(bad_headers[i].header, '\n') ? 8 : 0);
        refuses_file("x.npy", bad_headers[i].status, bad_headers[i].message);
    }
    write_npy("x.npy", 3, "{'descr': '<f2', 'fortran_order': False, 'shape': (3L,), }\n", 6);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT, "'x.npy': header, byte 64: expected ',' or ')', got 'L'");
}

/* Before the header: magic, version and length, cut at every byte. */
static void malformed_frames(void **state) {
    unsigned char file[600];
    (void)state;
    write_npy("x.npy", 2, WITH("<f4"), 8);
    const size_t size = read_bytes("x.npy", file, sizeof file);
    for (size_t length = 0; length < size; length++) {
        char message[300];
        const char *part = length < 12 ? "the first part of its header" : "its header";
        size_t end = length < 8 ? 8 : length < 12 ? 12 : size - 8;
        if (length < size - 8)
            snprintf(message, sizeof message,
                     "'x.npy': truncated: %s ends at byte %zu, the file at byte %zu: %zu bytes are "
                     "missing",
                     part, end, length, end - length);
        else
            snprintf(message, sizeof message,
                     "'x.npy': truncated: shape [2] of float32 takes 8 bytes of data, %zu are "
                     "there, %zu bytes are missing",
                     length - (size - 8), size - length);
        write_bytes("x.npy", file, length);
        refuses_file("x.npy", LNORM_INVALID_ARGUMENT, message);
    }
    file[6] = 4;
    write_bytes("x.npy", file, size);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT, "'x.npy': expected .npy version 1.0, 2.0 or 3.0, got 4.0");
    file[6] = file[7] = 1;
    write_bytes("x.npy", file, size);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT, "'x.npy': expected .npy version 1.0, 2.0 or 3.0, got 1.1");
    file[6] = 2;
    file[7] = 0;
    put_bits(file + 8, 0xFFFFFFFF, 4, 0);
    write_bytes("x.npy", file, size);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT, "'x.npy': expected a header of at most 65536 bytes, got 4294967295");
    write_bytes("x.npy", "PK\3\4 and so on", 12);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT,
                 "'x.npy': expected an .npy file, got a zip archive, as .npz files and PyTorch's are");
    write_bytes("x.npy", "version https", 13);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT,
                 "'x.npy': expected an .npy file, got text, as Git LFS leaves in place of a file that was not "
                 "downloaded");
}

static void read_arguments(void **state) {
    lnorm_error error = stale_error();
    char buffer[8];
    (void)state;
    write_npy("x.npy", 1, WITH("<f4"), 8);
    lnorm_file *file = open_file("x.npy");
    const int64_t bad[][2] = {{-1, 1}, {0, 3}, {3, 0}, {0, -1}, {2, 1}, {1, INT64_MAX}, {INT64_MAX, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[200];
        snprintf(message, sizeof message, "'x.npy': expected elements among its 2, got %lld from %lld on",
                 (long long)bad[i][1], (long long)bad[i][0]);
        assert_int_equal(lnorm_file_read(file, buffer, bad[i][0], bad[i][1], &error), LNORM_INVALID_ARGUMENT);
        assert_failed(&error, LNORM_INVALID_ARGUMENT, message);
    }
    assert_int_equal(lnorm_file_read(file, NULL, 0, 2, &error), LNORM_INVALID_ARGUMENT);
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "buffer: expected room for 2 elements, got NULL");
    assert_int_equal(lnorm_file_read(file, NULL, 2, 0, &error), LNORM_OK);
    lnorm_file_close(file);
    lnorm_file_close(NULL);
}

/* Names that do not fit or would steer a terminal, and errors of another size. */
static void messages(void **state) {
    char name[300];
    struct {
        size_t size;
        lnorm_status status;
        char message[500];
    } cut = {offsetof(lnorm_error, message) + 8, LNORM_OK, "12345678901234567890"};
    (void)state;
    refuses_file("a\n\x1b[31m'\x7f\xC2\x9B\xC3\xA9", LNORM_NOT_AVAILABLE,
                 "'a\\x0a\\x1b[31m'\\x7f\\xc2\x9B\xC3\xA9': cannot be opened for reading: No such file or directory");
    memset(name, 'x', 200);
    strcpy(name + 200, "/y.npy");
    lnorm_error error = stale_error();
    assert_null(lnorm_file_open(name, NULL, &error));
    assert_int_equal(strncmp(error.message, "'...xxxxx", 9), 0);
    assert_non_null(strstr(error.message, "xxx/y.npy': cannot be opened for reading: No such file or directory"));
    for (int i = 0; i < 140; i++)
        memcpy(name + 2 * i, "\xC3\xA9", 3);
    assert_null(lnorm_file_open(name, NULL, &error));
    assert_int_equal(strncmp(error.message, "'...\xC3\xA9", 6), 0);
    assert_null(lnorm_file_open("gone", NULL, (lnorm_error *)&cut));
    assert_string_equal(cut.message, "'gone':");
    assert_int_equal(cut.message[8], '9');
    refuses_file(NULL, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
}

static int unreadable(void) {
    lnorm_error error = stale_error();
    lnorm_file *file = lnorm_file_open("x.npy", NULL, &error);
    return !file && error.status == LNORM_NOT_AVAILABLE &&
           !strcmp(error.message, "'x.npy': cannot be opened for reading: Permission denied");
}

static void files_that_cannot_be_read(void **state) {
    (void)state;
    refuses_file("x.npy", LNORM_NOT_AVAILABLE, "'x.npy': cannot be opened for reading: No such file or directory");
    refuses_file(".", LNORM_NOT_AVAILABLE, "'.': expected a file: Is a directory");
    write_npy("x.npy", 1, WITH("<f4"), 8);
    refuses_file("x.npy/x", LNORM_NOT_AVAILABLE, "'x.npy/x': cannot be opened for reading: Not a directory");
    assert_int_equal(truncate("x.npy", 0), 0);
    refuses_file("x.npy", LNORM_INVALID_ARGUMENT,
                 "'x.npy': truncated: the first part of its header ends at byte 8, the file "
                 "at byte 0: 8 bytes are missing");
    assert_int_equal(chmod("x.npy", 0), 0);
    assert_int_equal(as_nobody(unreadable), 1);
}

/* A file that loses its name can be read; one that loses its end cannot. */
static void vanishing_files(void **state) {
    lnorm_error error = stale_error();
    float buffer[2];
    (void)state;
    write_npy("x.npy", 1, WITH("<f4"), 8);
    lnorm_file *file = open_file("x.npy");
    assert_int_equal(truncate("x.npy", 10 + (off_t)strlen(WITH("<f4")) + 5), 0);
    assert_int_equal(lnorm_file_read(file, buffer, 0, 1, &error), LNORM_OK);
    assert_int_equal(lnorm_file_read(file, buffer, 0, 2, &error), LNORM_NOT_AVAILABLE);
    assert_failed(&error, LNORM_NOT_AVAILABLE,
                  "'x.npy': became shorter while it was read: expected 8 bytes from byte 68 on, "
                  "5 are there, 3 bytes are missing");
    assert_int_equal(unlink("x.npy"), 0);
    assert_int_equal(lnorm_file_read(file, buffer, 0, 1, &error), LNORM_OK);
    lnorm_file_close(file);
}

int npy_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(every_type_version_and_order),
        SCRATCH_TEST(raw_bytes_as_bf16),
        SCRATCH_TEST(unusual_headers),
        SCRATCH_TEST(malformed_headers),
        SCRATCH_TEST(malformed_frames),
        SCRATCH_TEST(read_arguments),
        SCRATCH_TEST(messages),
        SCRATCH_TEST(files_that_cannot_be_read),
        SCRATCH_TEST(vanishing_files),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
