/* The parts of DLPack's ABI (version 0.x, which every producer still offers) that are read here. Its tensor is
 * lnorm_tensor, member for member. */
#ifndef LNORM_PYTHON_DLPACK_H
#define LNORM_PYTHON_DLPACK_H

#include "lnorm.h"

typedef struct dlpack_managed {
    lnorm_tensor tensor;
    void *manager;
    void (*deleter)(struct dlpack_managed *self);
} dlpack_managed;

#endif
