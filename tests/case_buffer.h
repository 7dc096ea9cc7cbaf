/* Arrays between guard bytes. */
#ifndef CASE_BUFFER_H
#define CASE_BUFFER_H

#include "case_number.h"

enum { CASE_GUARD = 64, CASE_FILL = 0xA5 };

typedef struct case_buffer {
    unsigned char *memory; /* front guard, shift, data, rear guard */
    char *data;
    size_t front, bytes;
} case_buffer;

/* `shift` more bytes before the data, to vary its alignment. 0: no memory. The data is filled with CASE_FILL. */
int case_buffer_create(case_buffer *buffer, size_t bytes, size_t shift);
void case_buffer_free(case_buffer *buffer);
void case_buffer_clear(case_buffer *buffer);

/* Are all guard bytes as they were? */
int case_buffer_intact(const case_buffer *buffer);
/* Is the data still what case_buffer_clear wrote? */
int case_buffer_untouched(const case_buffer *buffer);

#endif
