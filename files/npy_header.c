/* Reads exactly the Python dictionaries that are .npy headers:
 *
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }      then spaces and one line feed
 *
 * the three keys in any order, each once; strings in either quotes, without escapes; spaces between the words; the
 * trailing commas that Python allows. Versions 1 and 2 may come from Python 2, whose long integers end in L. */
#include "npy.h"

#include <stdio.h>
#include <string.h>

enum { DESCR_ROOM = 64 };
enum { DESCR = 1, FORTRAN_ORDER = 2, SHAPE = 4, ALL_KEYS = 7 };

typedef struct scanner {
    const char *begin, *at, *end;
    int64_t offset; /* of begin in the file */
    int longs;      /* integers may end in L */
    const char *name;
    lnorm_error *error;
} scanner;

static lnorm_status unexpected(const scanner *s, const char *expected) {
    long long place = (long long)(s->offset + (s->at - s->begin));
    if (s->at == s->end)
        return lnorm_files_fail(s->error, LNORM_INVALID_ARGUMENT, "%s: header, byte %lld: expected %s, got its end",
                                s->name, place, expected);
    return lnorm_files_fail(s->error, LNORM_INVALID_ARGUMENT, "%s: header, byte %lld: expected %s, got %s", s->name,
                            place, expected, lnorm_files_quote_bytes(s->at, 1).at);
}

static void spaces(scanner *s) {
    while (s->at < s->end && *s->at == ' ')
        s->at++;
}

static int next_is(scanner *s, char wanted) {
    spaces(s);
    return s->at < s->end && *s->at == wanted;
}

static int take(scanner *s, char wanted) {
    int found = next_is(s, wanted);
    s->at += found;
    return found;
}

static int take_word(scanner *s, const char *word) {
    size_t length = strlen(word);
    spaces(s);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length))
        return 0;
    s->at += length;
    return 1;
}

/* A string of printable ASCII without quotes or backslashes: what any key or element type consists of. */
static lnorm_status string(scanner *s, char *text, size_t room, const char *expected) {
    size_t length = 0;
    char quote = next_is(s, '\'') ? '\'' : '"';
    if (!take(s, quote))
        return unexpected(s, expected);
    for (; s->at < s->end && *s->at != quote; s->at++) {
        if (*s->at < ' ' || *s->at > '~' || *s->at == '\\' || *s->at == '\'' || *s->at == '"' || length + 1 >= room)
            return unexpected(s, "the end of a short string");
        text[length++] = *s->at;
    }
    text[length] = 0;
    if (s->at == s->end)
        return unexpected(s, "the end of a string");
    s->at++;
    return LNORM_OK;
}

static lnorm_status integer(scanner *s, int64_t *value) {
    spaces(s);
    const char *first = s->at;
    *value = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        int digit = *s->at - '0';
        if (*value > (INT64_MAX - digit) / 10)
            return lnorm_files_fail(s->error, LNORM_INVALID_ARGUMENT,
                                    "%s: header, byte %lld: an extent of 2^63 or more", s->name,
                                    (long long)(s->offset + (first - s->begin)));
        *value = *value * 10 + digit;
    }
    if (s->at == first)
        return unexpected(s, "an integer of at least 0");
    if (*first == '0' && s->at - first > 1) {
        s->at = first;
        return unexpected(s, "an integer without leading zeros");
    }
    if (s->longs && s->at < s->end && *s->at == 'L')
        s->at++;
    return LNORM_OK;
}

static lnorm_status shape(scanner *s, lnorm_npy_header *header) {
    int comma = 1;
    if (!take(s, '('))
        return unexpected(s, "'(' (shape is a tuple)");
    for (header->ndim = 0; !next_is(s, ')'); header->ndim++) {
        int64_t extent;
        if (!comma)
            return unexpected(s, "',' or ')'");
        if (integer(s, &extent))
            return LNORM_INVALID_ARGUMENT;
        if (header->ndim == LNORM_MAX_NDIM)
            return lnorm_files_fail(s->error, LNORM_UNSUPPORTED, "%s: expected at most %d axes, got more", s->name,
                                    (int)LNORM_MAX_NDIM);
        header->shape[header->ndim] = extent;
        comma = take(s, ',');
    }
    if (header->ndim == 1 && !comma)
        return unexpected(s, "',' (a tuple of one is written (n,))");
    take(s, ')');
    return LNORM_OK;
}

static lnorm_status descr(scanner *s, char text[DESCR_ROOM]) {
    if (next_is(s, '[') || next_is(s, '('))
        return lnorm_files_fail(s->error, LNORM_UNSUPPORTED_DTYPE,
                                "%s: expected " LNORM_FILES_FLOATS ", got records of several fields", s->name);
    return string(s, text, DESCR_ROOM, "a string (descr)");
}

