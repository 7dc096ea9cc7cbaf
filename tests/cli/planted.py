"""Results for `lnorm verify` to judge: exact ones (fractions, then 60 digits), and those of a kernel in f32.

An operation is a function of a shape that gives, for every element in row-major order, its group and the index of its
weight and bias.
"""

import itertools
import math
import struct
from decimal import Context, Decimal, setcontext
from fractions import Fraction

from program import to_f32

setcontext(Context(prec=60, Emax=10**6, Emin=-10**6))


def to_f16(value):
    try:
        return struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def to_bf16(value):
    """To nearest even, from a float32's bits (what is lost before does not matter in a test)."""
    if math.isnan(value) or math.isinf(value):
        return value
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return struct.unpack("<f", struct.pack("<I", bits))[0]


ROUND = {"f64": float, "f32": to_f32, "f16": to_f16, "bf16": to_bf16}
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def over(*axes):
    """Layer and RMS norm over these axes; weight and bias have their extents."""
    def of(shape):
        kept = [a % len(shape) for a in axes]
        for index in itertools.product(*map(range, shape)):
            parameter = 0
            for a in sorted(kept):
                parameter = parameter * shape[a] + index[a]
            yield tuple(i for a, i in enumerate(index) if a not in kept), parameter
    return of


def channels(group_of):
    """Group, instance and batch norm: group_of(n, c, channels) names the group."""
    def of(shape):
        for index in itertools.product(*map(range, shape)):
            yield group_of(index[0], index[1], shape[1]), index[1]
    return of


def grouped(groups):
    return channels(lambda n, c, count: (n, c * groups // count))


INSTANCE = channels(lambda n, c, count: (n, c))
BATCH = channels(lambda n, c, count: c)


def groups_of(operation, shape):
    """Group -> the elements' row-major numbers; and each element's weight index."""
    members, parameter = {}, []
    for number, (group, index) in enumerate(operation(shape)):
        members.setdefault(group, []).append(number)
        parameter.append(index)
    return members, parameter


def decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def exact(x, shape, operation, weight=None, bias=None, eps=1e-5, rms=False, given=None):
    """y as Decimals, from floats. `given`: mean and variance by weight index."""
    members, parameter = groups_of(operation, shape)
    y = [None] * len(x)
    for elements in members.values():
        values = [Fraction(x[i]) for i in elements]
        if given:
            mean, variance = (Fraction(g[parameter[elements[0]]]) for g in given)
        else:
            mean = 0 if rms else sum(values) / len(values)
            variance = sum((v - mean) ** 2 for v in values) / len(values)
        radicand = decimal(variance + Fraction(eps))
        rstd = 1 / radicand.sqrt() if radicand else Decimal(0)
        for i, value in zip(elements, values):
            y[i] = decimal(value - mean) * rstd
            if weight:
                y[i] *= Decimal(weight[parameter[i]])
            if bias:
                y[i] += Decimal(bias[parameter[i]])
    return y


def rounded(dtype, values):
    return [ROUND[dtype](float(v)) for v in values]


def spacing(dtype, size):
    """Of the type's numbers at a normal size."""
    return 2.0 ** (math.frexp(size)[1] - DIGITS[dtype])


def in_order(values, add=to_f32):
    total = 0.0
    for value in values:
        total = add(total + value)
    return total


def in_tree(values):
    half = len(values) // 2
    return values[0] if not half else to_f32(in_tree(values[:half]) + in_tree(values[half:]))


class Kernel:
    """A kernel in f32: every operation is rounded. Subclasses make the mistakes."""
    eps = 1e-5

    def statistics(self, x):
        mean = self.mean(x)
        return mean, to_f32(in_order([to_f32(to_f32(v - mean) ** 2) for v in x]) / self.divisor(len(x)))

    def mean(self, x):
        return to_f32(in_order(x) / len(x))

    def divisor(self, n):
        return n

    def rstd(self, variance):
        return to_f32(1 / to_f32(math.sqrt(to_f32(variance + to_f32(self.eps)))))

    def removed(self, mean):
        return mean

    def xhat(self, value):
        return value

    def apply(self, xhat, weight, bias):
        return to_f32(to_f32(xhat * weight) + bias)

    def run(self, x, shape, operation, weight=None, bias=None):
        members, parameter = groups_of(operation, shape)
        y = [None] * len(x)
        for elements in members.values():
            mean, variance = self.statistics([x[i] for i in elements])
            rstd = self.rstd(variance)
            for i in elements:
                xhat = self.xhat(to_f32(to_f32(x[i] - self.removed(mean)) * rstd))
                y[i] = self.apply(xhat, weight[parameter[i]] if weight else 1.0, bias[parameter[i]] if bias else 0.0)
        return y
