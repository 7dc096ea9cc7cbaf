/* The exact formulas checked against differences of the exact forward pass: nothing of the library takes part but the
 * description of problems. A cmocka test. */
#ifndef LNORM_EXACT_IDENTITIES_H
#define LNORM_EXACT_IDENTITIES_H

void exact_formulas_are_derivatives(void **state);

#endif
