/* .safetensors files written here byte by byte: what they hold, and every way in which they can be wrong. */
#include "files_scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Two floats a at 8, three halves b at 0 (bytes count up from 1), others between and behind. */
#define GOOD                                                                                              \
    "{\"__metadata__\":{\"format\":\"pt\"},"                                                              \
    "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"                                    \
    "\"b\":{\"shape\":[3,1],\"data_offsets\":[0,6],\"dtype\":\"F16\"},"                                   \
    "\"i\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[6,8]},"                                      \
    "\"\xC3\xA9 \\\"/:.safetensors:\\u0001\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[16,18]}," \
    "\"empty\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[16,16]},"                             \
    "\"q\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[18,21]},"                                  \
    "\"new\":{\"dtype\":\"X9\",\"shape\":[2,3],\"data_offsets\":[21,22]}}   "
#define ODD_NAME "\xC3\xA9 \"/:.safetensors:\x01"

static void listing(void **state) {
    static const char *const names[] = {"b", "i", "a", "empty", ODD_NAME, "q", "new"};
    static const char *const types[] = {"F16", "I8", "F32", "F64", "BF16", "F4", "X9"};
    static const int64_t bytes[] = {6, 2, 8, 0, 2, 3, 1};
    static const int ndims[] = {2, 1, 1, 2, 0, 2, 2}, floats[] = {1, 0, 1, 1, 1, 0, 0};
    (void)state;
    write_safetensors("m.safetensors", GOOD, 22);
    lnorm_model *model = open_model("m.safetensors");
    assert_int_equal(lnorm_model_count(model), 7);
    for (int i = 0; i < 7; i++) {
        const lnorm_model_tensor *tensor = lnorm_model_at(model, i);
        assert_string_equal(tensor->name, names[i]);
        assert_string_equal(tensor->dtype_name, types[i]);
        assert_int_equal(tensor->bytes, bytes[i]);
        assert_int_equal(tensor->ndim, ndims[i]);
        assert_int_equal(tensor->dtype.lanes, floats[i]);
        assert_ptr_equal(lnorm_model_find(model, names[i]), tensor);
    }
    assert_int_equal(lnorm_model_at(model, 0)->shape[0], 3);
    assert_int_equal(lnorm_model_at(model, 3)->shape[1], 7);
    assert_int_equal(lnorm_model_at(model, 4)->dtype.code, 4);
    assert_null(lnorm_model_at(model, -1));
    assert_null(lnorm_model_at(model, 7));
    assert_null(lnorm_model_find(model, "c"));
    assert_null(lnorm_model_find(model, ""));
    assert_null(lnorm_model_find(model, NULL));
    assert_null(lnorm_model_find(model, "__metadata__"));
    lnorm_model_close(model);
    lnorm_model_close(NULL);
}

static void assert_reads(lnorm_file *file, const unsigned char *bytes, size_t size) {
    unsigned char buffer[32], swapped[32];
    const uint16_t one = 1;
    size_t element = lnorm_file_tensor(file)->dtype.bits / 8;
    lnorm_error error = stale_error();
    assert_int_equal((size_t)lnorm_file_count(file) * element, size);
    assert_int_equal(lnorm_file_read(file, buffer, 0, lnorm_file_count(file), &error), LNORM_OK);
    for (size_t i = 0; i < size; i++)
        swapped[i] =
            *(const unsigned char *)&one ? buffer[i] : buffer[i / element * element + element - 1 - i % element];
    assert_memory_equal(swapped, bytes, size);
    lnorm_file_close(file);
}

