/* lnorm._core: the C extension of the Python package, against Python's limited API of 3.11.
 *
 *   signature.c   positional and keyword arguments of a METH_FASTCALL function
 *   threads.c     the pools, and who works at a call
 *   openmp.c      the threads of somebody else's OpenMP runtime
 *   call.c        one operation of lnorm.h: plan, workspace, threads, errors as exceptions
 *   plans.c       the same for dense tensors, of which plans are kept
 *   rows.c        level 1 on addresses
 *   arrays.c      tensors from NumPy arrays, DLPack and the buffer protocol
 *   execute.c     level 2 on arrays and addresses
 *   norm.c        layer_norm, rms_norm and their gradients: the short way to the library
 *   tensors.c     norms of PyTorch's tensors: the short way to the library
 *   outputs.c     new tensors for the results
 *   saved.c       statistics that the gradients need not compute
 *   eager.c       which calls take it, and autograd's record of them
 *   explain.c     the drawings of the program's `explain`
 *   module.c      the module
 *
 * State is static: the module refuses to load in a second interpreter (module.c). */
#ifndef LNORM_PYTHON_CORE_H
#define LNORM_PYTHON_CORE_H

#include <pyconfig.h> /* says whether this is a free-threaded Python, which has no limited API */
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030b0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "lnorm.h"

/* ---- signature.c ------------------------------------------------------------------------------------------------- */

#define PARAMETERS_MAX 40

/* What a function takes. `interned` is filled at the first call. */
typedef struct signature {
    const char *function;
    int count, positional, required; /* the first `positional` may be given by position, the first `required` must be */
    const char *const *names;
    PyObject *interned[PARAMETERS_MAX];
} signature;

/* Sorts the arguments of a METH_FASTCALL | METH_KEYWORDS call into values[count], borrowed, NULL where not given.
 * -1 and a TypeError where they do not fit. */
int sort_arguments(signature *of, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords, PyObject **values);

/* Single values; `name` is the argument's name in messages. 0, or -1 and an exception. None leaves *value as it is. */
int read_integer(PyObject *object, const char *name, int64_t *value);
int read_double(PyObject *object, const char *name, double *value);
int read_flag(PyObject *object, int32_t *value);

/* A sequence of at most LNORM_MAX_NDIM integers, or one integer, which counts as a sequence of one. Not None. */
int read_extents(PyObject *object, const char *name, int64_t *extents, int32_t *count);

/* ---- threads.c --------------------------------------------------------------------------------------------------- */

/* Below this number of elements a call keeps the interpreter's lock: it takes a few microseconds, less than another
 * thread would need to make use of the lock. */
enum { KEEP_LOCK_BELOW = 8192 };

/* Below this number of elements lnorm_execute does not call its executor (lnorm.h), so that no pool is needed. */
enum { ALONE_BELOW = 32768 };

/* Reads LNORM_NUM_THREADS. -1 and a ValueError where it is no number of threads. */
int threads_begin(void);

/* Who works at a call. threads: 0 the default, 1 the calling thread. openmp: the threads of openmp.c's runtime, where
 * there is one, in place of a pool's. */
typedef struct workers {
    int64_t threads;
    int32_t openmp;
} workers;

/* Their executor; without a function for the calling thread alone. -1 and an exception. */
int executor_for(workers who, int64_t elements, lnorm_executor *executor);

PyObject *set_num_threads(PyObject *module, PyObject *threads);
PyObject *get_num_threads(PyObject *module, PyObject *none);

/* ---- openmp.c ---------------------------------------------------------------------------------------------------- */

/* Fills the executor that runs tasks on so many threads of the runtime, or leaves it without a function where the
 * calling thread had better work alone. 0 where there is no runtime. */
int openmp_executor(int64_t threads, lnorm_executor *executor);

