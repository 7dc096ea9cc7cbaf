"""What the norms should give, in exact rational arithmetic, from the formulas; and .npy files in every order."""

import itertools
import math
import random
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

from program import CODE, DESCR, Array, bf16_bits, npy_header

getcontext().prec = 60

PRECISION = {"f64": (53, -1074, 1024), "f32": (24, -149, 128), "f16": (11, -24, 16), "bf16": (8, -133, 128)}


def ulp(dtype, value):
    """The distance of the numbers of this type around |value|."""
    precision, least, _ = PRECISION[dtype]
    value = abs(Fraction(value))
    if not value:
        return Fraction(2) ** least
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 1
    exponent += Fraction(2) ** (exponent + 1) <= value
    return Fraction(2) ** max(least, exponent - precision + 1)


def rounded(dtype, value):
    """A rational number rounded once, to nearest even, to a number of this type."""
    unit = ulp(dtype, value)
    number = round(Fraction(value) / unit) * unit  # round(Fraction) is to even
    if abs(number) >= Fraction(2) ** PRECISION[dtype][2]:
        return math.copysign(math.inf, number)
    return float(number)


def random_array(dtype, shape, seed, spread=1.0, offset=0.0):
    source = random.Random(f"{dtype} {shape} {seed}")
    count = math.prod(shape)
    return Array(dtype, tuple(shape), [rounded(dtype, Fraction(source.gauss(offset, spread))) for _ in range(count)])


def pattern_array(dtype, shape):
    """Many small numbers without a simple order, exact in every type."""
    count = math.prod(shape)
    return Array(dtype, tuple(shape), [(i * 7919 % 997 % 251 - 125) / 16 for i in range(count)])


def column_major(values, shape):
    if len(shape) < 2:
        return values
    last = shape[-1]
    return [value for k in range(last) for value in column_major(values[k::last], shape[:-1])]


def layout(array, fortran=False, big_endian=False):
    """The bytes of an .npy file in any order of axes and bytes."""
    values = column_major(array.values, array.shape) if fortran else array.values
    end, descr = (">", DESCR[array.dtype].replace("<", ">")) if big_endian else ("<", DESCR[array.dtype])
    if array.dtype == "bf16":
        body = struct.pack(f"{end}{len(values)}H", *map(bf16_bits, values))
    else:
        body = struct.pack(f"{end}{len(values)}{CODE[array.dtype]}", *values)
    return npy_header(descr, array.shape, fortran) + body


