/* Blocks of elements from anywhere to the stack and back. Elements are moved as they are, by runs along the last axis,
 * so that widening and rounding are done on contiguous vectors. */
#include "kernels/loops.h"

/* -- Walking ------------------------------------------------------------------------------------------------------ */

ln_cursor lnorm_cursor_at(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk) {
    ln_cursor cursor = {*walk, b->problem->operand[operand].stride, ln_offset_at(b, operand, walk), 0};
    const lnorm_space *space = walk->space;
    if (space->axes)
        cursor.run_stride = cursor.stride[space->axis[space->axes - 1]];
    return cursor;
}

/* -- Moving ------------------------------------------------------------------------------------------------------- */

/* One element n times: some by themselves, from then on what is there is doubled. */
static void ln_repeat(const size_t size, char *to, const char *from, int64_t n) {
    const int64_t alone = n < 32 ? n : 32;
    const size_t whole = (size_t)n * size;
    for (int64_t i = 0; i < alone; i++)
        memcpy(to + i * (int64_t)size, from, size);
    for (size_t done = (size_t)alone * size, more; done < whole; done += more) {
        more = whole - done < done ? whole - done : done;
        memcpy(to + done, to, more);
    }
}

/* n elements of each of `lanes` lanes. Strides in bytes; the loop that takes the smaller steps is the inner one. */
LNORM_INLINE void ln_move(const size_t size, const lnorm_loops *loops, char *to, int64_t to_stride, int64_t to_lane,
                          const char *from, int64_t from_stride, int64_t from_lane, int64_t n, int lanes,
                          int lanes_inside) {
    const int64_t bytes = (int64_t)size;
    if (lanes_inside && size < 8 && from_lane == bytes && to_stride == bytes) {
        loops->turn(bytes, to, to_lane, from, from_stride, n, lanes);
        return;
    }
    if (lanes_inside && size < 8 && to_lane == bytes && from_stride == bytes) {
        loops->turn(bytes, to, to_stride, from, from_lane, lanes, n);
        return;
    }
    if (lanes_inside) {
        for (int64_t i = 0; i < n; i++) {
            LNORM_PREFETCH(from, (i + LN_AHEAD) * from_stride);
            LNORM_PREFETCH(to, (i + LN_AHEAD) * to_stride);
            for (int lane = 0; lane < lanes; lane++)
                memcpy(to + i * to_stride + lane * to_lane, from + i * from_stride + lane * from_lane, size);
        }
        return;
    }
    for (int lane = 0; lane < lanes; lane++, to += to_lane, from += from_lane)
        if (from_stride == (int64_t)size && to_stride == (int64_t)size)
            memcpy(to, from, (size_t)n * size);
        else if (from_stride == 0 && to_stride == (int64_t)size)
            ln_repeat(size, to, from, n); /* a parameter of a channel, along its positions */
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * to_stride, from + i * from_stride, size);
}

static void ln_move_any(const lnorm_loops *loops, int64_t size, char *to, int64_t to_stride, int64_t to_lane,
                        const char *from, int64_t from_stride, int64_t from_lane, int64_t n, int lanes,
                        int lanes_inside) {
    if (size == 2)
        ln_move(2, loops, to, to_stride, to_lane, from, from_stride, from_lane, n, lanes, lanes_inside);
    else if (size == 4)
        ln_move(4, loops, to, to_stride, to_lane, from, from_stride, from_lane, n, lanes, lanes_inside);
    else
        ln_move(8, loops, to, to_stride, to_lane, from, from_stride, from_lane, n, lanes, lanes_inside);
}

/* `block` holds n elements of lanes first, first + 1, ..., `pitch` bytes apart; in the operand they lie where the walk
 * says. */
static void ln_move_block(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, int first,
                          int lanes, char *block, int64_t pitch, int inwards) {
    int64_t size = ln_element_size((enum lnorm_element)b->problem->operand[operand].element), run;
    int64_t lane = ln_lane_stride(b, operand);
    char *lane_0 = b->data->at[operand] + lane * first * size;
    ln_cursor cursor = lnorm_cursor_at(b, operand, walk);
    int lanes_inside = lanes > 1 && ln_distance(lane) < ln_distance(cursor.run_stride);
    for (int64_t done = 0; done < n; done += run) {
        char *there = lane_0 + cursor.offset * size, *here = block + done * size;
        run = ln_run(&cursor, n - done);
        if (inwards)
            ln_move_any(b->loops, size, here, size, pitch, there, cursor.run_stride * size, lane * size, run, lanes,
                        lanes_inside);
        else
            ln_move_any(b->loops, size, there, cursor.run_stride * size, lane * size, here, size, pitch, run, lanes,
                        lanes_inside);
        ln_run_on(&cursor, run);
    }
}