static void reading(void **state) {
    lnorm_error error = stale_error();
    (void)state;
    write_safetensors("m.safetensors", GOOD, 22);
    lnorm_file *file = open_file("m.safetensors:a");
    assert_int_equal(lnorm_file_tensor(file)->dtype.bits, 32);
    assert_int_equal(lnorm_file_tensor(file)->strides[0], 1);
    assert_string_equal(lnorm_file_path(file), "m.safetensors");
    assert_int_equal(lnorm_file_big_endian(file), 0);
    assert_reads(file, (const unsigned char *)"\x09\x0A\x0B\x0C\x0D\x0E\x0F\x10", 8);
    assert_reads(open_file("m.safetensors:b"), (const unsigned char *)"\1\2\3\4\5\6", 6);
    assert_reads(open_file("m.safetensors:" ODD_NAME), (const unsigned char *)"\x11\x12", 2);
    assert_reads(open_file("m.safetensors:empty"), (const unsigned char *)"", 0);
    assert_reads(lnorm_file_open_tensor("m.safetensors", "b", NULL), (const unsigned char *)"\1\2\3\4\5\6", 6);
    lnorm_model *model = open_model("m.safetensors");
    assert_int_equal(unlink("m.safetensors"), 0);
    file = lnorm_model_read(model, lnorm_model_find(model, "b"), &error);
    assert_succeeded(&error);
    lnorm_model_close(model);
    assert_reads(file, (const unsigned char *)"\1\2\3\4\5\6", 6);
}

