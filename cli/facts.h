/* What there is to say about an operation on a shape, in words. */
#ifndef LNORM_CLI_FACTS_H
#define LNORM_CLI_FACTS_H

#include "scheme.h"

typedef struct fact {
    const char *label; /* "": goes on with the one before */
    char text[1000];
} fact;

enum { MAX_FACTS = 12 };

typedef struct facts {
    char title[1000];
    char layout[1000]; /* how the picture is to be read */
    int count;
    fact at[MAX_FACTS];
} facts;

void facts_collect(facts *f, const scheme *s);

#endif
