/* NumPy's C interface, and what of an array the library has to know. */
#ifndef LNORM_PYTHON_ARRAYS_H
#define LNORM_PYTHON_ARRAYS_H

#include "core.h"

/* The oldest NumPy that runs Python 3.11. One file imports the table of functions, the others use it. */
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL lnorm_numpy
#ifndef LNORM_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* The element type of an array: one of enum element, or -1. ml_dtypes.bfloat16 is BF16. */
int element_of(PyArrayObject *array);

/* True where the elements are aligned and in this machine's byte order. */
int is_plain(PyArrayObject *array);

#endif
