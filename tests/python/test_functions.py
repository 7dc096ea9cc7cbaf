"""The functions against plain formulas in float64, and their options against each other."""
import itertools

import numpy as np
import pytest

import lnorm

# A few units of float64's last place at |y| of some units; the exact cases are the sharp test.
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def normalised(x, axes, eps, centre=True):
    mean = x.mean(axes, keepdims=True) if centre else 0.0
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


def channels(parameter, x):
    return parameter.reshape(-1, *[1] * (x.ndim - 2))


def numeric_gradient(function, argument, dy):
    """d sum(dy * function()) / d argument, by central differences."""
    gradient = np.empty_like(argument)
    step = 1e-5
    for i in np.ndindex(argument.shape):
        kept = argument[i]
        argument[i] = kept + step
        above = (dy * function()).sum()
        argument[i] = kept - step
        gradient[i] = (above - (dy * function()).sum()) / (2 * step)
        argument[i] = kept
    return gradient


def assert_gradient(got, function, argument, dy):
    # Truncation step^2 * y''' / 6 and rounding 2^-52 * |sum| / step are both below 1e-8 for these sizes.
    np.testing.assert_allclose(got, numeric_gradient(function, argument, dy), rtol=1e-6, atol=1e-7)


def test_layer_norm(random):
    x, weight, bias = random.standard_normal((3, 4, 5)), random.standard_normal((4, 5)), random.standard_normal((4, 5))
    due = normalised(x, (1, 2), 1e-3) * weight + bias
    np.testing.assert_allclose(lnorm.layer_norm(x, (4, 5), weight, bias, 1e-3), due, **CLOSE)


def test_layer_norm_over_any_axes(random):
    x, weight = random.standard_normal((3, 4, 5)), random.standard_normal((3, 5))
    y, mean, rstd = lnorm.layer_norm(x, axes=(-1, 0), weight=weight, return_stats=True)
    np.testing.assert_allclose(y, normalised(x, (0, 2), 1e-5) * weight[:, None], **CLOSE)
    assert mean.shape == rstd.shape == (1, 4, 1)
    np.testing.assert_allclose((x - mean) * rstd * weight[:, None], y, **CLOSE)


@pytest.mark.parametrize("shape", [5, np.int32(5), [5], (5,), np.array([5]), (np.int64(5),)])
def test_normalized_shape_in_every_form(random, shape):
    x = random.standard_normal((3, 5))
    np.testing.assert_array_equal(lnorm.layer_norm(x, shape), lnorm.layer_norm(x, 5))


def test_keywords_that_are_not_interned(random):
    x = random.standard_normal((3, 5))
    keywords = {"".join(["nor", "malized_", "shape"]): 5, "".join(["in", "put"]): x}
    np.testing.assert_array_equal(lnorm.layer_norm(**keywords), lnorm.layer_norm(x, 5))


def test_statistics_have_ones_in_place_of_what_is_normalised_over(random):
    x = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
    _, mean, rstd = lnorm.layer_norm(x, (4, 5), return_stats=True)
    assert mean.shape == rstd.shape == (2, 3, 1, 1) and mean.dtype == rstd.dtype == np.float32
    np.testing.assert_allclose(mean[..., 0, 0], x.astype(np.float64).mean((2, 3)), rtol=1e-6, atol=1e-7)
    y, rstd = lnorm.rms_norm(x, 5, return_stats=True)
    assert rstd.shape == (2, 3, 4, 1) and y.shape == x.shape


def test_rms_norm(random):
    x, weight = random.standard_normal((3, 8)), random.standard_normal(8)
    due = normalised(x, 1, 2.0**-52, centre=False) * weight
    np.testing.assert_allclose(lnorm.rms_norm(x, 8, weight), due, **CLOSE)
    np.testing.assert_array_equal(lnorm.rms_norm(x, 8, weight, None), lnorm.rms_norm(x, 8, weight, 2.0**-52))


