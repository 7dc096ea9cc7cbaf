/* The canonical form of an operation: what the checks of problem.c leave for the engines.
 *
 * x's axes, in logical order, possibly split (group norm: C into groups and channels of a group) and merged where every
 * operand allows. Each axis is reduced or not (not: outer); weight and bias are each indexed by a set of axes of their
 * own. Every operand has a stride for every axis, 0 along axes that it does not have. */
#ifndef LNORM_PROBLEM_H
#define LNORM_PROBLEM_H

#include "arithmetic.h"
#include "lnorm.h"

#include <string.h>

enum lnorm_element {
#define DTYPE(ID, name, code, bits) LNORM_ELEMENT_##ID,
#include "lists/dtypes.def"
#undef DTYPE
    LNORM_ELEMENT_ABSENT /* the operand is not there */
};

enum lnorm_operand {
#define OPERAND(ID, field, shape, reads, writes) LNORM_##ID,
#include "lists/operands.def"
#undef OPERAND
    LNORM_OPERANDS
};

enum { LNORM_MAX_AXES = LNORM_MAX_NDIM + 1 }; /* group norm splits one */

typedef struct lnorm_operand_form {
    uint8_t element; /* enum lnorm_element; ABSENT unless this pass reads or writes it */
    uint8_t read, written;
    uint8_t dense;                   /* its elements fill [low, high) without gaps: overlap can be decided */
    int64_t low, high;               /* bytes that its elements span, relative to data + byte_offset */
    int64_t stride[LNORM_MAX_AXES];  /* in elements */
} lnorm_operand_form;

/* A set of axes seen as one index 0 .. count-1 in logical (row-major) order. */
typedef struct lnorm_space {
    int axes;
    uint8_t axis[LNORM_MAX_AXES]; /* ascending */
    int64_t count;                /* product of the extents; 1 for no axes */
} lnorm_space;

/* Operands in their order: what a call looks at, of the many that there could be. */
typedef struct lnorm_operand_list {
    uint8_t at[LNORM_OPERANDS], count;
} lnorm_operand_list;

typedef struct lnorm_problem {
    uint8_t pass, statistics; /* enum lnorm_pass, lnorm_statistics */
    uint8_t center;           /* the mean is removed (0: RMS) */
    uint8_t wide;             /* some input is f64: the wide arithmetic */
    uint8_t fast;             /* the fast arithmetic; neither: the narrow one */
    uint8_t weight_offset, accumulate;
    double eps;
    double update; /* q of the running statistics */
    int axes;
    int64_t extent[LNORM_MAX_AXES];
    uint32_t reduced, weight_axes, bias_axes; /* bit a: axis a */
    lnorm_space group;   /* the axes that are not reduced: one index per group */
    lnorm_space element; /* the reduced axes: one index per element of a group; count is N */
    lnorm_operand_form operand[LNORM_OPERANDS];
    lnorm_operand_list present, written; /* of the operands that take part: all, outputs */
} lnorm_problem;

/* data + byte_offset of every operand that is present. */
typedef struct lnorm_data {
    char *at[LNORM_OPERANDS];
    void *workspace; /* NULL, or as many bytes as the engine asked for, aligned to 64 */
    int in_order;    /* one thread runs all tasks, one after another: what the next one reads may be asked for */
} lnorm_data;

/* Checks op and io and fills `problem`; on an error fills `error` (never NULL here) and returns its status. */
lnorm_status lnorm_problem_init(lnorm_problem *problem, const lnorm_op *op, const lnorm_io *io, lnorm_error *error);

/* The pointers of an io that holds the problem's tensors; the workspace, aligned, where `workspace` bytes are due. */
void lnorm_problem_data(const lnorm_problem *problem, const lnorm_io *io, size_t workspace, lnorm_data *data);

/* Checks the pointers: none NULL where elements are due, no forbidden overlap of dense operands. */
lnorm_status lnorm_problem_check(const lnorm_problem *problem, const lnorm_data *data, lnorm_error *error);

static inline int lnorm_has(const lnorm_problem *problem, enum lnorm_operand operand) {
    return problem->operand[operand].element != LNORM_ELEMENT_ABSENT;
}

/* The axes of the set `axes` (bits) as a space. */
lnorm_space lnorm_space_of(const lnorm_problem *problem, uint32_t axes);

