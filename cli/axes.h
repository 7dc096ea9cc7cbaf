/* Which axes of x an operation normalises over, and which index its parameters. */
#ifndef LNORM_CLI_AXES_H
#define LNORM_CLI_AXES_H

#include "lnorm.h"

/* Layer and RMS norm: over axes that the user chooses. The others are over axes of their own, parameters by channel. */
int operation_chooses_axes(const lnorm_op *op);

/* Axes (bits) of an x of ndim axes that are normalised over; of group norm those behind C, which is split. And those
 * that index weight and bias. What an unchecked operation has beyond ndim is left out. */
uint32_t operation_reduced(const lnorm_op *op, int ndim);
uint32_t operation_affine(const lnorm_op *op, int ndim);

#endif
