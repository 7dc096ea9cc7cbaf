/* The module lnorm._core. */
#include "core.h"

static PyObject *isa(PyObject *module, PyObject *none) {
    const char *name = lnorm_isa();
    (void)module, (void)none;
    if (!name)
        return raise_status(LNORM_NOT_AVAILABLE,
                            "the environment variable LNORM_ISA names an instruction set that this machine or build "
                            "does not have");
    return PyUnicode_FromString(name);
}

#define FASTCALL(name, flags) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL | (flags), name##_doc}
static PyMethodDef methods[] = {
    FASTCALL(rows_forward, 0),
    FASTCALL(rows_backward, 0),
    FASTCALL(execute, METH_KEYWORDS),
    FASTCALL(execute_openmp, METH_KEYWORDS),
    FASTCALL(set_openmp, 0),
    FASTCALL(explain, 0),
    FASTCALL(layer_norm, METH_KEYWORDS),
    FASTCALL(rms_norm, METH_KEYWORDS),
    FASTCALL(layer_norm_backward, METH_KEYWORDS),
    FASTCALL(rms_norm_backward, METH_KEYWORDS),
    FASTCALL(set_general, 0),
    FASTCALL(set_tensors, 0),
    FASTCALL(tensor_norm, 0),
    FASTCALL(tensor_norm_backward, 0),
    FASTCALL(set_eager, 0),
    FASTCALL(eager_norm, 0),
    FASTCALL(tensor_norm_forward, 0),
    FASTCALL(tensor_norm_apply, 0),
    {"describe", describe, METH_O, describe_doc},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads(threads, /)\n--\n\n"
     "Calls use so many threads from now on, unless they say otherwise; None: as many as there are processors."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "get_num_threads()\n--\n\nHow many threads calls use."},
    {"isa", isa, METH_NOARGS, "isa()\n--\n\nThe instruction set in use: 'scalar', 'neon', 'sse2', 'avx2', 'avx512'."},
    {NULL, NULL, 0, NULL}};

static const struct constant {
    const char *name;
    int value;
} constants[] = {{"F64", F64},
                 {"F32", F32},
                 {"F16", F16},
                 {"BF16", BF16},
                 {"LAYER_NORM", LNORM_LAYER_NORM},
                 {"RMS_NORM", LNORM_RMS_NORM},
                 {"GROUP_NORM", LNORM_GROUP_NORM},
                 {"INSTANCE_NORM", LNORM_INSTANCE_NORM},
                 {"BATCH_NORM", LNORM_BATCH_NORM},
                 {"FORWARD", LNORM_FORWARD},
                 {"BACKWARD", LNORM_BACKWARD},
                 {"DOUBLE_BACKWARD", LNORM_DOUBLE_BACKWARD},
                 {"FORWARD_MODE", LNORM_FORWARD_MODE},
                 {"COMPUTED", LNORM_COMPUTED},
                 {"SAVED", LNORM_SAVED},
                 {"CONSTANT", LNORM_CONSTANT},
                 {"ACCURATE", LNORM_ACCURATE},
                 {"FAST", LNORM_FAST}};

/* Interned names and pools are the process's, so one interpreter has them: the first in which the module is complete.
 * (NumPy has the same limit.) Those with a lock of their own do not come here: a module that does not say that it
 * supports them, which in the limited API of 3.11 none can, Python itself refuses. */
static int refuse_second_interpreter(int complete) {
    static int64_t first = -1;
    int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (first < 0 && complete)
        first = here;
    if (first < 0 || first == here)
        return 0;
    PyErr_SetString(PyExc_ImportError, "lnorm is loaded in another interpreter of this process, and does not support "
                                       "subinterpreters");
    return -1;
}

static int add_float(PyObject *module, const char *name, double value) {
    PyObject *number = PyFloat_FromDouble(value);
    int status = number ? PyModule_AddObjectRef(module, name, number) : -1;
    Py_DecRef(number);
    return status;
}

static int fill_module(PyObject *module) {
    if (refuse_second_interpreter(0) || threads_begin() || arrays_begin())
        return -1;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value))
            return -1;
    if (PyModule_AddStringConstant(module, "version", lnorm_version()))
        return -1;
    if (add_float(module, "EPS_DEFAULT", LNORM_EPS_DEFAULT))
        return -1;
    return refuse_second_interpreter(1);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)(uintptr_t)fill_module}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "lnorm._core", "The compiled part of lnorm.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
