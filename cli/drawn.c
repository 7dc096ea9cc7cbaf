#if !defined _GNU_SOURCE && !defined _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* fmemopen */
#endif
#include "drawn.h"

#include <stdlib.h>

static long fill(char *room, void (*draw)(void *context, FILE *to), void *context) {
    FILE *to = fmemopen(room, DRAWN_ROOM, "w");
    if (!to)
        return -1;
    draw(context, to);
    long count = fflush(to) || ferror(to) ? -1 : ftell(to);
    fclose(to);
    return count;
}

/* Memory that grows with what is written, as open_memstream's does, would fail without a word. */
char *drawn(void (*draw)(void *context, FILE *to), void *context, size_t *count) {
    char *room = malloc(DRAWN_ROOM);
    long length = room ? fill(room, draw, context) : -1;
    if (length < 0) {
        free(room);
        return NULL;
    }
    *count = (size_t)length;
    return room;
}
