"""The functions, for everything that the short way in _core does not take. Each turns its arguments into one call of
execute; shapes, types and values are checked there."""
from . import _core
from ._arrays import as_array, check_apart, empty, empty_like, extents
from ._call import execute

_STATISTIC = {_core.F64: _core.F64, _core.F32: _core.F32, _core.F16: _core.F32, _core.BF16: _core.F32}


def _forward(kind, input, weight, bias, out, return_stats, statistics_shape, **arguments):
    """y, or y and the statistics where they are wanted. statistics_shape: a function of input's shape."""
    input = as_array(input, "input")
    shape, element = _core.describe(input)
    y = empty(input, shape, element) if out is None else out
    mean = rstd = None
    if return_stats:
        groups = statistics_shape(shape)
        mean = None if kind == _core.RMS_NORM else empty(input, groups, _STATISTIC[element])
        rstd = empty(input, groups, _STATISTIC[element])
    arguments = {"mean": mean, "rstd": rstd, **arguments}
    weight, bias = as_array(weight, "weight"), as_array(bias, "bias")
    if out is not None:
        check_apart(out, {"x": input, "weight": weight, "bias": bias, **arguments})
    execute(kind, _core.FORWARD, x=input, weight=weight, bias=bias, y=y, **arguments)
    if not return_stats:
        return y
    return (y, rstd) if kind == _core.RMS_NORM else (y, mean, rstd)


def _backward(kind, dy, input, weight, bias, *, mean=None, rstd=None, **arguments):
    dy, input = as_array(dy, "dy"), as_array(input, "input")
    weight, bias = as_array(weight, "weight"), as_array(bias, "bias")
    dx, dweight, dbias = empty_like(input), empty_like(weight, kind=input), empty_like(bias, kind=input)
    saved = {}
    if mean is not None or rstd is not None:
        saved = {"statistics": _core.SAVED, "mean": mean, "rstd": rstd}
    arguments = {**saved, **arguments}
    execute(kind, _core.BACKWARD, dy=dy, x=input, weight=weight, dx=dx, dweight=dweight, dbias=dbias, **arguments)
    return dx, dweight, dbias


def _double_backward(kind, v, dy, input, weight, **arguments):
    v, dy = as_array(v, "v"), as_array(dy, "dy")
    input, weight = as_array(input, "input"), as_array(weight, "weight")
    ddy, dx, dweight = empty_like(input), empty_like(input), empty_like(weight, kind=input)
    execute(kind, _core.DOUBLE_BACKWARD, v=v, dy=dy, x=input, weight=weight, ddy=ddy, dx=dx, dweight=dweight,
            **arguments)
    return ddy, dx, dweight


# ---- Layer norm and RMS norm, over the trailing axes or any; what _core has, too, is documented there ----------------


def _one_in_place_of(normalized_shape, axes):
    """The shape of the statistics: extents of 1 where input is normalised over."""

    def statistics_shape(shape):
        ndim = len(shape)
        if axes is not None:
            over = {axis % ndim if ndim else 0 for axis in extents(axes)}
        else:
            over = range(ndim - len(extents(normalized_shape)), ndim)
        return tuple(1 if i in over else extent for i, extent in enumerate(shape))

    return statistics_shape


def _check_axes(normalized_shape, axes):
    if normalized_shape is None and axes is None:
        raise TypeError("normalized_shape: expected an integer or a sequence of integers (or axes), got None")


def layer_norm(input, normalized_shape=None, weight=None, bias=None, eps=1e-5, *, out=None, return_stats=False,
               axes=None, threads=None, fast=False, affine_broadcast=False):
    _check_axes(normalized_shape, axes)
    return _forward(_core.LAYER_NORM, input, weight, bias, out, return_stats, _one_in_place_of(normalized_shape, axes),
                    normalized_shape=normalized_shape, axes=axes, eps=eps, threads=threads, fast=fast,
                    affine_broadcast=affine_broadcast)


def rms_norm(input, normalized_shape=None, weight=None, eps=None, *, out=None, return_stats=False, axes=None,
             threads=None, fast=False, affine_broadcast=False):
    _check_axes(normalized_shape, axes)
    return _forward(_core.RMS_NORM, input, weight, None, out, return_stats, _one_in_place_of(normalized_shape, axes),
                    normalized_shape=normalized_shape, axes=axes, eps=eps, threads=threads, fast=fast,
                    affine_broadcast=affine_broadcast)


