"""Section 14: pairs (h, l) and scaled pairs ((h, l), e)."""
import math
from functools import reduce

from formats import divide, square_root

NONE = -2**20  # the exponent of zero
TINY = 2.0**-256
ZERO = (0.0, 0.0)
NAN = (math.nan, math.nan)
SPLIT = 2.0**27 + 1.0


def shift(a, i):
    """a·2^i, rounded once."""
    try:
        return math.ldexp(a, i)
    except OverflowError:
        return math.copysign(math.inf, a)


def scale(a, i):
    return shift(a[0], i), shift(a[1], i)


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def split(a):
    c = SPLIT * a
    high = c - (c - a)
    return high, a - high


def two_prod(a, b):
    p = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    return p, (((ah * bh - p) + ah * bl) + al * bh) + al * bl


def add(a, b):
    s, e = two_sum(a[0], b[0])
    return s, (a[1] + b[1]) + e


def negative(a):
    return -a[0], -a[1]


def sub(a, b):
    return add(a, negative(b))


def mul(a, b):
    p, e = two_prod(a[0], b[0])
    return p, (a[0] * b[1] + a[1] * b[0]) + e


def quo(a, n):
    q = divide(a[0], n)
    p, e = two_prod(q, n)
    return q, divide(((a[0] - p) - e) + a[1], n)


def norm(a):
    return two_sum(a[0], a[1])


def flush(a):
    return ZERO if abs(a[0]) < TINY else a


def flush_number(a):
    return 0.0 if abs(a) < TINY else a


def factor(a):
    return flush(norm(a))


def is_zero(a):
    return a[0] == 0.0 and a[1] == 0.0


def exponent(a):
    if a == 0.0:
        return NONE
    return math.frexp(a)[1] - 1 if math.isfinite(a) else 0


def scaled(p, e):
    return (p, NONE) if is_zero(p) else (p, e)


def sig(a):
    e = exponent(a)
    return ((a, 0.0), e) if a == 0.0 or not math.isfinite(a) else ((shift(a, -e), 0.0), e)


def cross(a, b):
    """a × b of scaled pairs."""
    return scaled(mul(a[0], b[0]), a[1] + b[1])


def at(a, k):
    return flush(scale(a[0], max(a[1] - k, -1000)))


def rounded(p, e):
    return shift(p[0] + p[1], e)


def largest(terms):
    return max((e for _, e in terms), default=NONE)


def total(*terms):
    """The sum of some scaled pairs as a double."""
    k = largest(terms)
    s = reduce(add, [at(term, k) for term in terms])
    return rounded(s, k) if math.isfinite(s[0]) else s[0]


def root(v, k, eps):
    """1/sqrt(v·2^2k + eps) as a pair r and j: r·2^-j."""
    e = exponent(eps) // 2 if eps != 0.0 else NONE
    j = e if v[0] == 0.0 or e > k else k
    big = norm(add(flush(scale(v, 2 * (k - j))), (flush_number(shift(eps, -2 * j)), 0.0)))
    if big[0] == 0.0:
        return ZERO, k
    if big[0] < 0.0:
        return (math.nan, 0.0), j
    a = divide(1.0, square_root(big[0]))
    p, p1 = two_prod(a, a)
    w, w1 = two_prod(big[0], p)
    return (a, a * (0.5 * (((1.0 - w) - w1) - (big[0] * p1 + big[1] * p)))), j
