#include "case_buffer.h"

#include <stdlib.h>
#include <string.h>

int case_buffer_create(case_buffer *buffer, size_t bytes, size_t shift) {
    buffer->front = CASE_GUARD + shift;
    buffer->bytes = bytes;
    buffer->memory = malloc(buffer->front + bytes + CASE_GUARD);
    if (!buffer->memory)
        return 0;
    buffer->data = (char *)buffer->memory + buffer->front;
    memset(buffer->memory, CASE_FILL, buffer->front + bytes + CASE_GUARD);
    return 1;
}

void case_buffer_free(case_buffer *buffer) {
    free(buffer->memory);
    memset(buffer, 0, sizeof *buffer);
}

void case_buffer_clear(case_buffer *buffer) {
    memset(buffer->data, CASE_FILL, buffer->bytes);
}

static int all_fill(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != CASE_FILL)
            return 0;
    return 1;
}

int case_buffer_intact(const case_buffer *buffer) {
    return all_fill(buffer->memory, buffer->front) &&
           all_fill(buffer->memory + buffer->front + buffer->bytes, CASE_GUARD);
}

int case_buffer_untouched(const case_buffer *buffer) {
    return all_fill(buffer->memory + buffer->front, buffer->bytes);
}