def test_group_and_instance_norm(random):
    x, weight, bias = random.standard_normal((2, 6, 5)), random.standard_normal(6), random.standard_normal(6)
    due = normalised(x.reshape(2, 3, 2, 5), (2, 3), 1e-5).reshape(x.shape) * channels(weight, x) + channels(bias, x)
    y, mean, rstd = lnorm.group_norm(x, 3, weight, bias, return_stats=True)
    np.testing.assert_allclose(y, due, **CLOSE)
    assert mean.shape == rstd.shape == (2, 3)
    due = normalised(x, 2, 1e-5) * channels(weight, x)
    y, mean, _ = lnorm.instance_norm(x, weight=weight, return_stats=True)
    np.testing.assert_allclose(y, due, **CLOSE)
    assert mean.shape == (2, 6)


def test_batch_norm_and_its_running_statistics(random):
    x, weight = random.standard_normal((4, 3, 5)), random.standard_normal(3)
    running_mean, running_var = random.standard_normal(3), random.random(3) + 0.5
    mean = running_mean * 0.75 + x.mean((0, 2)) * 0.25
    var = running_var * 0.75 + x.var((0, 2), ddof=1) * 0.25
    y, *statistics = lnorm.batch_norm(x, running_mean, running_var, weight, training=True, momentum=0.25,
                                      return_stats=True)
    np.testing.assert_allclose(y, normalised(x, (0, 2), 1e-5) * channels(weight, x), **CLOSE)
    np.testing.assert_allclose(running_mean, mean, **CLOSE)
    np.testing.assert_allclose(running_var, var, **CLOSE)
    assert [s.shape for s in statistics] == [(3,), (3,)]
    due = (x - channels(mean, x)) / np.sqrt(channels(var, x) + 1e-5)
    np.testing.assert_allclose(lnorm.batch_norm(x, mean, var), due, **CLOSE)


def test_instance_norm_and_its_running_statistics(random):
    x = random.standard_normal((4, 3, 5))
    running_mean, running_var = random.standard_normal(3), random.random(3) + 0.5
    mean = running_mean * 0.75 + x.mean(2).mean(0) * 0.25
    var = running_var * 0.75 + x.var(2, ddof=1).mean(0) * 0.25
    y = lnorm.instance_norm(x, running_mean, running_var, momentum=0.25)
    np.testing.assert_allclose(y, normalised(x, 2, 1e-5), **CLOSE)
    np.testing.assert_allclose(running_mean, mean, **CLOSE)
    np.testing.assert_allclose(running_var, var, **CLOSE)
    due = (x - channels(mean, x)) / np.sqrt(channels(var, x) + 1e-5)
    np.testing.assert_allclose(lnorm.instance_norm(x, mean, var, use_input_stats=False), due, **CLOSE)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward"])
@pytest.mark.parametrize("shape", [(3, 5), (150, 64), (2, 4, 8192)])
def test_the_short_way_and_the_general_one_give_the_same_bits(random, name, shape):
    """Small, above the size that keeps the interpreter's lock, above the size that threads are used for."""
    x, dy = random.standard_normal(shape).astype(np.float32), random.standard_normal(shape).astype(np.float32)
    weight = random.standard_normal(shape[-1]).astype(np.float32)
    arguments = [x, shape[-1], weight] if "backward" not in name else [dy, x, shape[-1], weight]
    short = getattr(lnorm._core, name)(*arguments)
    general = getattr(lnorm._functions, name)(*arguments)
    assert type(short) is type(general)
    for a, b in zip(short, general) if isinstance(short, tuple) else [(short, general)]:
        np.testing.assert_array_equal(a, b)


TRAILING = {"layer": (lnorm.layer_norm, lnorm.layer_norm_backward), "rms": (lnorm.rms_norm, lnorm.rms_norm_backward)}


