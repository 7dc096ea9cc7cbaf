"""The OpenMP runtime that PyTorch's own operators run on."""
import ctypes
import os
import sys

import torch

# Nanoseconds that a call may wait for threads beside what it works: more than a region costs, less than a time slice.
PATIENCE = 1000000


def addresses():
    """Of its GOMP_parallel and omp_get_thread_num; (0, 0) where there is none or it is not known how to find it.

    What PyTorch's libraries were linked with is looked for as the dynamic linker did: first among what the whole
    process sees, where LD_PRELOAD puts another runtime, then among those that torch._C depends on. GCC's, LLVM's and
    Intel's runtimes have both functions."""
    if sys.platform != "linux" or "parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return 0, 0
    for name in (None, torch._C.__file__):
        try:
            library = ctypes.CDLL(name, os.RTLD_NOLOAD)
            return tuple(ctypes.cast(function, ctypes.c_void_p).value
                         for function in (library.GOMP_parallel, library.omp_get_thread_num))
        except (OSError, AttributeError):
            continue
    return 0, 0
