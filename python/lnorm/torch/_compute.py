"""Tensors to lnorm's C functions. What comes in here is an ordinary CPU tensor, with nothing to record.

A norm is named by `kind` and `extent`: "layer" and "rms" go over the last `extent` axes, "group" makes `extent` groups
of the channels, axis 1, "batch" goes over all axes but the channels, whatever `extent`. Where mean and variance are
given, by channel, batch norm uses those in place of x's own."""
import torch

from .. import _core
from ._arithmetic import is_fast
from ._openmp import PATIENCE, addresses

KINDS = {"layer": _core.LAYER_NORM, "rms": _core.RMS_NORM, "group": _core.GROUP_NORM,
         "batch": _core.BATCH_NORM}
KIND_OF = {code: kind for kind, code in KINDS.items()}
DTYPES = {torch.float64: _core.F64, torch.float32: _core.F32, torch.float16: _core.F16, torch.bfloat16: _core.BF16}

# The library's LNORM_MAX_NDIM; PyTorch's tensors have up to 64.
MOST_AXES = 16

# Types that are no more than a tensor. (torch.nn.Buffer makes objects of the first.)
PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)

# How many threads work at a norm: as many as at PyTorch's own operators. (No bit depends on it.)
threads = torch.get_num_threads
_core.set_openmp(*addresses(), PATIENCE)

# Inductor's way to a new tensor, which goes past the dispatcher and takes half the time of empty_like.
try:
    from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided
except ImportError:
    def empty_strided(size, stride, dtype):
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")

# From here on _core.tensor_norm knows PyTorch's tensors; where PyTorch is too old for that it always says None.
# (The lambda, as `threads` may be set to something else.)
if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    _core.set_tensors(PLAIN_TYPES, torch.Tensor.__dlpack_c_exchange_api__, empty_strided,
                      tuple(sorted(DTYPES, key=DTYPES.get)), lambda: threads(),
                      lambda *updated: torch.autograd.graph.increment_version(updated))


def checked_eps(kind, eps, dtype):
    """eps as a number; None is the default of PyTorch's rms_norm, which is lnorm's too."""
    if eps is None:
        return (2.0 ** -52 if dtype == torch.float64 else 2.0 ** -23) if kind == "rms" else 1e-5
    if not 0 <= eps < float("inf"):
        raise RuntimeError(f"eps: expected a finite number of at least 0, got {eps}")
    return eps


def empty_like(x, kind):
    """An output: dense, for norms of channels in channels_last order where x is, as PyTorch's."""
    if kind in ("group", "batch") and not x.is_contiguous():
        for order, ndim in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
            if x.dim() == ndim and x.is_contiguous(memory_format=order):
                return torch.empty_like(x, memory_format=order)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def forward(x, weight, bias, kind, extent, eps, fast, mean=None, variance=None, running=None):
    """y, for operands of any strides and of any of the four element types.

    running: (running_mean, running_var, momentum), of which the tensors are updated in the same pass over x."""
    eps = checked_eps(kind, eps, x.dtype)
    shape = _shape(x, kind, extent)
    *statistics, momentum = running or (mean, variance, None)
    y = _core.tensor_norm((KINDS[kind], shape, eps, is_fast(fast), momentum), x, weight, bias, *statistics)
    if y is None:
        y = empty_like(x, kind)
        _execute(kind, _core.FORWARD, shape, eps, fast, running, x=x, weight=weight, bias=bias, y=y, mean=mean,
                 variance=variance)
    return y


def running_statistics(x, running_mean, running_var, momentum):
    """What batch norm's running statistics are after x."""
    updated = _dense_copy(running_mean), _dense_copy(running_var)
    _execute("batch", _core.FORWARD, None, 1.0, False, (*updated, momentum), x=x)
    return updated


def _dense_copy(tensor):
    return tensor.clone(memory_format=torch.contiguous_format)


def backward(dy, x, weight, bias, kind, extent, eps, fast, mask, mean=None, variance=None):
    """(dx, dweight, dbias); one that `mask` does not ask for has no elements. Of bias only shape and type matter."""
    return tuple(x.new_empty(0) if gradient is None else gradient
                 for gradient in gradients(dy, x, weight, bias, kind, extent, eps, fast, tuple(mask), mean, variance))


def gradients(dy, x, weight, bias, kind, extent, eps, fast, mask, mean=None, variance=None):
    """The same with None for what `mask` does not ask for."""
    eps, fast = checked_eps(kind, eps, x.dtype), is_fast(fast)
    shape = _shape(x, kind, extent)
    found = _core.tensor_norm_backward((x, weight, bias, mean, variance), (KINDS[kind], shape, eps, fast, None), dy,
                                       mask)
    if found is not None:
        return found
    dx = empty_like(x, kind) if mask[0] else None
    dweight = torch.empty_like(weight, memory_format=torch.contiguous_format) if mask[1] else None
    dbias = torch.empty_like(bias, memory_format=torch.contiguous_format) if mask[2] else None
    _execute(kind, _core.BACKWARD, shape, eps, fast, x=x, weight=weight, dy=dy, dx=dx, dweight=dweight, dbias=dbias,
             mean=mean, variance=variance)
    return dx, dweight, dbias


def _execute(kind, what, shape, eps, fast, running=None, **operands):
    if operands["x"].dim() > MOST_AXES:
        shape, operands = _with_few_axes(kind, shape, operands)
    options = {"groups": shape} if kind == "group" else {"normalized_shape": shape}
    if running is not None:
        operands["running_mean"], operands["running_var"], options["momentum"] = running
    if operands.get("mean") is not None:
        options["statistics"] = _core.CONSTANT
    _call(_core.execute_openmp, KINDS[kind], what, eps=eps, arithmetic=_core.FAST if is_fast(fast) else _core.ACCURATE,
          threads=threads(), **options, **{name: _description(name, tensor) for name, tensor in operands.items()})


def _with_few_axes(kind, shape, operands):
    """The same elements as rows and columns, or samples, channels and positions. Outputs are dense: views of them."""
    x = operands["x"]
    if kind in ("group", "batch"):
        few, rest = (*x.shape[:2], x.shape[2:].numel()), None
    else:
        few, rest = (x.shape[:x.dim() - len(shape)].numel(), shape.numel()), shape.numel()
        shape = (rest,)
    whole = {name: few for name in ("x", "y", "dy", "dx")}
    if rest is not None:
        whole.update({name: shape for name in ("weight", "bias", "dweight", "dbias")})
    return shape, {name: tensor if tensor is None or name not in whole else tensor.reshape(whole[name])
                   for name, tensor in operands.items()}


def _shape(x, kind, extent):
    """What a kind goes by: a number of groups, normalized_shape, or nothing."""
    if kind not in KINDS:
        raise RuntimeError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if kind in ("group", "batch"):
        return extent if kind == "group" else None
    if not 0 < extent <= x.dim():
        raise RuntimeError(f"extent: expected 1 to {x.dim()} axes, got {extent}")
    return x.shape[-extent:]


def _description(name, tensor):
    if tensor is None:
        return None
    if tensor.dtype not in DTYPES:
        raise RuntimeError(f"{name}: expected float64, float32, float16 or bfloat16, got {tensor.dtype}")
    return tensor.data_ptr(), DTYPES[tensor.dtype], tensor.shape, tensor.stride()


def _call(function, *arguments, **keywords):
    """The library's own words, as the exception that PyTorch's users expect."""
    try:
        function(*arguments, **keywords)
    except (ValueError, TypeError) as error:
        raise RuntimeError(str(error)) from None