@pytest.mark.parametrize("kind", TRAILING)
def test_gradients_over_trailing_axes(random, kind):
    forward, backward = TRAILING[kind]
    x, dy, weight = random.standard_normal((2, 3, 4)), random.standard_normal((2, 3, 4)), random.standard_normal((3, 4))
    dx, dweight, *rest = backward(dy, x, (3, 4), weight, eps=1e-3)
    assert_gradient(dx, lambda: forward(x, (3, 4), weight, eps=1e-3), x, dy)
    assert_gradient(dweight, lambda: forward(x, (3, 4), weight, eps=1e-3), weight, dy)
    assert rest in ([], [None])


CHANNEL = {
    "group": (lambda x, w, b: lnorm.group_norm(x, 2, w, b),
              lambda dy, x, w, b: lnorm.group_norm_backward(dy, x, 2, w, b)),
    "instance": (lambda x, w, b: lnorm.instance_norm(x, weight=w, bias=b), lnorm.instance_norm_backward),
    "batch": (lambda x, w, b: lnorm.batch_norm(x, weight=w, bias=b, training=True),
              lambda dy, x, w, b: lnorm.batch_norm_backward(dy, x, weight=w, bias=b, training=True)),
}


@pytest.mark.parametrize("kind", CHANNEL)
def test_gradients_by_channel(random, kind):
    forward, backward = CHANNEL[kind]
    x, dy = random.standard_normal((2, 4, 3)), random.standard_normal((2, 4, 3))
    weight, bias = random.standard_normal(4), random.standard_normal(4)
    for got, argument in zip(backward(dy, x, weight, bias), (x, weight, bias)):
        assert_gradient(got, lambda: forward(x, weight, bias), argument, dy)


def test_gradient_with_constant_statistics(random):
    x, dy, mean, var = random.standard_normal((2, 3)), random.standard_normal((2, 3)), np.zeros(3), np.full(3, 4.0)
    dx, *_ = lnorm.batch_norm_backward(dy, x, mean, var, eps=0.0)
    np.testing.assert_array_equal(dx, dy / 2)


@pytest.mark.parametrize("kind", TRAILING)
def test_double_backward(random, kind):
    backward = TRAILING[kind][1]
    double = {"layer": lnorm.layer_norm_double_backward, "rms": lnorm.rms_norm_double_backward}[kind]
    x, dy, v, weight = (random.standard_normal(shape) for shape in ((2, 5), (2, 5), (2, 5), 5))
    for got, argument in zip(double(v, dy, x, 5, weight, 1e-3), (dy, x, weight)):
        assert_gradient(got, lambda: backward(dy, x, 5, weight, eps=1e-3)[0], argument, v)


def test_saved_statistics_are_used(random):
    x, dy = random.standard_normal((3, 8)), random.standard_normal((3, 8))
    _, mean, rstd = lnorm.layer_norm(x, 8, return_stats=True)
    due = lnorm.layer_norm_backward(dy, x, 8)[0]
    np.testing.assert_allclose(lnorm.layer_norm_backward(dy, x, 8, mean=mean, rstd=rstd)[0], due, **CLOSE)
    other = lnorm.layer_norm_backward(dy, x, 8, mean=mean, rstd=2 * rstd)[0]
    assert abs(other - due).max() > 0.1


def test_absent_parameters_have_no_gradient(random):
    x = random.standard_normal((3, 8))
    assert lnorm.layer_norm_backward(x, x, 8)[1:] == (None, None)
    _, dweight, dbias = lnorm.layer_norm_backward(x, x, 8, bias=np.zeros(8))
    assert dweight is None and dbias.shape == (8,)


