#include "picture.h"

#include <string.h>

enum { DOWN, RIGHT, ROWS, COLUMNS, DIRECTIONS };

/* How many of each direction are shown at most, before the width decides. No array of tracks overflows: a column takes
 * at least 3 characters of MAX_WIDTH, a row a line of HEIGHT. */
enum { MOST_DOWN = 4, MOST_ROWS = 10, MOST_RIGHT = 16, HEIGHT = 44 };

int picture_digits(int64_t value) {
    int digits = 1;
    for (; value >= 10; value /= 10)
        digits++;
    return digits;
}

int picture_pick(int64_t extent, int most, int64_t *entries) {
    int count = 0;
    if (extent <= most) {
        for (; count < extent; count++)
            entries[count] = count;
        return count;
    }
    for (; count < most - 2 || count < 1; count++)
        entries[count] = count;
    entries[count++] = -1;
    if (count < most)
        entries[count++] = extent - 1;
    return count;
}

/* -- Size --------------------------------------------------------------------------------------------------------- */

static void set_extents(picture *p, const scheme *s) {
    for (int i = 0; i < DIRECTIONS; i++) {
        int32_t axis = s->ndim - DIRECTIONS + i;
        p->extent[i] = axis >= 0 ? s->shape[axis] : 1;
    }
    for (int32_t a = 0; a < s->ndim - DIRECTIONS; a++)
        p->extent[DOWN] *= s->shape[a];
    p->leading = s->ndim > 2 ? s->ndim - 2 : 0;
    memcpy(p->above, s->shape, (size_t)p->leading * sizeof *p->above);
}

static int label_width(const picture *p) {
    int width = 2;
    for (int32_t i = 0; i < p->leading; i++)
        width += picture_digits(p->above[i] - 1) + (i > 0);
    return width;
}

static int shown(const picture *p, const int most[DIRECTIONS], int direction) {
    return (int)(p->extent[direction] < most[direction] ? p->extent[direction] : most[direction]);
}

/* Characters between a block's outer lines, with this width of an element's cell. */
static int block_width(const picture *p, const int most[DIRECTIONS], int cell) {
    int columns = shown(p, most, COLUMNS), elided = p->extent[COLUMNS] > most[COLUMNS];
    return (columns - elided) * (cell + 1) + elided * (ELISION_CELL + 1) - 1;
}

/* The least cell that holds every group's number and makes a block as wide as its label. */
static int cell_width(const picture *p, const int most[DIRECTIONS], int64_t groups) {
    int cell = picture_digits(groups - 1) + 2;
    while (p->leading && block_width(p, most, cell) < label_width(p))
        cell++;
    return cell;
}

static int total_width(const picture *p, const int most[DIRECTIONS], int64_t groups) {
    int blocks = shown(p, most, RIGHT), elided = p->extent[RIGHT] > most[RIGHT];
    int block = block_width(p, most, cell_width(p, most, groups)) + 1;
    return (blocks - elided) * block + elided * (ELISION_CELL + 1) + (blocks - 1) * (GAP_CELL + 1) + 1;
}

/* Lines, if every row has one of its own below it. */
static int total_height(const picture *p, const int most[DIRECTIONS]) {
    return shown(p, most, DOWN) * (2 * shown(p, most, ROWS) + 2);
}

/* Shows one less of that direction of the two which shows more, down to `least` of each. */
static int reduce(const picture *p, int most[DIRECTIONS], int a, int b, int least) {
    int larger = shown(p, most, a) >= shown(p, most, b) ? a : b;
    if (shown(p, most, larger) <= least)
        return 0;
    most[larger] = shown(p, most, larger) - 1;
    return 1;
}

static void fit(const picture *p, int most[DIRECTIONS], int64_t groups, int width) {
    for (int least = 3; least >= 2; least--)
        while (total_width(p, most, groups) > width && reduce(p, most, RIGHT, COLUMNS, least))
            ;
    while (total_height(p, most) > HEIGHT && reduce(p, most, DOWN, ROWS, 3))
        ;
}

/* -- Tracks ------------------------------------------------------------------------------------------------------- */

static const struct place nowhere = {-1, -1};

/* What is between blocks gets the places beside it; `end` is what comes after the last track. */
static void find_neighbours(track *tracks, int count, struct place end) {
    struct place last = nowhere;
    for (int i = 0; i < count; i++)
        if (tracks[i].after.block < 0)
            tracks[i].before = last;
        else
            last = tracks[i].after;
    for (int i = count; i-- > 0;)
        if (tracks[i].after.block < 0)
            tracks[i].after = end;
        else
            end = tracks[i].before;
}

