"""The error of somebody's layer norm in ulps, against the exact result.

Everything is integers times powers of two: sums, products and differences are exact, and the one root has 200 bits.
With X the elements of a group on a common exponent, S their sum, D = n*X - S and V = sum(D^2),

    xhat = (D/n) / sqrt(V/n^3 + eps) = D * sqrt(n / (V + n^3*eps)).
"""
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from ._arrays import as_array, element_of, extents

_ROOT_BITS = 200
# Bits of the significand, and the exponent of the smallest number.
_FORMATS = {"float64": (53, -1074), "float32": (24, -149), "float16": (11, -24), "bfloat16": (8, -133)}
_LARGEST = {"float64": 1024, "float32": 128, "float16": 16, "bfloat16": 128}


@dataclasses.dataclass(frozen=True)
class Report:
    """What verify found. An ulp is the spacing of y's type at max(|y|, |weight|, |weight*xhat|, |bias|)."""

    dtype: str
    elements: int
    worst: float  # ulp; inf for a number where none is due, or none where one is
    mean: float  # ulp, of the finite errors
    index: tuple[int, ...]  # of the worst element
    given: float
    exact: float  # rounded to float64
    within_half: int  # elements with an error of at most 0.5 ulp
    within_one: int  # of at most 1 ulp

    def __str__(self) -> str:
        if not self.elements:
            return "no elements"
        return (f"largest error   {self.worst:.5g} ulp of {self.dtype}, at {list(self.index)}: {self.given!r}, exact "
                f"{self.exact!r}\nmean error      {self.mean:.5g} ulp\nwithin 0.5 ulp  {self.within_half} of "
                f"{self.elements}\nwithin 1 ulp    {self.within_one} of {self.elements}")


def _split(number):
    """A finite float as (integer, exponent of two)."""
    fraction, exponent = math.frexp(number)
    return int(fraction * 2.0**53), exponent - 53


def _join(integer, exponent):
    """A float next to integer * 2**exponent."""
    extra = max(abs(integer).bit_length() - 64, 0)
    try:
        return math.ldexp(integer >> extra if integer >= 0 else -(-integer >> extra), exponent + extra)
    except OverflowError:
        return math.inf if integer > 0 else -math.inf


def _add(a, b):
    """The sum of two (integer, exponent)."""
    low = min(a[1], b[1])
    return (a[0] << (a[1] - low)) + (b[0] << (b[1] - low)), low


def _top(value):
    """The exponent of the leading bit, -inf for 0."""
    return abs(value[0]).bit_length() - 1 + value[1] if value[0] else -math.inf


