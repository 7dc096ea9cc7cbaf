"""The inputs and the hash of tests/vectors/README.md: integers only."""
from formats import FORMATS

MASK = (1 << 64) - 1
HARD_KINDS = ("normal", "constant", "large_mean", "subnormal", "largest", "minus_zero", "outliers", "exponents")


def splitmix64(seed):
    state = seed & MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def finite(dtype, kind, column, random):
    bits, mantissa = FORMATS[dtype]
    top = (1 << (bits - 1 - mantissa)) - 1
    one = top >> 1
    sign = random >> 63 << (bits - 1)
    fraction = (random >> 8) & ((1 << mantissa) - 1)
    if kind == "constant":
        return (one - 4) << mantissa | 0x999999999999A >> (52 - mantissa)
    if kind == "large_mean":
        return (one + 10) << mantissa | (fraction & 7)
    if kind == "subnormal":
        return sign | fraction
    if kind == "largest":
        return sign | (top - 1) << mantissa | fraction
    if kind == "minus_zero":
        return 1 << (bits - 1)
    if kind == "outliers" and column < 2:
        return column << (bits - 1) | (one + 12) << mantissa
    if kind == "exponents":
        return sign | (random >> 3) % top << mantissa | fraction
    return sign | (one - 3 + (random >> 3) % 5) << mantissa | fraction


LIMITS = [(3, 8), (3, 9), (3, 10), (99, 5), (100, 5), (-1000, 0), (-101, 0), (-100, 0), (-51, 0), (-50, 0), (49, 0),
          (50, 0), (99, 0), (100, 0), (1000, 0)]


def limit(dtype, row, random):
    bits, mantissa = FORMATS[dtype]
    scale, sixteenths = LIMITS[row % len(LIMITS)]
    largest = (1 << (bits - 1 - mantissa)) - 2
    exponent = largest // 2 + scale
    sign = random >> 63 << (bits - 1)
    fraction = (random >> 8) & ((1 << mantissa) - 1)
    if sixteenths:
        sign = 0
        fraction %= (1 << mantissa) // 16 * sixteenths
    else:
        exponent += (random >> 3) % 3 - 1
    return sign | min(max(exponent, 0), largest) << mantissa | fraction


def value(dtype, fill, row, column, columns, random):
    bits, mantissa = FORMATS[dtype]
    sign = 1 << (bits - 1)
    if fill == "hard":
        return finite(dtype, HARD_KINDS[(row + columns) % len(HARD_KINDS)], column, random)
    if fill == "limits":
        return limit(dtype, row, random)
    if fill == "positive":
        return finite(dtype, "normal", column, random) & ~sign
    if fill == "poison" and row % 2 and column == columns // 2:
        infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
        return infinity | 1 if row % 4 == 1 else infinity | (sign if row % 8 == 7 else 0)
    return finite(dtype, "normal", column, random)


def patterns(dtype, count, fill, columns, seed):
    return [value(dtype, fill, i // columns, i % columns, columns, random)
            for i, random in zip(range(count), splitmix64(seed))]


HASH_START = 0xCBF29CE484222325


def fnv(data, start=HASH_START):
    for byte in data:
        start = ((start ^ byte) * 0x100000001B3) & MASK
    return start


def hash_patterns(dtype, values, start=HASH_START):
    size = FORMATS[dtype][0] // 8
    return fnv(b"".join(value.to_bytes(size, "little") for value in values), start)
