#include "relay.h"
#include "report.h"
#include "verb.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* lines of the cache that are open on either side */

/* A plane of two axes, i consecutive in `from` and j in `to`. With `size` a constant, memcpy is one instruction. */
static inline void copy_plane(char *to, const char *from, int64_t rows, int64_t cols, int64_t to_step,
                              int64_t from_step, size_t size) {
    for (int64_t j0 = 0; j0 < rows; j0 += BLOCK)
        for (int64_t i0 = 0; i0 < cols; i0 += BLOCK)
            for (int64_t i = i0; i < i0 + BLOCK && i < cols; i++)
                for (int64_t j = j0; j < j0 + BLOCK && j < rows; j++)
                    memcpy(to + (size_t)(i * to_step + j) * size, from + (size_t)(i + j * from_step) * size, size);
}

typedef struct permutation {
    const frame *frame;
    const int64_t *extent;
    int64_t to_stride[LNORM_MAX_AXES], from_stride[LNORM_MAX_AXES];
    int i, j; /* the axes of stride 1 in from and in to; -1: no axis is longer than 1 */
    size_t size;
} permutation;

/* The axis whose neighbours are neighbours in the buffer. */
static int unit_axis(const permutation *p, const int64_t *stride) {
    for (int a = 0; a < p->frame->axes; a++)
        if (p->extent[a] > 1 && stride[a] == 1)
            return a;
    return -1;
}

static void copy_inner(const permutation *p, char *to, const char *from) {
    if (p->i == p->j) {
        memcpy(to, from, (size_t)(p->i < 0 ? 1 : p->extent[p->i]) * p->size);
        return;
    }
    int64_t rows = p->extent[p->j], cols = p->extent[p->i];
    int64_t to_step = p->to_stride[p->i], from_step = p->from_stride[p->j];
    switch (p->size) {
    case 2:
        copy_plane(to, from, rows, cols, to_step, from_step, 2);
        break;
    case 4:
        copy_plane(to, from, rows, cols, to_step, from_step, 4);
        break;
    default:
        copy_plane(to, from, rows, cols, to_step, from_step, 8);
    }
}

static void permute(const permutation *p, char *to, const char *from) {
    int64_t at[LNORM_MAX_AXES] = {0}, to_place = 0, from_place = 0;
    int a;
    do {
        copy_inner(p, to + (size_t)to_place * p->size, from + (size_t)from_place * p->size);
        for (a = p->frame->axes; a-- > 0;) {
            if (a == p->i || a == p->j)
                continue;
            to_place += p->to_stride[a];
            from_place += p->from_stride[a];
            if (++at[a] < p->extent[a])
                break;
            to_place -= p->to_stride[a] * p->extent[a];
            from_place -= p->from_stride[a] * p->extent[a];
            at[a] = 0;
        }
    } while (a >= 0);
}

static int relay_box(const frame *f, const box *b, const view *to, const view *from, char *buffer, char *permuted) {
    permutation p = {.frame = f, .extent = b->extent, .size = to->store.size};
    int status = box_read(f, b, from, buffer);
    if (status)
        return status;
    box_strides(f, b->extent, to, p.to_stride);
    box_strides(f, b->extent, from, p.from_stride);
    p.i = unit_axis(&p, p.from_stride);
    p.j = unit_axis(&p, p.to_stride);
    permute(&p, permuted, buffer);
    return box_write(f, b, to, permuted);
}

int relay(const frame *f, const view *to, const view *from, int64_t *done) {
    const view *views[] = {to, from};
    int64_t tile[LNORM_MAX_AXES], size = (int64_t)to->store.size, elements = box_budget() / size;
    box_choose(f, 0, views, 2, elements, elements, tile);
    size_t bytes = (size_t)(box_elements(f, tile) * size);
    char *buffer = malloc(bytes), *permuted = malloc(bytes);
    int status = buffer && permuted ? DONE : report_failure("not enough memory for two buffers of %zu bytes", bytes);
    for (box b = {.number = 0}; !status && box_next(f, tile, &b);) {
        status = relay_box(f, &b, to, from, buffer, permuted);
        progress(*done += box_elements(f, b.extent) * size);
    }
    free(buffer);
    free(permuted);
    return status;
}