static lnorm_status fortran_order(scanner *s, lnorm_npy_header *header) {
    header->fortran_order = take_word(s, "True");
    if (!header->fortran_order && !take_word(s, "False"))
        return unexpected(s, "True or False (fortran_order)");
    return LNORM_OK;
}

static int key_of(const char *text) {
    return !strcmp(text, "descr")           ? DESCR
           : !strcmp(text, "fortran_order") ? FORTRAN_ORDER
           : !strcmp(text, "shape")         ? SHAPE
                                            : 0;
}

static lnorm_status item(scanner *s, lnorm_npy_header *header, char type[DESCR_ROOM], int *seen) {
    char text[32];
    lnorm_status status = string(s, text, sizeof text, "a key in quotes");
    if (status)
        return status;
    int key = key_of(text);
    if (!key || (*seen & key))
        return lnorm_files_fail(s->error, LNORM_INVALID_ARGUMENT,
                                "%s: header: expected the keys descr, fortran_order and "
                                "shape, each once, got %s%s",
                                s->name, lnorm_files_quote(text).at, key ? " twice" : "");
    *seen |= key;
    if (!take(s, ':'))
        return unexpected(s, "':'");
    return key == DESCR ? descr(s, type) : key == SHAPE ? shape(s, header) : fortran_order(s, header);
}

static lnorm_status dictionary(scanner *s, lnorm_npy_header *header, char type[DESCR_ROOM]) {
    int comma = 1, seen = 0;
    if (s->at == s->end || *s->at != '{')
        return unexpected(s, "'{'");
    s->at++;
    while (!next_is(s, '}')) {
        lnorm_status status = comma ? item(s, header, type, &seen) : unexpected(s, "',' or '}'");
        if (status)
            return status;
        comma = take(s, ',');
    }
    take(s, '}');
    if (seen != ALL_KEYS)
        return lnorm_files_fail(s->error, LNORM_INVALID_ARGUMENT, "%s: header: the key '%s' is missing", s->name,
                                !(seen & DESCR)   ? "descr"
                                : !(seen & SHAPE) ? "shape"
                                                  : "fortran_order");
    spaces(s);
    if (s->end - s->at != 1 || *s->at != '\n')
        return unexpected(s, "spaces and one line feed at its end");
    return LNORM_OK;
}

lnorm_status lnorm_npy_parse(lnorm_npy_header *header, const char *text, size_t length, int64_t offset, int version,
                             int as_bf16, const char *name, lnorm_error *error) {
    scanner s = {text, text, text + length, offset, version < 3, name, error};
    char type[DESCR_ROOM];
    lnorm_status status = dictionary(&s, header, type);
    if (!status)
        status = lnorm_npy_decode(header, type, as_bf16, name, error);
    if (!status && lnorm_files_count(header->ndim, header->shape, header->element->size) < 0)
        status = lnorm_files_fail(error, LNORM_INVALID_ARGUMENT, "%s: shape %s of %s is 2^62 bytes or more", name,
                                  lnorm_files_shape(header->ndim, header->shape).at, header->element->name);
    return status;
}

/* NumPy leaves room for the slowest axis to grow to 21 digits, and pads to a multiple of 64. */
size_t lnorm_npy_print(char text[LNORM_NPY_ROOM], const lnorm_npy_header *header) {
    const size_t prefix = LNORM_NPY_MAGIC + 2;
    int grow = 0;
    size_t used = prefix, total;
    memcpy(text, "\x93NUMPY\x01\x00", LNORM_NPY_MAGIC);
    used += (size_t)snprintf(text + used, LNORM_NPY_ROOM - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             header->element->descr);
    for (int32_t i = 0; i < header->ndim; i++) {
        int digits = snprintf(text + used, LNORM_NPY_ROOM - used, "%lld", (long long)header->shape[i]);
        grow = i ? grow : 21 - digits;
        used += (size_t)digits;
        used += (size_t)snprintf(text + used, LNORM_NPY_ROOM - used, "%s",
                                 header->ndim == 1      ? ","
                                 : i + 1 < header->ndim ? ", "
                                                        : "");
    }
    used += (size_t)snprintf(text + used, LNORM_NPY_ROOM - used, "), }");
    total = (used + (size_t)grow + 1 + 63) / 64 * 64;
    memset(text + used, ' ', total - used - 1);
    text[total - 1] = '\n';
    text[prefix - 2] = (char)((total - prefix) & 0xFF);
    text[prefix - 1] = (char)((total - prefix) >> 8);
    return total;
}
