"""Tensors to lnorm's C functions. What comes in here is an ordinary CPU tensor, with nothing to record.

A norm is named by `kind` and `extent`: "layer" and "rms" go over the last `extent` axes, "group" makes `extent` groups
of the channels, axis 1."""
import torch

from .. import _core
from ._arithmetic import is_fast

KINDS = {"layer": _core.LAYER_NORM, "rms": _core.RMS_NORM, "group": _core.GROUP_NORM}
DTYPES = {torch.float64: _core.F64, torch.float32: _core.F32, torch.float16: _core.F16, torch.bfloat16: _core.BF16}

# Below so many elements the library uses the calling thread alone, so level 1, which is the shorter way, loses nothing.
ALONE_BELOW = 32768


def checked_eps(kind, eps, dtype):
    """eps as a number; None is the default of PyTorch's rms_norm, which is lnorm's too."""
    if eps is None:
        return (2.0 ** -52 if dtype == torch.float64 else 2.0 ** -23) if kind == "rms" else 1e-5
    if not 0 <= eps < float("inf"):
        raise RuntimeError(f"eps: expected a finite number of at least 0, got {eps}")
    return eps


def empty_like(x, kind):
    """An output: dense, for group norm in channels_last order where x is, as PyTorch's."""
    if kind == "group" and not x.is_contiguous():
        for order, ndim in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
            if x.dim() == ndim and x.is_contiguous(memory_format=order):
                return torch.empty_like(x, memory_format=order)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def forward(x, weight, bias, kind, extent, eps, fast):
    """y, for operands of any strides and of any of the four element types."""
    eps = checked_eps(kind, eps, x.dtype)
    y = empty_like(x, kind)
    if _is_rows(x, weight, bias, kind, fast) and _belongs(x, weight, extent) and _belongs(x, bias, extent):
        _rows_forward(x, y, weight, bias, kind, extent, eps)
    else:
        _execute(kind, _core.FORWARD, extent, eps, fast, x=x, weight=weight, bias=bias, y=y)
    return y


def backward(dy, x, weight, bias, kind, extent, eps, fast, mask):
    """(dx, dweight, dbias); one that `mask` does not ask for has no elements. Parameters that a call does not have
    have no gradient, either. Of bias only the shape and the type matter."""
    eps = checked_eps(kind, eps, x.dtype)
    dx = empty_like(x, kind) if mask[0] else None
    dweight = torch.empty_like(weight, memory_format=torch.contiguous_format) if mask[1] else None
    dbias = torch.empty_like(bias, memory_format=torch.contiguous_format) if mask[2] else None
    if _is_rows(x, weight, bias, kind, fast) and dy.is_contiguous() and dy.dtype == x.dtype and dy.shape == x.shape \
            and _belongs(x, weight, extent) and _belongs(x, bias, extent):
        cols = _cols(x, extent)
        _call(_core.rows_backward, KINDS[kind], DTYPES[x.dtype], dy.data_ptr(), x.data_ptr(), _address(weight),
              _address(dx), _address(dweight), _address(dbias), x.numel() // cols, cols, eps)
    else:
        _execute(kind, _core.BACKWARD, extent, eps, fast, x=x, weight=weight, dy=dy, dx=dx, dweight=dweight,
                 dbias=dbias)
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in (dx, dweight, dbias))


def _is_rows(x, weight, bias, kind, fast):
    dtype = x.dtype
    return (kind in ("layer", "rms") and 0 < x.numel() < ALONE_BELOW and not is_fast(fast) and dtype in DTYPES
            and x.is_contiguous()
            and (weight is None or (weight.dtype == dtype and weight.is_contiguous()))
            and (bias is None or (bias.dtype == dtype and bias.is_contiguous())))


def _belongs(x, parameter, extent):
    return parameter is None or (0 < extent <= x.dim() and parameter.shape == x.shape[-extent:])


def _cols(x, extent):
    return x.shape[-1] if extent == 1 else x.shape[-extent:].numel()


def _rows_forward(x, y, weight, bias, kind, extent, eps):
    cols = _cols(x, extent)
    _call(_core.rows_forward, KINDS[kind], DTYPES[x.dtype], x.data_ptr(), y.data_ptr(), _address(weight),
          _address(bias), 0, 0, x.numel() // cols, cols, eps)


def _execute(kind, what, extent, eps, fast, **operands):
    shape = {"groups": extent} if kind == "group" else {"normalized_shape": _normalized_shape(operands["x"], extent)}
    _call(_core.execute, _kind(kind), what, eps=eps, arithmetic=_core.FAST if is_fast(fast) else _core.ACCURATE,
          threads=torch.get_num_threads(), **shape,
          **{name: _description(name, tensor) for name, tensor in operands.items()})


def _kind(kind):
    if kind not in KINDS:
        raise RuntimeError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind]


def _normalized_shape(x, extent):
    if not 0 < extent <= x.dim():
        raise RuntimeError(f"extent: expected 1 to {x.dim()} axes, got {extent}")
    return x.shape[-extent:]


def _address(tensor):
    return 0 if tensor is None else tensor.data_ptr()


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
