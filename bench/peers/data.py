"""A case as a Python worker sees it, and its arrays: memory, numbers and digests of data.c."""
import ctypes

import numpy as np

EPS = float.fromhex("0x1.4f8b58p-17")  # as in problem.h
SAMPLES = 512
DTYPES = ["f32", "f64", "f16", "bf16"]
STORED = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}
X, DY, WEIGHT, BIAS, OUTPUT = range(5)


class Unsupported(Exception):
    """The case is not for this implementation; the message says why."""


class Problem:
    def __init__(self, line):
        words = dict(word.split("=") for word in line.split())
        self.op = words.get("op", "layer")
        self.backward = words.get("pass") == "backward"
        self.dtype = words.get("dtype", "f32")
        self.shape = tuple(int(extent) for extent in words["shape"].split("x"))
        self.stride = int(words.get("stride", self.shape[-1]))
        self.groups = int(words.get("groups", 0))
        self.channels_last = words.get("layout") == "last"
        self.sets = int(words.get("sets", 1))
        self.net = words.get("net") == "1"
        self.parameters = self.shape[0 if self.op == "columns" else 1]

    def smallest(self):
        """The same on one element, for rows."""
        return Problem(f"op={self.op} dtype={self.dtype} shape=1x1 pass={'backward' if self.backward else 'forward'}")

    @property
    def stored_shape(self):
        """The shape of x in memory, a row's gap included."""
        if self.op == "group":
            n, c, h, w = self.shape
            return (n, h, w, c) if self.channels_last else self.shape
        return (self.shape[0], self.stride)


class Digest(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int64), ("not_finite", ctypes.c_int64), ("samples_count", ctypes.c_int64),
                ("magnitude", ctypes.c_double), ("samples", ctypes.c_double * SAMPLES)]


class Data:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.bench_allocate.restype = ctypes.c_void_p
        self.library.bench_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
        self.library.bench_release.argtypes = [ctypes.c_void_p]
        self.library.bench_fill.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        self.library.bench_digest.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
        self.arrays = []

    def array(self, role, dtype, shape):
        """Elements of bf16 are uint16. Valid until release, which the caller's views must not outlive."""
        item, count = np.dtype(STORED[dtype]), int(np.prod(shape))
        pointer = self.library.bench_allocate(count * item.itemsize, len(self.arrays))
        if not pointer:
            raise Unsupported("too little memory")
        self.arrays.append(pointer)
        self.library.bench_fill(pointer, DTYPES.index(dtype), role, count)
        memory = (ctypes.c_uint8 * (count * item.itemsize)).from_address(pointer)
        return np.frombuffer(memory, item).reshape(shape)

    def large(self, problem, role):
        """Of x, dy or y: one array per set, as it lies in memory; y without the gaps between rows."""
        dense = role == OUTPUT and problem.op != "group"
        shape = problem.shape if dense else problem.stored_shape
        return [self.array(role, problem.dtype, shape) for _ in range(problem.sets)]

    def digest(self, array, dtype):
        array = np.ascontiguousarray(array)
        digest = Digest()
        self.library.bench_digest(ctypes.byref(digest), array.ctypes.data, DTYPES.index(dtype), array.size)
        return {"count": digest.count, "not_finite": digest.not_finite, "magnitude": digest.magnitude,
                "samples": digest.samples[:digest.samples_count]}

    def release(self):
        for pointer in self.arrays:
            self.library.bench_release(pointer)
        self.arrays = []
