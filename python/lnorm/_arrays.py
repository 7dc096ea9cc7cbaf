"""What kind of array an argument is, and new arrays of the same kind."""
import operator
import sys
from typing import Any

import numpy as np

from . import _core

_NAMES = {_core.F64: "float64", _core.F32: "float32", _core.F16: "float16", _core.BF16: "bfloat16"}


def _torch_of(array):
    """The module torch if `array` is one of its tensors, otherwise None. Never imports it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _numpy_dtype(element):
    if element != _core.BF16:
        return np.dtype(_NAMES[element])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("a result of type bfloat16 needs the package ml_dtypes, which adds it to NumPy") from None
    return np.dtype(ml_dtypes.bfloat16)


def element_of(dtype):
    """The code of F64, F32, F16 or BF16 that _core has for a NumPy dtype (or what names one)."""
    dtype = np.dtype(dtype)
    for element, name in _NAMES.items():
        if dtype.name == name and dtype.isnative:
            return element
    raise TypeError(f"dtype: expected float64, float32, float16 or bfloat16, got {dtype}")


def extents(shape: Any) -> tuple[int, ...]:
    """An integer or a sequence of integers as a tuple."""
    try:
        return (operator.index(shape),)
    except TypeError:
        return tuple(map(operator.index, shape))


def as_array(argument, name):
    """`argument` as something that _core reads, once: what is no array becomes one of NumPy's."""
    if isinstance(argument, np.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask, got a numpy.ma.MaskedArray (its filled() is one)")
    if argument is None or isinstance(argument, np.ndarray) or hasattr(argument, "__dlpack__"):
        return argument
    return np.asarray(argument)


def _same_elements(a, b):
    return (a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
            and a.__array_interface__["data"] == b.__array_interface__["data"])


def check_apart(out, operands):
    """NumPy's arrays, strided ones too, may be x or nothing of the operands: the library looks at dense ones only."""
    for name, array in operands.items():
        if isinstance(out, np.ndarray) and isinstance(array, np.ndarray):
            if not (name == "x" and _same_elements(out, array)) and np.may_share_memory(out, array, max_work=100000):
                raise ValueError("y: expected memory of its own (or, in place, exactly that of x or dy), but it "
                                 f"overlaps {name}")


def empty(like, shape, element):
    """A new array of the kind of `like`."""
    torch = _torch_of(like)
    if torch is not None:
        return torch.empty(tuple(shape), dtype=getattr(torch, _NAMES[element]))
    return np.empty(shape, _numpy_dtype(element))


def empty_like(like, *, kind=None):
    """A new array of the shape and element type of `like`, row-major; None for None."""
    if like is None:
        return None
    shape, element = _core.describe(like)
    return empty(like if kind is None else kind, shape, element)


def convert(array, dtype):
    """`array` in another element type, rounded once, to nearest even.

    ml_dtypes takes float64 to bfloat16 by way of float32, which rounds twice. Rounded to odd in between (towards zero,
    and the last bit set where that was not exact), the second rounding gives what one would."""
    dtype = np.dtype(dtype)
    if array.dtype.name != "float64" or dtype.name != "bfloat16":
        return array.astype(dtype)
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    bits = narrow.view(np.uint32)
    bits -= (np.abs(narrow) > np.abs(array)).astype(np.uint32)
    bits |= (~np.isnan(array) & (narrow != array)).astype(np.uint32)
    return narrow.astype(dtype)