def layer_norm_backward(dy, input, normalized_shape=None, weight=None, bias=None, eps=1e-5, *, mean=None, rstd=None,
                        axes=None, threads=None, fast=False, affine_broadcast=False):
    _check_axes(normalized_shape, axes)
    return _backward(_core.LAYER_NORM, dy, input, weight, bias, mean=mean, rstd=rstd, normalized_shape=normalized_shape,
                     axes=axes, eps=eps, threads=threads, fast=fast, affine_broadcast=affine_broadcast)


def rms_norm_backward(dy, input, normalized_shape=None, weight=None, eps=None, *, rstd=None, axes=None, threads=None,
                      fast=False, affine_broadcast=False):
    _check_axes(normalized_shape, axes)
    return _backward(_core.RMS_NORM, dy, input, weight, None, rstd=rstd, normalized_shape=normalized_shape, axes=axes,
                     eps=eps, threads=threads, fast=fast, affine_broadcast=affine_broadcast)[:2]


def layer_norm_double_backward(v, dy, input, normalized_shape=None, weight=None, eps=1e-5, *, axes=None, threads=None,
                               affine_broadcast=False):
    """The gradients of sum(v * dx), dx that of layer_norm_backward, by dy, input and weight: (ddy, dx, dweight).

    >>> x, dy, v = np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])
    >>> ddy, dx, dweight = lnorm.layer_norm_double_backward(v, dy, x, 3, np.ones(3), 0.0)
    >>> ddy.round(4)
    array([[-0.3436,  0.5154, -0.1718]])
    """
    _check_axes(normalized_shape, axes)
    return _double_backward(_core.LAYER_NORM, v, dy, input, weight, normalized_shape=normalized_shape, axes=axes,
                            eps=eps, threads=threads, fast=False, affine_broadcast=affine_broadcast)


def rms_norm_double_backward(v, dy, input, normalized_shape=None, weight=None, eps=None, *, axes=None, threads=None,
                             affine_broadcast=False):
    """The gradients of sum(v * dx), dx that of rms_norm_backward, by dy, input and weight: (ddy, dx, dweight).

    >>> ddy, dx, dweight = lnorm.rms_norm_double_backward(np.ones((1, 2)), np.ones((1, 2)), np.array([[3.0, 4.0]]), 2)
    >>> ddy.shape, dweight
    ((1, 2), None)
    """
    _check_axes(normalized_shape, axes)
    return _double_backward(_core.RMS_NORM, v, dy, input, weight, normalized_shape=normalized_shape, axes=axes, eps=eps,
                            threads=threads, fast=False, affine_broadcast=affine_broadcast)


# ---- Group, instance and batch norm: input is [N, C, *] --------------------------------------------------------------


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, *, out=None, return_stats=False, threads=None,
               fast=False):
    """Group norm of input [N, C, *]: C/num_groups channels of a sample and all of * share mean and variance.

    weight, bias: [C] or None. return_stats: return (y, mean, rstd), the statistics [N, num_groups]. The rest as of
    layer_norm.

    >>> x = np.arange(8.0).reshape(1, 4, 2)
    >>> lnorm.group_norm(x, 2, eps=0.0).round(4)[0, :2]
    array([[-1.3416, -0.4472],
           [ 0.4472,  1.3416]])
    """
    return _forward(_core.GROUP_NORM, input, weight, bias, out, return_stats, lambda shape: (*shape[:1], num_groups),
                    groups=num_groups, eps=eps, threads=threads, fast=fast)


