/* Reads the files of tests/cases (their README.md defines them) into C structures. */
#ifndef CASE_FILE_H
#define CASE_FILE_H

#include "arithmetic.h"
#include "lnorm.h"

enum case_element { CASE_F64, CASE_F32, CASE_F16, CASE_BF16, CASE_I64 };
enum case_size { CASE_SMALL, CASE_MEDIUM, CASE_LARGE, CASE_HUGE };

/* Every array a case can have. Inputs first; outputs are the results that a case can expect. */
enum case_slot {
    CASE_X, CASE_WEIGHT, CASE_BIAS, CASE_DY, CASE_V,
    CASE_Y, CASE_MEAN, CASE_RSTD, CASE_DX, CASE_DWEIGHT, CASE_DBIAS, CASE_DDY,
    CASE_SLOTS, CASE_FIRST_RESULT = CASE_Y
};
extern const char *const case_slot_name[CASE_SLOTS];

/* Numbers of a file. All element types are exact in f64. */
typedef struct case_array {
    int present;
    int64_t count;
    double *value;
    unsigned char *any; /* 1: "any", an entry outside the contract */
} case_array;

/* x[i] = (a + (k >> s)) * 2^e, k from mix24 */
typedef struct case_generator {
    int present;
    uint64_t seed;
    int64_t a;
    int s, e;
} case_generator;

typedef struct case_shape {
    int present;
    int ndim;
    int64_t extent[LNORM_MAX_NDIM];
} case_shape;

/* What a result must be: all elements, or those at `index` (flat). */
typedef struct case_expectation {
    case_array array;
    int64_t *index;
    int tolerance_ulp;
    int has_tolerance_abs;
    double tolerance_abs;
} case_expectation;

typedef struct layer_case {
    const char *id;
    lnorm_kind kind;
    int double_backward;
    enum case_size size;
    enum case_element element[CASE_SLOTS];
    case_shape shape, normalized_shape, axes, strides, weight_shape;
    int64_t groups;
    int broadcast; /* profile: onnx */
    int alias;     /* dx=dy */
    double eps;
    case_array input[CASE_FIRST_RESULT];
    case_generator generator[CASE_FIRST_RESULT];
    case_expectation expect[CASE_SLOTS]; /* inputs' entries unused */
    lnorm_status status; /* LNORM_OK, or the error that is expected */
    const char *message; /* text the error must contain, or NULL */
} layer_case;

typedef struct case_file {
    char name[64];
    int count;
    layer_case *cases;
    void *root; /* the JSON document, owner of the strings */
} case_file;

/* Reads directory/name.json. 0: it cannot be read, or holds anything that this reader does not know; the reason is
 * printed. Nothing is skipped in silence. */
int case_file_read(case_file *file, const char *directory, const char *name);
void case_file_free(case_file *file);

/* Element i of a generated input. */
static inline double case_generate(const case_generator *generator, uint64_t i, double scale) {
    uint64_t z = generator->seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    uint64_t k = (z ^ (z >> 31)) >> 40;
    return (double)((int64_t)(k >> generator->s) + generator->a) * scale; /* scale = 2^e: exact */
}

#endif