def _normalised(row, eps):
    """xhat of a group of finite floats, each as (integer, exponent)."""
    n = len(row)
    parts = [_split(x) for x in row]
    low = min((e for m, e in parts if m), default=0)
    on_low = [m << (e - low) if m else 0 for m, e in parts]
    total = sum(on_low)
    deviations = [n * x - total for x in on_low]
    square, exponent = _add((sum(d * d for d in deviations), 2 * low), (eps[0] * n**3, eps[1]))
    if not square:
        return [(0, 0)] * n
    shift = max(2 * _ROOT_BITS + square.bit_length() - n.bit_length(), 0)
    shift += (exponent + shift) % 2
    root, half = math.isqrt((n << shift) // square), (-exponent - shift) // 2
    return [(d * root, low + half) for d in deviations]


def _error(given, exact, scale, dtype):
    """In ulps of dtype at 2**scale."""
    digits, smallest = _FORMATS[dtype]
    ulp = int(max(scale - digits + 1, smallest))
    if math.isnan(given):
        return math.inf
    if math.isinf(given):
        # Right where the exact result is beyond the largest number, or not further from it than an ulp.
        over = _add((abs(exact[0]) * (1 if (exact[0] > 0) == (given > 0) else -1), exact[1]),
                    (-(2**digits - 2), _LARGEST[dtype] - digits))
        return 0.0 if over[0] >= 0 else math.inf
    difference = _add(_split(given), (-exact[0], exact[1]))
    return _join(abs(difference[0]), difference[1] - ulp)


class _Parameter:
    """weight or bias, split once."""

    def __init__(self, array, name, shape, missing):
        values = [missing] * math.prod(shape)
        if array is not None:
            array = np.asarray(array)
            if array.shape != shape:
                raise ValueError(f"{name}: expected shape {list(shape)}, got {list(array.shape)}")
            values = array.astype(np.float64).ravel().tolist()
        self.finite = [math.isfinite(value) for value in values]
        self.parts = [_split(value) if math.isfinite(value) else (0, 0) for value in values]


def _row_errors(row, given, weight, bias, eps, dtype):
    """(error, exact) of each element of a group; exact is NaN where no number is due."""
    if not all(map(math.isfinite, row)):
        return [(0.0 if not math.isfinite(y) else math.inf, math.nan) for y in given]
    results = []
    for i, (xhat, exponent) in enumerate(_normalised(row, eps)):
        if not (weight.finite[i] and bias.finite[i]):
            results.append((0.0 if not math.isfinite(given[i]) else math.inf, math.nan))
            continue
        w, b = weight.parts[i], bias.parts[i]
        product = xhat * w[0], exponent + w[1]
        exact = _add(product, b)
        scale = max(_top(exact), _top(product), _top(w), _top(b))
        results.append((_error(given[i], exact, scale, dtype) if scale > -math.inf or given[i] else 0.0, _join(*exact)))
    return results


def verify(x: Any, y: Any, normalized_shape: SupportsIndex | Sequence[SupportsIndex], weight: Any | None = None,
           bias: Any | None = None, eps: float = 1e-5) -> Report:
    """Compares y, which anybody may have computed, with the exact layer norm of x over its trailing axes.

    x, y: arrays of one shape [*, normalized_shape], of any two of the four types. weight, bias: [normalized_shape] or
    None. The exact result is that of the numbers as they are stored, in integer arithmetic with a root of 200 bits; it
    takes some microseconds an element. A group with a NaN or an infinity must have no finite result. Returns a Report.

    >>> x = np.array([[1.0, 2.0, 4.0]], dtype=np.float32)
    >>> lnorm.verify(x, lnorm.layer_norm(x, 3), 3).worst < 0.501
    True
    >>> print(lnorm.verify(x, x - x.mean(), 3))
    largest error   2.7713e+06 ulp of float32, at [0, 2]: 1.6666667461395264, exact 1.3363019143128718
    mean error      1.8475e+06 ulp
    within 0.5 ulp  0 of 3
    within 1 ulp    0 of 3
    """
    x, y = np.asarray(as_array(x, "x")), np.asarray(as_array(y, "y"))
    for name, array in (("x", x), ("y", y)):
        try:
            element_of(array.dtype.newbyteorder("="))
        except TypeError as error:
            raise TypeError(f"{name}: {str(error).removeprefix('dtype: ')}") from None
    shape = extents(normalized_shape)
    if y.shape != x.shape:
        raise ValueError(f"y: expected the shape of x, {list(x.shape)}, got {list(y.shape)}")
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"normalized_shape: expected the trailing extents of x of shape {list(x.shape)}, got "
                         f"{list(shape)}")
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps: expected a finite number of at least 0, got {eps}")
    return _report(x, y, _Parameter(weight, "weight", shape, 1.0), _Parameter(bias, "bias", shape, 0.0), eps,
                   math.prod(shape))


def _report(x, y, weight, bias, eps, cols):
    dtype, scaled_eps = y.dtype.name, _split(float(eps))
    worst, place, total, finite, half, one = (-1.0, 0.0), 0, 0.0, 0, 0, 0
    rows = x.size // cols if cols else 0
    values = zip(x.reshape(rows, cols), y.reshape(rows, cols))
    for r, (row, given) in enumerate(values):
        errors = _row_errors(row.astype(np.float64).tolist(), given.astype(np.float64).tolist(), weight, bias,
                             scaled_eps, dtype)
        for i, (error, exact) in enumerate(errors):
            if error > worst[0]:
                worst, place = (error, exact), r * cols + i
            half, one = half + (error <= 0.5), one + (error <= 1)
            if error < math.inf:
                total, finite = total + error, finite + 1
    if not x.size:
        return Report(dtype, 0, 0.0, 0.0, (), math.nan, math.nan, 0, 0)
    index = tuple(map(int, np.unravel_index(place, x.shape)))
    mean = total / finite if finite else math.inf
    return Report(dtype, x.size, worst[0], mean, index, float(y[index]), worst[1], half, one)
