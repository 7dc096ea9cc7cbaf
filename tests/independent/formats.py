"""Element types: bit patterns to numbers, and section 7's one rounding back."""
import math
import struct
from array import array

# name: (bits, explicit bits of the significand)
FORMATS = {"f64": (64, 52), "f32": (32, 23), "f16": (16, 10), "bf16": (16, 7)}


def widen(dtype, pattern):
    """The number that a bit pattern stands for; exact."""
    if dtype == "bf16":
        return widen("f32", pattern << 16)
    letter, integer = {"f64": "dQ", "f32": "fI", "f16": "eH"}[dtype]
    return struct.unpack("<" + letter, struct.pack("<" + integer, pattern))[0]


def canonical(dtype, pattern):
    """Every NaN becomes the positive quiet one without payload."""
    bits, mantissa = FORMATS[dtype]
    infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    return infinity | 1 << (mantissa - 1) if pattern & ((1 << (bits - 1)) - 1) > infinity else pattern


def round_to(dtype, number):
    """The canonical bit pattern of a number rounded to nearest, ties to even, straight from f64."""
    bits, mantissa = FORMATS[dtype]
    if dtype == "f64":
        return canonical(dtype, struct.unpack("<Q", struct.pack("<d", number))[0])
    sign = int(math.copysign(1.0, number) < 0) << (bits - 1)
    infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    if number != number:
        return infinity | 1 << (mantissa - 1)
    if number == 0.0 or math.isinf(number):
        return sign | (infinity if number else 0)
    fraction, exponent = math.frexp(abs(number))  # fraction·2^exponent, fraction in [1/2, 1) or 0
    lowest = 2 - (1 << (bits - 2 - mantissa))  # exponent of the smallest normal number
    unit = max(exponent - 1, lowest) - mantissa  # exponent of the last place
    # round() of a float is to nearest, ties to even, and exact; the product is exact: at most 53 bits, scaled
    steps = round(math.ldexp(fraction, exponent - unit)) if exponent - unit > -60 else 0
    # Consecutive patterns are consecutive numbers, across binades too; past the largest follows infinity.
    return sign | min(((unit + mantissa - lowest) << mantissa) + steps, infinity)


def f32(numbers):
    """Rounds f64 numbers to f32 and widens them again. The sum and the product of two f32 in f64, rounded once more,
    are the f32 operations: 53 >= 2·24 + 2 bits, and the product of two f32 is exact."""
    return array("f", numbers).tolist()


def divide(a, b):
    """IEEE division, where Python raises an exception."""
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def square_root(a):
    return math.sqrt(a) if a >= 0.0 else math.nan