def group_norm_backward(dy, input, num_groups, weight=None, bias=None, eps=1e-5, *, mean=None, rstd=None, threads=None,
                        fast=False):
    """The gradients of group_norm: (dx, dweight, dbias), dweight and dbias None where weight and bias are.

    >>> x = np.arange(8.0).reshape(1, 4, 2)
    >>> lnorm.group_norm_backward(np.ones_like(x), x, 2, bias=np.zeros(4))[2]
    array([2., 2., 2., 2.])
    """
    return _backward(_core.GROUP_NORM, dy, input, weight, bias, mean=mean, rstd=rstd, groups=num_groups, eps=eps,
                     threads=threads, fast=fast)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5, *, out=None, return_stats=False, threads=None, fast=False):
    """Instance norm of input [N, C, *]: all of * of one channel of one sample share mean and variance.

    weight, bias, running_mean, running_var: [C] or None. use_input_stats=False normalises by the running statistics;
    otherwise these are updated where given, by the mean over the samples of their means and unbiased variances.
    return_stats: return (y, mean, rstd), the statistics [N, C]. The rest as of layer_norm.

    >>> lnorm.instance_norm(np.array([[[1.0, 3.0], [5.0, 5.0]]]), eps=0.0)
    array([[[-1.,  1.],
            [ 0.,  0.]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps, out=out, threads=threads, fast=fast)
    if running_mean is not None or running_var is not None:
        input = as_array(input, "input")
        _update_by_samples(input, running_mean, running_var, momentum)
    return _forward(_core.INSTANCE_NORM, input, weight, bias, out, return_stats, lambda shape: shape[:2], eps=eps,
                    threads=threads, fast=fast)


def _update_by_samples(input, running_mean, running_var, momentum):
    """A sample's instance statistics are the batch statistics of that sample alone."""
    samples = _core.describe(input)[0][0]
    kept = []
    for running in (running_mean, running_var):
        each = None
        if running is not None:
            each = empty(running, (samples, *running.shape), _core.F64)
            each[...] = running
        kept.append((running, each))
    for n in range(samples):
        means, variances = (None if each is None else each[n] for _, each in kept)
        execute(_core.BATCH_NORM, _core.FORWARD, x=input[n : n + 1], running_mean=means, running_var=variances,
                momentum=momentum, eps=None, threads=None, fast=False)
    for running, each in kept:
        if running is not None and samples:
            running[...] = each.mean(0)


def instance_norm_backward(dy, input, weight=None, bias=None, eps=1e-5, *, mean=None, rstd=None, threads=None,
                           fast=False):
    """The gradients of instance_norm: (dx, dweight, dbias), dweight and dbias None where weight and bias are.

    >>> x = np.array([[[1.0, 3.0], [5.0, 5.0]]])
    >>> lnorm.instance_norm_backward(x, x, bias=np.zeros(2))[2]
    array([ 4., 10.])
    """
    return _backward(_core.INSTANCE_NORM, dy, input, weight, bias, mean=mean, rstd=rstd, eps=eps, threads=threads,
                     fast=fast)


def _running(running_mean, running_var):
    if running_mean is None or running_var is None:
        raise ValueError("running_mean, running_var: expected both where the input's own statistics are not used, got "
                         "None")
    return {"statistics": _core.CONSTANT, "mean": running_mean, "variance": running_var, "rstd": None}


def batch_norm(input, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1,
               eps=1e-5, *, out=None, return_stats=False, threads=None, fast=False):
    """Batch norm of input [N, C, *]: a channel of all samples, N and all of *, shares mean and variance.

    weight, bias, running_mean, running_var: [C] or None. training=False normalises by the running statistics, which
    must be given; True by the input's own, and updates the running ones where given: (1 - momentum) * old +
    momentum * new, with the unbiased variance. return_stats (training only): return (y, mean, rstd), the statistics
    [C]. The rest as of layer_norm.

    >>> x = np.array([[1.0, 4.0], [3.0, 4.0]])
    >>> lnorm.batch_norm(x, training=True, eps=0.0)
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> lnorm.batch_norm(x, running_mean=np.zeros(2), running_var=np.ones(2), eps=0.0)
    array([[1., 4.],
           [3., 4.]])
    """
    if training:
        statistics = {"running_mean": running_mean, "running_var": running_var, "momentum": momentum}
    else:
        statistics = _running(running_mean, running_var)
        if return_stats:
            raise ValueError("return_stats: expected False where the running statistics are used, got True")
    return _forward(_core.BATCH_NORM, input, weight, bias, out, return_stats, lambda shape: shape[1:2], eps=eps,
                    threads=threads, fast=fast, **statistics)


def batch_norm_backward(dy, input, running_mean=None, running_var=None, weight=None, bias=None, training=False,
                        eps=1e-5, *, mean=None, rstd=None, threads=None, fast=False):
    """The gradients of batch_norm: (dx, dweight, dbias), dweight and dbias None where weight and bias are.

    training as in batch_norm: False takes the running statistics as constants.

    >>> x = np.array([[1.0, 4.0], [3.0, 4.0]])
    >>> lnorm.batch_norm_backward(x, x, weight=np.ones(2), training=True, eps=0.0)[1]
    array([2., 0.])
    """
    statistics = {"mean": mean, "rstd": rstd} if training else _running(running_mean, running_var)
    return _backward(_core.BATCH_NORM, dy, input, weight, bias, eps=eps, threads=threads, fast=fast, **statistics)