@pytest.mark.parametrize("rows", [3, 500])
def test_fast_arithmetic_of_dense_and_of_strided_arrays_is_one(random, rows):
    """Dense arrays go through C alone, with True and False for `fast`."""
    x, dy = random.standard_normal((2, rows, 100)).astype(np.float32)
    weight, bias = random.standard_normal((2, 100)).astype(np.float32)
    strided = np.asfortranarray(x)
    for fast in (True, False, np.bool_(True)):
        for norm, backward, parameters in ((lnorm.layer_norm, lnorm.layer_norm_backward, (weight, bias)),
                                           (lnorm.rms_norm, lnorm.rms_norm_backward, (weight,))):
            y = norm(x, 100, *parameters, fast=fast)
            assert np.array_equal(y, norm(strided, 100, *parameters, fast=fast))
            assert np.array_equal(y, norm(x, 100, *parameters)) == (not fast)
            for found, due in zip(backward(dy, x, 100, *parameters, fast=fast),
                                  backward(dy, strided, 100, *parameters, fast=fast), strict=True):
                assert np.array_equal(found, due)


def test_fast_is_another_arithmetic_of_stated_error(random):
    x = random.standard_normal((64, 100)).astype(np.float32)
    fast = lnorm.layer_norm(x, 100, fast=True)
    assert not np.array_equal(fast, lnorm.layer_norm(x, 100))
    assert lnorm.verify(x, fast, 100).worst <= 9


@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_threads_do_not_change_a_bit(random, threads):
    x = random.standard_normal((300, 400)).astype(np.float32)
    weight = random.standard_normal(400).astype(np.float32)
    np.testing.assert_array_equal(lnorm.layer_norm(x, 400, weight, threads=threads), lnorm.layer_norm(x, 400, weight))
    for got, due in zip(lnorm.layer_norm_backward(x, x, 400, weight, threads=threads),
                        lnorm.layer_norm_backward(x, x, 400, weight, threads=1)):
        np.testing.assert_array_equal(got, due)


def test_set_num_threads():
    before = lnorm.get_num_threads()
    assert before >= 1
    try:
        lnorm.set_num_threads(3)
        assert lnorm.get_num_threads() == 3
    finally:
        lnorm.set_num_threads(None)
    assert lnorm.get_num_threads() == before


@pytest.mark.parametrize("shape, normalized", [((0, 4), 4), ((3, 0), 0), ((0,), 0), ((2, 0, 3), (0, 3))])
def test_empty(shape, normalized):
    x = np.empty(shape, np.float32)
    assert lnorm.layer_norm(x, normalized).shape == shape
    parameter = np.ones(normalized, np.float32)
    dx, dweight, dbias = lnorm.layer_norm_backward(x, x, normalized, parameter, parameter)
    assert dx.shape == shape and not dweight.any() and not dbias.any()


def test_kept_plans_are_those_of_the_call():
    """The short way keeps plans of small calls in fast arithmetic; a call with `out` makes its own."""
    rng = np.random.default_rng(5)
    cases = list(itertools.product((lnorm.layer_norm, lnorm.rms_norm), (np.float32, np.float16),
                                   ((3, 40), (40, 3), (5, 24), (2, 3, 20), (6, 20)), (1e-5, 0.5), (False, True)))
    operands = {}
    for i in (*rng.permutation(len(cases)), *rng.permutation(len(cases))):
        norm, dtype, shape, eps, scaled = cases[i]
        x, w = operands.setdefault((dtype, shape), (rng.standard_normal(shape).astype(dtype),
                                                    rng.standard_normal(shape[-1]).astype(dtype)))
        arguments = dict(weight=w if scaled else None, eps=eps, fast=True)
        due = norm(x, shape[-1], out=np.empty_like(x), **arguments)
        assert np.array_equal(norm(x, shape[-1], **arguments), due)
        if norm is lnorm.layer_norm:
            due = lnorm.layer_norm_backward(x, x, shape[-1], **arguments, threads=1)
            found = lnorm.layer_norm_backward(x, x, shape[-1], **arguments)
            assert all(a is b is None or np.array_equal(a, b) for a, b in zip(found, due))