PyObject *set_openmp(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
extern const char set_openmp_doc[];

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

enum element { F64, F32, F16, BF16, ELEMENTS };
extern const lnorm_dtype dtype_of[ELEMENTS];

/* A tensor that a call describes. `keep` owns its memory, NULL where the caller does. */
typedef struct view {
    lnorm_tensor tensor;
    int64_t shape[LNORM_MAX_NDIM], strides[LNORM_MAX_NDIM];
    PyObject *keep;
} view;

/* Raises the exception that belongs to a status: ValueError for arguments and shapes, TypeError for element types,
 * MemoryError, RuntimeError where the instruction set is not available. Returns NULL. */
PyObject *raise_status(lnorm_status status, const char *message);

/* Plans and runs an operation: workspace, pool and interpreter's lock included. -1 and an exception. */
int run_operation(const lnorm_op *op, lnorm_io *io, workers who);

/* Runs a plan of an operation of so many elements. Up to KEEP_LOCK_BELOW nobody else comes by in the meantime. */
int run_plan_by(const lnorm_plan *plan, lnorm_io *io, int64_t elements, workers who);

/* ---- plans.c ----------------------------------------------------------------------------------------------------- */

/* run_operation where all tensors are row-major, x and each other of its shape have so many elements, and an op's
 * normalized_shape is known to fit. */
int run_dense_operation(const lnorm_op *op, lnorm_io *io, int64_t elements, workers who);

/* ---- arrays.c ---------------------------------------------------------------------------------------------------- */

/* Imports NumPy's table of functions. */
int arrays_begin(void);

/* Describes an array. writes: it is an output; `name` is the argument's name in messages. The reference into->keep is
 * the caller's to release. -1 and an exception. */
int read_array(PyObject *object, const char *name, int writes, view *into);

PyObject *describe(PyObject *module, PyObject *object);
extern const char describe_doc[];

/* ---- rows.c, execute.c ------------------------------------------------------------------------------------------- */

/* A call of level 1: what one of the functions there takes; NULL where a function has no such argument. */
typedef struct rows_call {
    lnorm_kind kind;
    lnorm_pass pass; /* LNORM_FORWARD or LNORM_BACKWARD */
    enum element element;
    void *x, *dy, *weight, *bias;
    void *y, *mean, *rstd, *dx, *dweight, *dbias;
    int64_t rows, cols;
    double eps;
    lnorm_arithmetic arithmetic; /* norm.c's; level 1 has the accurate one */
} rows_call;

/* On the calling thread, without the interpreter's lock where it takes long. */
lnorm_status run_rows(const rows_call *call);

/* -1 and a TypeError where a function of positional arguments got another number of them. */
int check_count(Py_ssize_t given, Py_ssize_t expected, const char *name);

PyObject *rows_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *rows_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *execute(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
PyObject *execute_openmp(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
extern const char rows_forward_doc[], rows_backward_doc[], execute_doc[], execute_openmp_doc[];

/* ---- norm.c ------------------------------------------------------------------------------------------------------ */

PyObject *layer_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
PyObject *rms_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
PyObject *layer_norm_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
PyObject *rms_norm_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords);
PyObject *set_general(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
extern const char layer_norm_doc[], rms_norm_doc[], layer_norm_backward_doc[], rms_norm_backward_doc[];
extern const char set_general_doc[];

/* ---- tensors.c --------------------------------------------------------------------------------------------------- */

PyObject *set_tensors(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *tensor_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *tensor_norm_backward(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
extern const char set_tensors_doc[], tensor_norm_doc[], tensor_norm_backward_doc[];

/* Whether the object is of one of set_tensors' types; and whether its memory has its elements in row-major order. */
int is_tensor(PyObject *object);
int is_row_major_tensor(PyObject *object);

/* *where, a new reference in place of the one before. */
void keep(PyObject **where, PyObject *object);

/* tensor_norm, of `count` tensors. Where they are worth it, *statistics is a tensor that tensor_norm_backward can do
 * with in place of computing them; otherwise it is left as it is. */
PyObject *norm_and_statistics(PyObject *const *tensors, Py_ssize_t count, PyObject *how, PyObject **statistics);

/* ---- outputs.c --------------------------------------------------------------------------------------------------- */

/* The function that makes a tensor of (shape, strides, dtype), and the dtypes of enum element, a tuple. */
void set_outputs(PyObject *function, PyObject *of_elements);

/* An uninitialised tensor of the shape, strides and element type of a dense one. NULL and an exception. */
PyObject *new_tensor(const lnorm_tensor *like, enum element element);

/* ---- saved.c ----------------------------------------------------------------------------------------------------- */

/* How many f64 the forward pass of a norm saves for the gradients: each row's rstd, then layer norm's means. 0: none. */
int64_t statistics_to_save(const lnorm_op *op, const lnorm_tensor *x, int64_t elements);

/* Whether gradients by these have the bits of gradients that compute them. mean: NULL for RMS norm. */
int statistics_are_exact(const double *rstd, const double *mean, int64_t rows, double eps);

/* ---- eager.c ----------------------------------------------------------------------------------------------------- */

PyObject *set_eager(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *eager_norm(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *tensor_norm_forward(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
PyObject *tensor_norm_apply(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
extern const char set_eager_doc[], eager_norm_doc[], tensor_norm_forward_doc[], tensor_norm_apply_doc[];

/* ---- explain.c --------------------------------------------------------------------------------------------------- */

PyObject *explain(PyObject *module, PyObject *const *arguments, Py_ssize_t given);
extern const char explain_doc[];

#endif