class Norm:
    """An operation on a shape: which group and which parameter each element has."""

    def __init__(self, op, shape, axes=None, groups=None):
        self.op, self.shape = op, tuple(shape)
        indices = list(itertools.product(*map(range, shape)))
        if op in ("layer", "rms"):
            axes = sorted(a % len(shape) for a in axes or [-1])
            outer = [i for i in range(len(shape)) if i not in axes]
            keys = [tuple(at[i] for i in outer) for at in indices]
            own = [tuple(at[i] for i in axes) for at in indices]
            self.statistic_shape = tuple(shape[i] for i in outer)
            self.parameter_shape = tuple(shape[i] for i in axes)
        else:
            channels = shape[1]
            own = [(at[1],) for at in indices]
            self.parameter_shape = (channels,)
            keys, self.statistic_shape = {
                "group": lambda: ([(at[0], at[1] * groups // channels) for at in indices], (shape[0], groups)),
                "instance": lambda: ([(at[0], at[1]) for at in indices], (shape[0], channels)),
                "batch": lambda: ([(at[1],) for at in indices], (channels,)),
            }[op]()
        numbers = {key: i for i, key in enumerate(itertools.product(*map(range, self.statistic_shape)))}
        entries = {key: i for i, key in enumerate(itertools.product(*map(range, self.parameter_shape)))}
        self.group = [numbers[key] for key in keys]
        self.entry = [entries[key] for key in own]
        self.groups, self.entries = len(numbers), len(entries)

    def total(self, values):
        """Sums by group."""
        sums = [Fraction(0)] * self.groups
        for group, value in zip(self.group, values):
            sums[group] += value
        return sums

    def average(self, values):
        size = len(self.group) // self.groups
        return [value / size for value in self.total(values)]

    def statistics(self, x, eps):
        """mean and rstd of each group; mean is 0 for RMS norm."""
        mean = [Fraction(0)] * self.groups if self.op == "rms" else self.average(x)
        square = self.average([(v - mean[g]) ** 2 for v, g in zip(x, self.group)])
        return mean, [reciprocal_root(v + eps) for v in square]


def reciprocal_root(value):
    """1/sqrt(value) to 60 digits; 0 for 0."""
    if not value:
        return Fraction(0)
    return Fraction(1 / (Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def default_eps(op, dtype):
    return Fraction(1e-5) if op != "rms" else Fraction(2) ** (-52 if dtype == "f64" else -23)


def fractions(array):
    return [Fraction(value) for value in array.values]


def forward(norm, x, weight=None, bias=None, eps=None, offset=0, given=None):
    """Lists of (value, scale of its bound) of y, mean and rstd."""
    eps = default_eps(norm.op, x.dtype) if eps is None else Fraction(eps)
    values = fractions(x)
    if given:
        mean, rstd = fractions(given[0]), [reciprocal_root(v + eps) for v in fractions(given[1])]
    else:
        mean, rstd = norm.statistics(values, eps)
    y, most = [], norm.average(list(map(abs, values)))
    for value, group, entry in zip(values, norm.group, norm.entry):
        xhat = (value - mean[group]) * rstd[group]
        w = Fraction(weight.values[entry]) + offset if weight else Fraction(1)
        b = Fraction(bias.values[entry]) if bias else Fraction(0)
        y.append((xhat * w + b, max(abs(xhat * w + b), abs(w) if weight else 0, abs(w * xhat), abs(b))))
    return y, list(zip(mean, map(max, most, map(abs, mean)))), list(zip(rstd, rstd))


def backward(norm, x, dy, weight=None, eps=None, offset=0, given=None):
    """Lists of (value, scale of its bound) of dx, dweight and dbias; the scales are those of docs/arithmetic.md, 14."""
    eps = default_eps(norm.op, x.dtype) if eps is None else Fraction(eps)
    values, slopes = fractions(x), fractions(dy)
    if given:
        mean, rstd = fractions(given[0]), [reciprocal_root(v + eps) for v in fractions(given[1])]
    else:
        mean, rstd = norm.statistics(values, eps)
    xhat = [(v - mean[k]) * rstd[k] for v, k in zip(values, norm.group)]
    g = [d * (Fraction(weight.values[e]) + offset if weight else 1) for d, e in zip(slopes, norm.entry)]
    nothing = [Fraction(0)] * norm.groups
    first = nothing if norm.op == "rms" or given else norm.average(g)
    second = nothing if given else norm.average([a * b for a, b in zip(g, xhat)])
    most = [norm.average(list(map(abs, g))), norm.average([abs(a * b) for a, b in zip(g, xhat)])]
    dx = []
    for a, b, k in zip(g, xhat, norm.group):
        value = rstd[k] * (a - first[k] - b * second[k])
        dx.append((value, max(abs(value), rstd[k] * max(abs(a), most[0][k], abs(b) * most[1][k]))))
    dweight, dbias = [[Fraction(0), Fraction(0)] for _ in range(norm.entries)], [[0, 0] for _ in range(norm.entries)]
    for d, b, e in zip(slopes, xhat, norm.entry):
        dweight[e][0] += d * b
        dweight[e][1] += abs(d) * max(1, abs(b))
        dbias[e][0] += d
        dbias[e][1] += abs(d)
    return dx, dweight, dbias


# Results in units in the last place of their scale: one rounding, and for f64 results of f64 input the promise of
# docs/arithmetic.md, section 14. f64 results of narrow input are what is there before the last rounding: off by up to
# (105.2*E + 40)*2^-53 of the scale (section 19), E = 20 for groups of up to 256 elements.
def bound(dtype, wide):
    if dtype != "f64":
        return Fraction(501, 1000)
    return 1 if wide else Fraction(2144, 2)


def assert_close(test, got, wanted, wide, what=""):
    """`got` is an Array; `wanted` a list of (exact value, scale)."""
    test.assertEqual(len(got.values), len(wanted), what)
    for i, (value, (exact, scale)) in enumerate(zip(got.values, wanted)):
        allowed = bound(got.dtype, wide) * ulp(got.dtype, scale)
        test.assertTrue(math.isfinite(value) and abs(Fraction(value) - exact) <= allowed,
                        f"{what}: element {i}: got {value}, exact {float(exact)}")
