"""lnorm.verify against rational arithmetic, and what it counts."""
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import lnorm


def exact_row(row, weight, bias, eps):
    """y as fractions, the root to 300 bits."""
    x = [Fraction(float(value)) for value in row]
    mean = sum(x) / len(x)
    square = sum((value - mean) ** 2 for value in x) / len(x) + Fraction(eps)
    scale = 2**600
    root = Fraction(math.isqrt(square.numerator * scale // square.denominator), 2**300)
    return [(value - mean) / root * Fraction(float(w)) + Fraction(float(b)) for value, w, b in zip(x, weight, bias)]


@pytest.mark.parametrize("dtype, digits, smallest", [(np.float64, 53, -1074), (np.float32, 24, -149),
                                                     (np.float16, 11, -24), (ml_dtypes.bfloat16, 8, -133)])
def test_against_fractions(random, dtype, digits, smallest):
    x, weight, bias = (random.standard_normal(9).astype(dtype) for _ in range(3))
    y = (lnorm.layer_norm(x, 9, weight, bias).astype(np.float64) * 1.125).astype(dtype)
    exact = exact_row(x, weight, bias, 1e-5)
    errors = []
    for i in range(9):
        product = exact[i] - Fraction(float(bias[i]))
        top = float(max(abs(exact[i]), abs(product), abs(Fraction(float(weight[i]))), abs(Fraction(float(bias[i])))))
        ulp = Fraction(2) ** max(math.frexp(top)[1] - digits, smallest)
        errors.append(float(abs(Fraction(float(y[i])) - exact[i]) / ulp))
    report = lnorm.verify(x, y, 9, weight, bias)
    assert report.worst == pytest.approx(max(errors), rel=1e-12)
    assert report.mean == pytest.approx(sum(errors) / 9, rel=1e-12)
    assert report.index == (int(np.argmax(errors)),)
    assert report.exact == pytest.approx(float(exact[report.index[0]]), rel=1e-15)
    assert report.given == y[report.index]
    assert report.within_one == sum(error <= 1 for error in errors)


def test_where(random):
    x = random.standard_normal((3, 4, 5)).astype(np.float32)
    y = lnorm.layer_norm(x, (4, 5))
    y[1, 2, 3] += 1
    report = lnorm.verify(x, y, (4, 5))
    assert report.index == (1, 2, 3) and report.worst > 1e5 and report.within_half == 59 and report.elements == 60
    assert "at [1, 2, 3]" in str(report)


def test_constant_rows_and_no_eps():
    x = np.full((2, 3), 0.1, np.float32)
    bias = np.array([1, 2, 3], np.float32)
    assert lnorm.verify(x, np.broadcast_to(bias, x.shape), 3, None, bias, 0.0).worst == 0
    assert lnorm.verify(x, np.broadcast_to(bias + 1, x.shape), 3, None, bias, 0.0).worst > 1e6
    assert lnorm.verify(x, np.zeros_like(x), 3, eps=0.0).worst == 0


def test_what_is_not_finite():
    x = np.array([[1, 2, np.nan], [1, 2, 4]], np.float32)
    y = lnorm.layer_norm(x, 3)
    assert lnorm.verify(x, y, 3).worst < 0.501
    wrong = y.copy()
    wrong[0, 1] = 0
    assert lnorm.verify(x, wrong, 3).worst == math.inf
    wrong = y.copy()
    wrong[1, 1] = np.nan
    assert lnorm.verify(x, wrong, 3).index == (1, 1)
    wrong[1, 1] = np.inf
    assert lnorm.verify(x, wrong, 3).worst == math.inf
    weight = np.full(3, 60000, np.float16)
    large = np.array([[1, 2, 4]], np.float16)
    y = lnorm.layer_norm(large, 3, weight)
    assert np.isinf(y).any() and lnorm.verify(large, y, 3, weight).worst < 0.501
    assert lnorm.verify(large, -y, 3, weight).worst == math.inf


@pytest.mark.parametrize("scale", [1e-310, 1e-40, 1e30, 1e300])
def test_extremes_of_float64(random, scale):
    x = random.standard_normal((2, 20)) * scale
    assert lnorm.verify(x, lnorm.layer_norm(x, 20, eps=0.0), 20, eps=0.0).worst <= 1


def test_nothing():
    assert str(lnorm.verify(np.empty((0, 3)), np.empty((0, 3)), 3)) == "no elements"
