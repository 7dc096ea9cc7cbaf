/* Recipes with numbers that are fitted to Y, by least squares; and what recipe.c and fitted.c share. */
#ifndef LNORM_CLI_FITTED_H
#define LNORM_CLI_FITTED_H

#include "moments.h"

#define MOST_DISTANT 0x1p30 /* larger distances count as this */
double recipe_distance(const subject *s, const recipe *r, const group *g, int64_t i, double y);

/* The groups that are compared. */
int64_t sample_count(const group *g, const recipe *r);
int64_t sample_group(const group *g, const subject *s, int64_t k);

/* Y as weight*(a*(x - mean) + c) + bias with an a and a c for each group: any statistics at all. Infinite for groups
 * of less than 8 elements, in which two numbers may explain anything. */
fit fit_statistics(group *g, const recipe *r, const subject *s);

/* Y as a*xhat + c with an a and a c for each position in a group: any weight and bias at all. Infinite where there are
 * less than 16 groups to fit them to. */
fit fit_parameters(group *g, const recipe *r, const subject *s);

#endif
