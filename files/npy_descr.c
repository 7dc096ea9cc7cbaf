/* Element types of .npy files: NumPy's array protocol strings, byte order, kind and size. */
#include "npy.h"

#include <stdio.h>
#include <string.h>

/* What the strings that are not ours mean, for messages; bits: the size, in bytes, is told in bits behind the name. */
static const struct {
    char kind;
    const char *name;
    int bits;
} kinds[] = {
    {'i', "int", 1},  {'u', "uint", 1},           {'f', "float", 1},        {'c', "complex", 1},
    {'b', "bool", 0}, {'O', "Python objects", 0}, {'S', "byte strings", 0}, {'a', "byte strings", 0},
    {'U', "text", 0}, {'M', "datetime64", 0},     {'m', "timedelta64", 0},  {'V', "raw bytes", 0},
};

static lnorm_status refuse(const char *descr, const char *name, lnorm_error *error) {
    const char *size = *descr ? descr + 1 : descr;
    char type[32] = "an unknown type";
    int bytes = 0;
    for (size_t i = 0; *size && i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == *size && kinds[i].bits && sscanf(size + 1, "%2d", &bytes) == 1)
            snprintf(type, sizeof type, "%s%d", kinds[i].name, bytes * 8);
        else if (kinds[i].kind == *size && !kinds[i].bits)
            snprintf(type, sizeof type, "%s", kinds[i].name);
    return lnorm_files_fail(error, LNORM_UNSUPPORTED_DTYPE, "%s: expected " LNORM_FILES_FLOATS ", got %s (descr %s)",
                            name, type, lnorm_files_quote(descr).at);
}

static const lnorm_files_element *bf16(void) {
    return lnorm_files_element_of((lnorm_dtype){4, 16, 1});
}

/* bfloat16 is not a type of NumPy's. The package ml_dtypes adds it with kind V, so that numpy.save writes '<V2' (on
 * big-endian machines '>V2'). Plain raw bytes have no byte order, NumPy always writes them '|V2', and ml_dtypes has no
 * other type of two bytes: with a byte order, V2 is bfloat16 and nothing else. Without one it can be anything, so
 * somebody has to say that it is bfloat16, and little-endian is assumed as nothing tells. The word "bfloat16" is what
 * writers other than NumPy use; it has no byte order either. */
lnorm_status lnorm_npy_decode(lnorm_npy_header *header, const char *descr, int as_bf16, const char *name,
                              lnorm_error *error) {
    int raw = !strcmp(descr, "|V2");
    header->element = NULL;
    header->big_endian = *descr == '>' || (*descr == '=' && lnorm_files_big_endian_machine());
    if (raw && !as_bf16)
        return lnorm_files_fail(error, LNORM_UNSUPPORTED_DTYPE,
                                "%s: expected " LNORM_FILES_FLOATS ", got two raw bytes per "
                                "element (descr '|V2'), which may be bfloat16 but need not: say so if it is (as_bf16; "
                                "of the program: --bf16)",
                                name);
    if (raw || !strcmp(descr, "bfloat16"))
        header->element = bf16();
    else if (*descr && strchr("<>=", *descr))
        for (int i = 0; i < LNORM_FILES_ELEMENTS; i++)
            if (!strcmp(descr + 1, lnorm_files_elements[i].descr + 1))
                header->element = &lnorm_files_elements[i];
    return header->element ? LNORM_OK : refuse(descr, name, error);
}