/* -- Both --------------------------------------------------------------------------------------------------------- */

int lnorm_lies_together(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n) {
    const int64_t *stride = b->problem->operand[operand].stride;
    int64_t dense = 1;
    for (int i = walk->space->axes; i-- > 0;) {
        int64_t extent = walk->problem->extent[walk->space->axis[i]];
        if (stride[walk->space->axis[i]] != dense)
            return 0;
        if (extent - walk->at[i] >= n || __builtin_mul_overflow(dense, extent, &dense))
            return 1;
        n = (walk->at[i] + n - 1) / extent + 1; /* indices of the next axis that are touched */
    }
    return 1;
}

/* n elements of every lane. */
void lnorm_gather(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, ln_tile *tile) {
    const int64_t size = ln_element_size(ln_element_of(b, operand));
    const int64_t offset = ln_offset_at(b, operand, walk);
    const int together = lnorm_lies_together(b, operand, walk, n);
    if (!together)
        ln_move_block(b, operand, walk, n, 0, b->lanes, tile->lane[0], sizeof tile->lane[0], 1);
    for (int lane = 0; lane < b->lanes; lane++)
        tile->at[lane] = together ? b->data->at[operand] + (offset + lane * ln_lane_stride(b, operand)) * size
                                  : tile->lane[lane];
}

/* n results of one lane, rounded once, into the tile; f64 is too large for it and goes where it belongs at once. */
void lnorm_put_lane(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, int lane,
                        double *values, ln_tile *tile) {
    if (ln_element_of(b, operand) == LNORM_ELEMENT_F64)
        ln_move_block(b, operand, walk, n, lane, 1, (char *)values, 0, 0);
    else
        b->loops->narrow(ln_element_of(b, operand), values, tile->lane[lane], n);
}

/* The tile that lnorm_put_lane has filled. */
void lnorm_scatter(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n, ln_tile *tile) {
    if (ln_element_of(b, operand) != LNORM_ELEMENT_F64)
        ln_move_block(b, operand, walk, n, 0, b->lanes, tile->lane[0], sizeof tile->lane[0], 0);
}

/* weight (as it is used: 1 + weight where weight_offset says so) or bias of one lane; NULL where there is none. Lanes
 * are asked for in order: where they share their values, those of lane 0 are still in the buffer. */
const double *lnorm_gather_affine(const ln_bundle *b, enum lnorm_operand operand, const ln_walk *walk, int64_t n,
                                      int lane, double buffer[LNORM_BLOCK]) {
    char raw[LNORM_BLOCK * 4];
    ln_cursor cursor;
    if (!lnorm_has(b->problem, operand))
        return NULL;
    if (lane > 0 && ln_lane_stride(b, operand) == 0)
        return buffer;
    cursor = lnorm_cursor_at(b, operand, walk);
    if (cursor.run_stride == 0 && ln_run(&cursor, n) == n) {
        ln_fill(buffer, lnorm_load(ln_element_of(b, operand), b->data->at[operand],
                                   cursor.offset + lane * ln_lane_stride(b, operand)), n);
    } else {
        ln_move_block(b, operand, walk, n, lane, 1, raw, 0, 1);
        b->loops->widen(ln_element_of(b, operand), raw, buffer, n);
    }
    if (operand == LNORM_WEIGHT && b->problem->weight_offset)
        for (int64_t i = 0; i < n; i++)
            buffer[i] = 1.0 + buffer[i];
    return buffer;
}

/* -- Past the caches ---------------------------------------------------------------------------------------------- */

/* y is larger than the caches, and not where x was. */
int lnorm_streams_y(const lnorm_problem *problem, const lnorm_data *data) {
    int64_t least = LNORM_STREAM_BYTES / ln_element_size((enum lnorm_element)problem->operand[LNORM_X].element);
    return lnorm_has(problem, LNORM_Y) && data->at[LNORM_Y] != data->at[LNORM_X] && problem->element.count &&
           problem->group.count >= least / problem->element.count;
}
