"""Refused arguments: the exception and its text. That nothing was written is the library's own test."""
import numpy as np
import pytest

import lnorm

X = np.ones((4, 2, 3), np.float32)


@pytest.mark.parametrize("call, error, text", [
    (lambda: lnorm.layer_norm(X, [2]), ValueError,
     "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[4, 2, 3]"),
    (lambda: lnorm.layer_norm(X, []), ValueError, "Expected normalized_shape to be at least 1-dimensional"),
    (lambda: lnorm.layer_norm(X), TypeError, "normalized_shape: expected an integer or a sequence of integers"),
    (lambda: lnorm.layer_norm(X, 3.0), TypeError, "normalized_shape: expected an integer or a sequence of integers"),
    (lambda: lnorm.layer_norm(X, "3"), TypeError, "normalized_shape: expected integers, got ('3',)"),
    (lambda: lnorm.layer_norm(X, [None]), TypeError, "normalized_shape: expected integers, got"),
    (lambda: lnorm.layer_norm(X, 2**70), ValueError, "normalized_shape: expected an integer below 2^63"),
    (lambda: lnorm.layer_norm(X, [1] * 17), ValueError, "normalized_shape: expected at most 16 integers, got 17"),
    (lambda: lnorm.layer_norm(X, 3, axes=2), ValueError, "normalized_shape, axes: expected one of them, got both"),
    (lambda: lnorm.layer_norm(X, axes=3), ValueError, "axes: expected axes from -3 to 2, got 3"),
    (lambda: lnorm.layer_norm(X, axes=(0, 0)), ValueError, "axes: expected each axis once, got 0 again"),
    (lambda: lnorm.layer_norm(X, axes=3, return_stats=True), ValueError, "axes: expected axes from -3 to 2, got 3"),
    (lambda: lnorm.layer_norm(X, 3, np.ones(2, np.float32)), ValueError,
     "Expected weight to be of same shape as normalized_shape, but got weight of shape [2]"),
    (lambda: lnorm.layer_norm(X, 3, None, np.ones((1, 3))), ValueError,
     "Expected bias to be of same shape as normalized_shape, but got bias of shape [1, 3]"),
    (lambda: lnorm.layer_norm(X, 3, np.ones(3, int)), TypeError, "weight: expected elements of float64"),
    (lambda: lnorm.layer_norm(X, 3, eps=-1.0), ValueError, "eps: expected a finite number of at least 0, got -1"),
    (lambda: lnorm.layer_norm(X, 3, eps=float("nan")), ValueError,
     "eps: expected a finite number of at least 0, got nan"),
    (lambda: lnorm.layer_norm(X, 3, eps="tiny"), TypeError, "eps: expected a number, got 'tiny'"),
    (lambda: lnorm.layer_norm(X, 3, threads=-1), ValueError, "threads: expected 0 to 4096, got -1"),
    (lambda: lnorm.layer_norm(X, 3, threads=0.5), TypeError, "threads: expected an integer, got 0.5"),
    (lambda: lnorm.layer_norm(X, 3, out=np.empty((4, 2, 2), np.float32)), ValueError,
     "y: expected the shape of x, [4, 2, 3], got [4, 2, 2]"),
    (lambda: lnorm.layer_norm(X, 3, out=np.broadcast_to(np.float32(0), X.shape)), ValueError, "can only be read"),
    (lambda: lnorm.layer_norm(), TypeError, "layer_norm() missing required argument 'input'"),
    (lambda: lnorm.layer_norm(X, 3, None, None, 1e-5, 1), TypeError, "takes at most 5 positional arguments (6 given)"),
    (lambda: lnorm.layer_norm(X, 3, normalized_shape=3), TypeError, "multiple values for argument 'normalized_shape'"),
    (lambda: lnorm.layer_norm(X, 3, epsilon=1), TypeError, "unexpected keyword argument 'epsilon'"),
    (lambda: lnorm.layer_norm(np.float64(1), 1), ValueError, "expected input with shape [*, 1]"),
    (lambda: lnorm.group_norm(X, 3), ValueError,
     "Expected number of channels in input to be divisible by num_groups, but got input of shape [4, 2, 3]"),
    (lambda: lnorm.group_norm(X, 0), ValueError, "Expected num groups to be greater than 0, got 0"),
    (lambda: lnorm.group_norm(np.ones(3), 1), ValueError, "Expected at least 2 dimensions for input tensor"),
    (lambda: lnorm.batch_norm(X), ValueError, "running_mean, running_var: expected both"),
    (lambda: lnorm.batch_norm(X, np.zeros(3), np.ones(3)), ValueError, "mean: expected one element for each"),
    (lambda: lnorm.batch_norm(X, np.zeros(2), np.ones(2), training=True, momentum=2.0), ValueError,
     "momentum: expected 0 to 1, got 2"),
    (lambda: lnorm.layer_norm_backward(X[0], X, 3), ValueError, "dy: expected the shape of x, [4, 2, 3], got [2, 3]"),
    (lambda: lnorm.layer_norm_backward(X, X, 3, mean=np.ones((4, 2, 1))), ValueError, "rstd: expected a tensor"),
    (lambda: lnorm.set_num_threads(0), ValueError, "threads: expected 1 to 4096, got 0"),
    (lambda: lnorm.verify(X, X, 2), ValueError, "normalized_shape: expected the trailing extents of x"),
    (lambda: lnorm.verify(X, X[0], 3), ValueError, "y: expected the shape of x, [4, 2, 3], got [2, 3]"),
    (lambda: lnorm.verify(X, X.astype(int), 3), TypeError, "y: expected float64, float32, float16 or bfloat16, got"),
    (lambda: lnorm.LayerNorm(3, dtype=int), TypeError, "dtype: expected float64, float32, float16 or bfloat16, got"),
    (lambda: lnorm._core.rows_forward(0, 1), TypeError, "rows_forward() takes 11 positional arguments (2 given)"),
    (lambda: lnorm._core.rows_forward(2, 1, *[0] * 8, 1e-5), ValueError, "kind: expected LAYER_NORM or RMS_NORM"),
    (lambda: lnorm._core.rows_forward(0, 4, *[0] * 8, 1e-5), ValueError, "dtype: expected F64, F32, F16 or BF16"),
    (lambda: lnorm._core.rows_forward(0, 1, *[0] * 6, 1, 1, 1e-5), ValueError, "invalid argument"),
    (lambda: lnorm._core.execute(9, 0, x=X, y=X), ValueError, "kind: expected 0 to 4"),
    (lambda: lnorm._core.execute(0, 2**40, x=X, y=X), ValueError, "pass: expected 0 to 3"),
    (lambda: lnorm._core.execute(0, 0, x=(0, 1, (3,))), TypeError, "x: expected (address, dtype, shape, strides)"),
    (lambda: lnorm._core.execute(0, 0, x=(0, 1, (3,), (1, 1))), ValueError, "x: expected 1 strides, got 2"),
    (lambda: lnorm._core.execute(0, 0, x=(0, 7, (3,), None)), ValueError, "x: expected dtype F64, F32, F16 or BF16"),
    (lambda: lnorm._core.execute(0, 0, x=(0, 1, (3,), None), y=(8, 1, (3,), None)), ValueError, "x:"),
])
def test_refused(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_overlap_is_refused():
    x = np.ones(20, np.float32)
    with pytest.raises(ValueError, match="overlap"):
        lnorm.layer_norm(x[:10], 10, out=x[5:15])


def test_overlap_of_strided_arrays_is_refused():
    """Where elements of the output are elements of an input, not where they lie between them."""
    both = np.arange(32, dtype=np.float32).reshape(4, 8)
    for x, out in [(both[:, :6], both[:, 1:7]), (both[:, ::2], both[:, 6::-2]), (both[::2, :6], both[1:3, :6])]:
        before = both.copy()
        with pytest.raises(ValueError, match="^y: expected memory of its own .* but it overlaps x$"):
            lnorm.layer_norm(x, x.shape[1], out=out)
        assert np.array_equal(both, before)
    with pytest.raises(ValueError, match="overlaps weight$"):
        lnorm.layer_norm(np.ones((4, 4), np.float32), 4, both[0, ::2], out=both[:, :4])
    expected = lnorm.layer_norm(both[:, ::2], 4)
    assert np.array_equal(lnorm.layer_norm(both[:, ::2], 4, out=both[:, 1::2]), expected)
    assert np.array_equal(lnorm.layer_norm(both[:, ::2], 4, out=both[:, ::2]), expected)
    assert np.array_equal(both[:, ::2], expected)