/* An entry of a block: an element, or all between its neighbours. */
static track track_inside(int64_t block, const int64_t *entries, int count, int i, int64_t extent) {
    if (entries[i] >= 0)
        return (track){TRACK_ELEMENT, {block, entries[i]}, {block, entries[i]}};
    return (track){TRACK_ELISION, {block, entries[i - 1]}, {block, i + 1 < count ? entries[i + 1] : extent - 1}};
}

/* Elements of the inner direction, within each block of the outer; a gap before each block, or between two only. */
static int lay_tracks(track *tracks, const picture *p, const int most[DIRECTIONS], int outer, int inner, int before) {
    int64_t blocks[MAX_SHOWN], elements[MAX_SHOWN];
    const struct place end = {p->extent[outer] - 1, p->extent[inner] - 1};
    int count = 0;
    int outer_count = picture_pick(p->extent[outer], most[outer], blocks);
    int inner_count = picture_pick(p->extent[inner], most[inner], elements);
    for (int i = 0; i < outer_count; i++) {
        if (before || i)
            tracks[count++] = (track){TRACK_GAP, nowhere, nowhere};
        if (blocks[i] < 0)
            tracks[count++] = (track){TRACK_ELISION, nowhere, nowhere};
        for (int j = 0; j < inner_count && blocks[i] >= 0; j++)
            tracks[count++] = track_inside(blocks[i], elements, inner_count, j, p->extent[inner]);
    }
    find_neighbours(tracks, count, blocks[outer_count - 1] < 0 ? end : nowhere);
    return count;
}

static int64_t element_group(const picture *p, const scheme *s, struct place row, struct place column) {
    int64_t block = row.block * p->extent[RIGHT] + column.block;
    return scheme_group(s, (block * p->extent[ROWS] + row.index) * p->extent[COLUMNS] + column.index);
}

/* The group of all elements around the cell. */
static int64_t cell_group(const picture *p, const scheme *s, const track *row, const track *column) {
    const struct place rows[] = {row->before, row->after}, columns[] = {column->before, column->after};
    int64_t group = NO_GROUP;
    for (int i = 0; i < 4; i++) {
        if (rows[i / 2].block < 0 || columns[i % 2].block < 0)
            return NO_GROUP;
        int64_t here = element_group(p, s, rows[i / 2], columns[i % 2]);
        if (i && here != group)
            return NO_GROUP;
        group = here;
    }
    return group;
}

void picture_init(picture *p, const scheme *s, int width) {
    int most[DIRECTIONS] = {MOST_DOWN, MOST_RIGHT, MOST_ROWS, MAX_SHOWN};
    int64_t groups = lnorm_plan_groups(&s->plan);
    memset(p, 0, sizeof *p);
    width = width < MIN_WIDTH ? MIN_WIDTH : width > MAX_WIDTH ? MAX_WIDTH : width;
    set_extents(p, s);
    fit(p, most, groups, width);
    p->cell = cell_width(p, most, groups);
    for (int i = 0; i < DIRECTIONS; i++)
        p->partial |= p->extent[i] > most[i];
    p->rows = lay_tracks(p->row, p, most, DOWN, ROWS, p->leading > 0);
    p->columns = lay_tracks(p->column, p, most, RIGHT, COLUMNS, 0);
    for (int row = 0; row < p->rows; row++)
        for (int column = 0; column < p->columns; column++)
            p->group[row][column] = cell_group(p, s, &p->row[row], &p->column[column]);
}

int64_t picture_group(const picture *p, int row, int column) {
    return row < 0 || column < 0 || row >= p->rows || column >= p->columns ? NO_GROUP : p->group[row][column];
}

int picture_edge_above(const picture *p, int row, int column) {
    return picture_group(p, row - 1, column) != picture_group(p, row, column);
}

int picture_edge_left(const picture *p, int row, int column) {
    return picture_group(p, row, column - 1) != picture_group(p, row, column);
}

label_text picture_label(const picture *p, int row, int column) {
    label_text text = {{0}};
    const track *r = &p->row[row], *c = &p->column[column];
    int above = r->kind == TRACK_GAP && p->row[row + 1].kind == TRACK_ELEMENT;
    int begins = c->kind == TRACK_ELEMENT && (column == 0 || p->column[column - 1].kind == TRACK_GAP);
    if (!p->leading || !above || !begins)
        return text;
    int64_t place[LNORM_MAX_NDIM], number = r->after.block * p->extent[RIGHT] + c->before.block;
    size_t used = 0;
    for (int32_t i = p->leading; i-- > 0; number /= p->above[i])
        place[i] = number % p->above[i];
    for (int32_t i = 0; i < p->leading; i++)
        used += (size_t)snprintf(text.at + used, sizeof text.at - used, "%c%lld", i ? ',' : '[', (long long)place[i]);
    snprintf(text.at + used, sizeof text.at - used, "]");
    return text;
}
