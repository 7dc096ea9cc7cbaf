/* Which of the usual mistakes would give this Y? */
#ifndef LNORM_CLI_MISTAKES_H
#define LNORM_CLI_MISTAKES_H

#include "recipe.h"

typedef struct mistake {
    const char *name, *remedy;
    char detail[80]; /* "eps 1e-06", "axes 0,2", "f16"; may be empty */
    double distance; /* from Y, as recipe_fit measures it */
} mistake;

enum { MOST_MISTAKES = 16 };

typedef struct mistakes {
    double right; /* distance of the right formula from Y */
    mistake found[MOST_MISTAKES];
    int count;
} mistakes;

/* Those that reproduce Y, the best first: the distance is at most 1/16 of the right formula's, and at most 4 ulps and
 * four times what f32 arithmetic may cost with this data (recipe_fit's noise); all that come within a factor of 4 of
 * the best, or within 1/20 ulp. */
void mistakes_find(mistakes *m, const subject *s);

#endif