/* Offset in elements of index `index` of the space for an operand. */
static inline int64_t lnorm_offset(const lnorm_problem *problem, enum lnorm_operand operand, const lnorm_space *space,
                                   int64_t index) {
    const int64_t *stride = problem->operand[operand].stride;
    int64_t offset = 0;
    for (int i = space->axes; i-- > 0;) {
        int axis = space->axis[i];
        offset += index % problem->extent[axis] * stride[axis];
        index /= problem->extent[axis];
    }
    return offset;
}

/* The engines share one interface; all of them write the same bits. */
struct lnorm_kernels;
typedef struct lnorm_engine {
    const char *name;
    int (*takes)(const lnorm_problem *problem); /* can it run this problem? */
    size_t (*workspace)(const lnorm_problem *problem);
    int (*phases)(const lnorm_problem *problem);
    int64_t (*tasks)(const lnorm_problem *problem, int phase);
    void (*run)(const lnorm_problem *problem, const lnorm_data *data, const struct lnorm_kernels *kernels, int phase,
                int64_t task);
} lnorm_engine;

extern const lnorm_engine lnorm_engine_long;      /* few long rows, cut into segments: kernels/long.inc */
extern const lnorm_engine lnorm_engine_rows;      /* contiguous rows: kernels/rows_*.inc */
extern const lnorm_engine lnorm_engine_wide;      /* contiguous rows of f64: kernels/wide_*.inc */
extern const lnorm_engine lnorm_engine_columns;   /* groups side by side in memory: columns_*.c */
extern const lnorm_engine lnorm_engine_general;   /* any strides and narrow element types: general_*.c */
extern const lnorm_engine lnorm_engine_reference; /* everything but fast: reference*.c */
extern const lnorm_engine lnorm_engine_definition; /* everything: tests/reference_engine.c */

enum { LNORM_PHASES_MAX = 5 };

/* What an lnorm_plan holds. */
typedef struct lnorm_plan_form {
    uint64_t magic;
    lnorm_status status;
    const lnorm_engine *engine;
    const struct lnorm_kernels *kernels;
    size_t workspace;
    int phases;
    int64_t tasks[LNORM_PHASES_MAX];
    lnorm_problem problem;
} lnorm_plan_form;

/* Comparisons of scalar arguments. They are made before the caller's floating-point environment is replaced, and that
 * may trap on a NaN or take a negative subnormal for 0: they are made on the bits, which from +0 up are in order. */
static inline int lnorm_same_number(double a, double b) {
    return !memcmp(&a, &b, sizeof a);
}

static inline int lnorm_in_range(double value, double largest) {
    uint64_t bits, limit;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&limit, &largest, sizeof limit);
    return bits <= limit || lnorm_same_number(value, -0.0);
}

/* eps is legal: finite and at least 0, or LNORM_EPS_DEFAULT; and the number it stands for, x's element type given. */
static inline int lnorm_eps_legal(double eps) {
    return lnorm_same_number(eps, LNORM_EPS_DEFAULT) || lnorm_in_range(eps, DBL_MAX);
}

static inline double lnorm_eps_value(double eps, int center, enum lnorm_element x) {
    if (!lnorm_same_number(eps, LNORM_EPS_DEFAULT))
        return eps;
    return center ? 1e-5 : x == LNORM_ELEMENT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

/* The name of an operand in messages: its field of lnorm_io. */
const char *lnorm_operand_name(enum lnorm_operand operand);

/* The workspace a user is asked for, and the part of it that engines get: aligned to 64, NULL where none is needed. */
size_t lnorm_padded_workspace(size_t bytes);
void *lnorm_align_workspace(void *workspace, size_t needed);

/* An executor as users fill it. */
lnorm_status lnorm_check_executor(const lnorm_executor *executor, lnorm_error *error);

/* Tasks of a phase: the engine's, or none where there is nothing to do. */
int64_t lnorm_tasks(const lnorm_engine *engine, const lnorm_problem *problem, int phase);

/* Phases of every engine but the one of long rows: forward and forward mode 1, the others 3: statistics, affine
 * gradients, the rest. */
static inline int lnorm_phases(const lnorm_problem *problem) {
    return problem->pass == LNORM_BACKWARD || problem->pass == LNORM_DOUBLE_BACKWARD ? 3 : 1;
}

#endif
