/* Where wrong elements are concentrated. */
#ifndef LNORM_CLI_PLACES_H
#define LNORM_CLI_PLACES_H

#include <stddef.h>
#include <stdint.h>

/* Which of n groups, or of n positions in a group, have wrong elements. */
typedef struct places {
    int64_t n, hit, first, last;
    int64_t tail_of; /* all of them lie beyond the last multiple of this, which is 32, 16, 8 or 4; 0 if they do not */
} places;

places places_of(const int64_t *wrong, int64_t n);

/* "group 3 of 64", "6 of 70 positions, from 64 on, the tail beyond a multiple of 32", "all 64 groups" */
void places_text(const places *p, const char *one, const char *many, char *text, size_t size);

#endif
