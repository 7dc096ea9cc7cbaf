/* A forward pass over arrays of any size: X comes from a file, y and statistics go to files, in pieces; parameters are
 * in memory.
 *
 * The pieces are boxes of X in which whole groups lie (slab.c), or, where a group is too large for that, segments of
 * one (big_group.c). Where a file's order of axes would give pieces that are scattered over it, the array makes a
 * detour through a temporary file in which groups follow one another: X before, y after. What is written to a pipe
 * waits in a temporary file where its pieces do not come in order. */
#ifndef LNORM_CLI_FLOW_H
#define LNORM_CLI_FLOW_H

#include "box.h"

/* An operand that does not fit into memory. */
typedef struct stream {
    enum lnorm_operand operand;
    lnorm_dtype dtype;
    view file; /* where it comes from or goes to */
    view work; /* where pieces are read and written: the file, or a temporary file */
    int detour;
} stream;

enum { MAX_STREAMS = 4 };

typedef struct flow {
    const lnorm_problem *problem; /* of the whole arrays */
    const lnorm_io *io;           /* weight, bias and given statistics, in memory; of the others, descriptions */
    frame frame;
    uint32_t whole; /* axes that a box must have whole: the reduced ones, unless statistics are given */
    int64_t budget; /* elements of a piece */
    int64_t tile[LNORM_MAX_AXES];
    stream stream[MAX_STREAMS];
    int streams;
    int64_t done; /* bytes, for the progress line */
    const lnorm_executor *executor;
} flow;

/* Where X is, where those outputs go that are wanted (others: NULL), and who computes (NULL: the calling thread). */
typedef struct flow_ends {
    const lnorm_file *x;
    lnorm_file_writer *y, *mean, *rstd;
    const lnorm_executor *executor;
} flow_ends;

/* Runs the plan, which was made of `io`. The outputs are complete then, but not committed. An exit status. */
int flow_run(const lnorm_plan *plan, const lnorm_io *io, const flow_ends *ends);

/* For slab.c and big_group.c. */
const stream *flow_stream(const flow *f, enum lnorm_operand operand); /* NULL: not there */
int slab_run(flow *f);
int big_group_takes(flow *f);
int big_group_run(flow *f);

/* Elements of a group, in logical order, that lie one after the other. */
int64_t group_run(const lnorm_problem *problem, const int64_t *stride);

#endif
