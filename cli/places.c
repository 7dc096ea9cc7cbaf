#include "places.h"

#include <stdio.h>

/* The width of a vector or a warp in whose tail all of them are; of several the one with the shortest tail, then the
 * largest. */
static int64_t tail(const places *p) {
    int64_t best = 0, start = 0;
    for (int64_t width = 32; width >= 4; width /= 2) {
        int64_t end = p->n / width * width;
        if (p->hit && end > start && end < p->n && p->first >= end) {
            best = width;
            start = end;
        }
    }
    return best;
}

places places_of(const int64_t *wrong, int64_t n) {
    places p = {n, 0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        if (!wrong[i])
            continue;
        if (!p.hit++)
            p.first = i;
        p.last = i;
    }
    p.tail_of = tail(&p);
    return p;
}

void places_text(const places *p, const char *one, const char *many, char *text, size_t size) {
    long long n = (long long)p->n, hit = (long long)p->hit;
    int length = 0;
    if (hit == n)
        snprintf(text, size, "all %lld %s", n, n == 1 ? one : many);
    else if (hit == 1)
        length = snprintf(text, size, "%s %lld of %lld", one, (long long)p->first, n);
    else
        length = snprintf(text, size, "%lld of %lld %s, from %lld to %lld", hit, n, many, (long long)p->first,
                          (long long)p->last);
    if (hit < n && p->tail_of)
        snprintf(text + length, size - (size_t)length, ", the tail beyond a multiple of %lld", (long long)p->tail_of);
}