static void names_that_lead_nowhere(void **state) {
    lnorm_error error = stale_error();
    (void)state;
    write_safetensors("m.safetensors", GOOD, 22);
    refuses_file("m.safetensors", LNORM_INVALID_ARGUMENT,
                 "'m.safetensors': expected a tensor of it, as in file.safetensors:name");
    refuses_file("m.safetensors:c", LNORM_INVALID_ARGUMENT, "'m.safetensors': has no tensor 'c' (it has 7)");
    refuses_file("m.safetensors:", LNORM_INVALID_ARGUMENT, "'m.safetensors': has no tensor '' (it has 7)");
    refuses_file("n.safetensors:a", LNORM_NOT_AVAILABLE,
                 "'n.safetensors': cannot be opened for reading: No such file or directory");
    refuses_file("m.safetensors:i", LNORM_UNSUPPORTED_DTYPE,
                 "'m.safetensors': tensor 'i': expected float64, float32, float16 "
                 "or bfloat16 (F64, F32, F16, BF16), got 'I8'");
    refuses_file("m.safetensors:new", LNORM_UNSUPPORTED_DTYPE,
                 "'m.safetensors': tensor 'new': expected float64, float32, "
                 "float16 or bfloat16 (F64, F32, F16, BF16), got 'X9'");
    assert_null(lnorm_file_open_tensor(NULL, "a", &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "path: expected a name, got NULL");
    assert_null(lnorm_file_open_tensor("m.safetensors", NULL, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "name: expected a name, got NULL");
    lnorm_model *model = open_model("m.safetensors");
    assert_null(lnorm_model_read(model, NULL, &error));
    assert_failed(&error, LNORM_INVALID_ARGUMENT, "'m.safetensors': tensor: expected one of its tensors, got NULL");
    lnorm_model_close(model);
    refuses_model(".", LNORM_NOT_AVAILABLE, "'.': expected a file: Is a directory");
    refuses_model(NULL, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
}

#define ONE(tensor) "{\"a\":" tensor "}"
#define AT(shape, offsets) ONE("{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}")
#define TWO(first, second)                                                \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first "}," \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"
#define A "'m.safetensors': tensor 'a': expected "
#define SHAPE_OF "'m.safetensors': tensor 'a': shape "
#define RANGE A "data_offsets [begin, end] with 0 <= begin <= end < 2^62, got "

/* Eight bytes of data. */
static const struct {
    const char *header, *message;
} bad_headers[] = {
    {"", "'m.safetensors': expected a header that begins with '{', got none"},
    {" {}", "'m.safetensors': expected a header that begins with '{', got ' '"},
    {"[]", "'m.safetensors': expected a header that begins with '{', got '['"},
    {"{} x", "'m.safetensors': header, byte 12: expected a JSON object, got: 'end of file expected near 'x''"},
    {"{\"a\"", "'m.safetensors': header, byte 12: expected a JSON object, got: '':' expected near end of file'"},
    {"{\"a\":1,\"a\":2}",
     "'m.safetensors': header, byte 18: expected a JSON object, got: 'duplicate object key near '\"a\"''"},
    {ONE("{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"),
     "'m.safetensors': header, byte 35: expected a JSON object, got: 'duplicate object key near '\"dtype\"''"},
    {"{\"\xFF\":1}",
     "'m.safetensors': header, byte 10: expected a JSON object, got: 'unable to decode byte 0xff near '\"''"},
    {"{}",
     "'m.safetensors': expected the end of the file after the 0 bytes of data that the tensors take, got 8 bytes more"},
    {"{\"__metadata__\":1}", "'m.safetensors': __metadata__: expected an object of strings"},
    {"{\"__metadata__\":{\"a\":1}}", "'m.safetensors': __metadata__: expected an object of strings"},
    {ONE("3"), A "an object with the keys dtype, shape and data_offsets, and no others"},
    {ONE("{}"), A "an object with the keys dtype, shape and data_offsets, and no others"},
    {ONE("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}"),
     A "an object with the keys dtype, shape and data_offsets, and no others"},
    {ONE("{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}"), A "dtype to be a string"},
    {AT("2", "[0,8]"), A "shape to be an array of integers"},
    {AT("{}", "[0,8]"), A "shape to be an array of integers"},
    {AT("[2.0]", "[0,8]"), A "shape to be an array of integers of at least 0"},
    {AT("[-2]", "[0,8]"), A "shape to be an array of integers of at least 0"},
    {AT("[null]", "[0,8]"), A "shape to be an array of integers of at least 0"},
    {AT("[2]", "8"), A "data_offsets to be an array of two integers"},
    {AT("[2]", "[0]"), A "data_offsets to be an array of two integers"},
    {AT("[2]", "[0,8,8]"), A "data_offsets to be an array of two integers"},
    {AT("[2]", "[0,8.0]"), A "data_offsets to be an array of two integers"},
    {AT("[2]", "[-8,0]"), RANGE "[-8, 0]"},
    {AT("[2]", "[8,0]"), RANGE "[8, 0]"},
    {AT("[2]", "[0,9223372036854775807]"), RANGE "[0, 9223372036854775807]"},
    {AT("[2]", "[0,4]"), SHAPE_OF "[2] of F32 takes 8 bytes, data_offsets give it 4"},
    {AT("[3]", "[0,8]"), SHAPE_OF "[3] of F32 takes 12 bytes, data_offsets give it 8"},
    {AT("[4294967296,4294967296]", "[0,8]"), SHAPE_OF "[4294967296, 4294967296] of F32 is 2^62 bits or more"},
    {AT("[0,9223372036854775807]", "[0,0]"), SHAPE_OF "[0, 9223372036854775807] of F32 is 2^62 bits or more"},
    {ONE("{\"dtype\":\"F4\",\"shape\":[15],\"data_offsets\":[0,7]}"),
     SHAPE_OF "[15] of F4 takes 7 bytes and some bits, data_offsets give it 7"},
    {AT("[4]", "[0,16]"),
     "'m.safetensors': truncated: the tensors take 16 bytes of data, 8 are there, 8 bytes are missing"},
    {AT("[1]", "[0,4]"),
     "'m.safetensors': expected the end of the file after the 4 bytes of data that the tensors take, got 4 bytes more"},
    {AT("[1]", "[4,8]"), A "its data to begin at 0, where that before it ends, got 4: a hole"},
    {TWO("[0,4]", "[0,4]"),
     "'m.safetensors': tensor 'b': expected its data to begin at 4, where that before it ends, got 0: an overlap"},
    {TWO("[2,6]", "[0,4]"), A "its data to begin at 4, where that before it ends, got 2: an overlap"},
    {TWO("[6,10]", "[0,4]"), A "its data to begin at 4, where that before it ends, got 6: a hole"},
};

static void malformed_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        write_safetensors("m.safetensors", bad_headers[i].header, 8);
        refuses_model("m.safetensors", LNORM_INVALID_ARGUMENT, bad_headers[i].message);
    }
    write_safetensors("m.safetensors", "{\"a\\u0000\":1}", 0); /* a name of this language has no NUL */
    assert_null(lnorm_model_open("m.safetensors", NULL));
    write_safetensors("m.safetensors", AT("[9223372036854775808]", "[0,8]"), 8);
    assert_null(lnorm_model_open("m.safetensors", NULL));
}

static void malformed_frames(void **state) {
    unsigned char file[1024];
    (void)state;
    write_safetensors("m.safetensors", AT("[2]", "[0,8]"), 8);
    const size_t size = read_bytes("m.safetensors", file, sizeof file);
    for (size_t length = 0; length < size; length++) {
        char message[300];
        if (length < 8)
            snprintf(message, sizeof message,
                     "'m.safetensors': truncated: a .safetensors file begins with 8 bytes of header "
                     "length, %zu are there",
                     length);
        else if (length < size - 8)
            snprintf(message, sizeof message,
                     "'m.safetensors': truncated: the header ends at byte %zu, the file at byte %zu: "
                     "%zu bytes are missing",
                     size - 8, length, size - 8 - length);
        else
            snprintf(message, sizeof message,
                     "'m.safetensors': truncated: the tensors take 8 bytes of data, %zu are there, "
                     "%zu bytes are missing",
                     length - (size - 8), size - length);
        write_bytes("m.safetensors", file, length);
        refuses_model("m.safetensors", LNORM_INVALID_ARGUMENT, message);
    }
    put_bits(file, 100000001, 8, 0);
    write_bytes("m.safetensors", file, size);
    refuses_model("m.safetensors", LNORM_INVALID_ARGUMENT,
                  "'m.safetensors': expected a .safetensors file, with a header of at "
                  "most 100000000 bytes, got one of 100000001");
    put_bits(file, UINT64_MAX, 8, 0);
    write_bytes("m.safetensors", file, size);
    refuses_model("m.safetensors", LNORM_INVALID_ARGUMENT,
                  "'m.safetensors': expected a .safetensors file, with a header of at "
                  "most 100000000 bytes, got one of 18446744073709551615");
}

static void many_axes(void **state) {
    (void)state;
    write_safetensors("m.safetensors", AT("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", "[0,8]"), 8);
    lnorm_model *model = open_model("m.safetensors");
    assert_int_equal(lnorm_model_at(model, 0)->ndim, 17);
    lnorm_model_close(model);
    refuses_file("m.safetensors:a", LNORM_UNSUPPORTED, "'m.safetensors': tensor 'a': expected at most 16 axes, got 17");
}

/* ---- saving ---- */

/* What the format's own library writes for the same tensors (safetensors 0.8). */
static void the_bytes_of_safetensors(void **state) {
    static const char expected[] =
        "\x20\1\0\0\0\0\0\0{\"d\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"F32\","
        "\"shape\":[1],\"data_offsets\":[16,20]},\"sc\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]},"
        "\"c/\xC3\xA9\\\"\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]},\"a\":{\"dtype\":\"F16\","
        "\"shape\":[2,0],\"data_offsets\":[28,28]}}   "
        "\0\0\0\0\0\0\xF0?\0\0\0\0\0\0\0@\0\0\x80?\0\0\0@\x80?\0@";
    const double f64[] = {1, 2};
    const float f32[] = {1, 2};
    const uint16_t bf16[] = {0x3F80, 0x4000};
    const int64_t one[] = {1}, two[] = {2}, row[] = {1, 2}, none[] = {2, 0}, strides[] = {99, 1};
    lnorm_named_tensor tensors[] = {
        {"b", lnorm_dense(f32, LNORM_F32, 1, one)},
        {"a", lnorm_dense(NULL, LNORM_F16, 2, none)},
        {"c/\xC3\xA9\"", lnorm_dense(bf16, LNORM_BF16, 1, two)},
        {"d", lnorm_dense(f64, LNORM_F64, 2, row)},
        {"sc", lnorm_dense(f32, LNORM_F32, 0, NULL)},
    };
    lnorm_error error = stale_error();
    unsigned char bytes[512];
    (void)state;
    tensors[3].tensor.strides = strides; /* the axis has one element, so this is row-major */
    tensors[4].tensor.byte_offset = 4;
    assert_int_equal(lnorm_model_save("m.safetensors", tensors, 5, &error), LNORM_OK);
    assert_succeeded(&error);
    size_t size = read_bytes("m.safetensors", bytes, sizeof bytes);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(bytes, expected, size);
    lnorm_model_close(open_model("m.safetensors"));
    assert_int_equal(lnorm_model_save("m.safetensors", NULL, 0, &error), LNORM_OK);
    size = read_bytes("m.safetensors", bytes, sizeof bytes);
    assert_int_equal(size, 16);
    assert_memory_equal(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16);
    lnorm_model_close(open_model("m.safetensors"));
    assert_int_equal(scratch_entries(), 1);
}

static void refuses_to_save(const char *path, const lnorm_named_tensor *tensors, int64_t count, lnorm_status status,
                            const char *message) {
    lnorm_error error = stale_error();
    assert_int_equal(lnorm_model_save(path, tensors, count, &error), status);
    assert_failed(&error, status, message);
    assert_int_equal(scratch_entries(), 0);
}

static void refused_tensors(void **state) {
    const float f32[] = {1, 2, 3, 4};
    const int64_t shape[] = {2, 2}, negative[] = {-1}, large[] = {INT64_MAX}, columns[] = {1, 2};
    const lnorm_named_tensor good = {"a", lnorm_dense(f32, LNORM_F32, 2, shape)};
    lnorm_named_tensor t = good, twice[2] = {good, good};
    (void)state;
    refuses_to_save(NULL, &t, 1, LNORM_INVALID_ARGUMENT, "path: expected a file name, got NULL");
    refuses_to_save("m", NULL, 1, LNORM_INVALID_ARGUMENT, "tensors: expected a pointer to `count` tensors");
    refuses_to_save("m", &t, -1, LNORM_INVALID_ARGUMENT, "tensors: expected a pointer to `count` tensors");
    refuses_to_save("-", &t, 1, LNORM_INVALID_ARGUMENT,
                    "path: a .safetensors file cannot be written to standard output ('./-' is a file of that name)");
    refuses_to_save("d/m", &t, 1, LNORM_NOT_AVAILABLE,
                    "'d/m': a temporary file beside it cannot be created: No such file or directory");
    t.name = NULL;
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensors: expected a name for each, got NULL");
    t.name = "__metadata__";
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT,
                    "tensor '__metadata__': expected another name, this one has a meaning in the file");
    t.name = "a\xFF";
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensor 'a\xFF': expected a name in UTF-8");
    twice[1].tensor.dtype = LNORM_F16;
    refuses_to_save("m", twice, 2, LNORM_INVALID_ARGUMENT, "tensor 'a': expected different names, got it twice");
    t = good;
    t.tensor.dtype = LNORM_DTYPE(0, 32);
    refuses_to_save("m", &t, 1, LNORM_UNSUPPORTED_DTYPE, "tensor 'a': expected float64, float32, float16 or bfloat16");
    t = good;
    t.tensor.device.device_type = 2;
    refuses_to_save("m", &t, 1, LNORM_UNSUPPORTED, "tensor 'a': expected memory of the CPU");
    t = good;
    t.tensor.ndim = 17;
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensor 'a': expected a shape of 0 to 16 axes");
    t.tensor.ndim = 1;
    t.tensor.shape = negative;
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensor 'a': expected extents of at least 0");
    t.tensor.shape = large;
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensor 'a': expected less than 2^62 bytes");
    t = good;
    t.tensor.data = NULL;
    refuses_to_save("m", &t, 1, LNORM_INVALID_ARGUMENT, "tensor 'a': expected data, got NULL");
    t = good;
    t.tensor.strides = columns;
    refuses_to_save("m", &t, 1, LNORM_UNSUPPORTED, "tensor 'a': expected a dense row-major tensor");
}

int model_tests(void) {
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(listing),
        SCRATCH_TEST(reading),
        SCRATCH_TEST(names_that_lead_nowhere),
        SCRATCH_TEST(malformed_headers),
        SCRATCH_TEST(malformed_frames),
        SCRATCH_TEST(many_axes),
        SCRATCH_TEST(the_bytes_of_safetensors),
        SCRATCH_TEST(refused_tensors),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
