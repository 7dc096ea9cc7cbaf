"""torch.nn.functional's norms, with its arguments, by lnorm where lnorm can: on the CPU, in floating point. Everything
else, what PyTorch refuses included, is handed to PyTorch, so its errors are PyTorch's own."""
import numbers
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch.overrides import handle_torch_function, has_torch_function_variadic

from .._core import eager_norm
from . import _compute
from ._arithmetic import is_fast
from ._compute import PLAIN_TYPES
from ._eager import all_plain, records
from ._operators import Norm

_LAYER, _RMS, _GROUP, _BATCH = (_compute.KINDS[kind] for kind in ("layer", "rms", "group", "batch"))

def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-5, fast: Optional[bool] = None) -> Tensor:
    """torch.nn.functional.layer_norm. fast: whether in fast arithmetic; None: as set_arithmetic says.

    >>> layer_norm(torch.tensor([[1., 2., 3.]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    if not torch.jit.is_scripting():
        if has_torch_function_variadic(input, weight, bias):
            return handle_torch_function(layer_norm, (input, weight, bias), input, normalized_shape, weight=weight,
                                         bias=bias, eps=eps, fast=fast)
        if not is_dynamo_compiling():
            y = eager_norm(_LAYER, normalized_shape, eps, is_fast(fast), None, input, weight, bias)
            if y is not None:
                return y
        if _is_foreign(input, eps):
            return F.layer_norm(input, normalized_shape, weight, bias, eps)
    if not (_takes(input, [weight, bias], False) and _is_tail(input, normalized_shape, weight, bias)):
        return F.layer_norm(input, normalized_shape, weight, bias, eps)
    return _norm(input, weight, bias, "layer", len(normalized_shape), eps, fast)


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
             eps: Optional[float] = None, fast: Optional[bool] = None) -> Tensor:
    """torch.nn.functional.rms_norm. eps None: 2^-23, for float64 2^-52.

    >>> rms_norm(torch.tensor([[1., 7.]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    if not torch.jit.is_scripting():
        if has_torch_function_variadic(input, weight):
            if getattr(input, "is_nested", False):  # these know the function by its name, and not its argument `fast`
                return F.rms_norm(input, normalized_shape, weight, eps)
            return handle_torch_function(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps,
                                         fast=fast)
        if not is_dynamo_compiling():
            y = eager_norm(_RMS, normalized_shape, eps, is_fast(fast), None, input, weight, None)
            if y is not None:
                return y
        if _is_foreign(input, 0.0 if eps is None else eps):
            return F.rms_norm(input, normalized_shape, weight, eps)
    if not (_takes(input, [weight], True) and _is_tail(input, normalized_shape, weight, None)):
        return F.rms_norm(input, normalized_shape, weight, eps)
    return _norm(input, weight, None, "rms", len(normalized_shape), eps, fast)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5, fast: Optional[bool] = None) -> Tensor:
    """torch.nn.functional.group_norm.

    >>> group_norm(torch.tensor([[[1., 2.], [3., 5.]]]), 2)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not torch.jit.is_scripting():
        if has_torch_function_variadic(input, weight, bias):
            return handle_torch_function(group_norm, (input, weight, bias), input, num_groups, weight=weight,
                                         bias=bias, eps=eps, fast=fast)
        if not is_dynamo_compiling():
            y = eager_norm(_GROUP, num_groups, eps, is_fast(fast), None, input, weight, bias)
            if y is not None:
                return y
        if _is_foreign(input, eps):
            return F.group_norm(input, num_groups, weight, bias, eps)
    if not (_takes(input, [weight, bias], False) and _has_groups(input, num_groups, weight, bias)):
        return F.group_norm(input, num_groups, weight, bias, eps)
    return _norm(input, weight, bias, "group", num_groups, eps, fast)


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None,
                  weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5, fast: Optional[bool] = None) -> Tensor:
    """torch.nn.functional.instance_norm.

    >>> instance_norm(torch.tensor([[[1., 3.], [2., 8.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not torch.jit.is_scripting():
        if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
            return handle_torch_function(instance_norm, (input, running_mean, running_var, weight, bias), input,
                                         running_mean=running_mean, running_var=running_var, weight=weight, bias=bias,
                                         use_input_stats=use_input_stats, momentum=momentum, eps=eps, fast=fast)
        if not is_dynamo_compiling():
            y = _eager_instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, eps, fast)
            if y is not None:
                return y
        if _is_foreign(input, eps, momentum):
            return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    if not (_takes(input, [weight, bias, running_mean, running_var], False) and input.dim() >= 3
            and _has_statistics(input, running_mean, running_var, use_input_stats, momentum)
            and (not use_input_stats or _positions(input) != 1)
            and _has_groups(input, input.size(1), weight, bias)):
        return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    if not use_input_stats:
        return _norm(input, weight, bias, "batch", 0, eps, fast, running_mean, running_var)
    y = _norm(input, weight, bias, "group", input.size(1), eps, fast)
    if running_mean is not None and running_var is not None and input.size(0) > 0:
        # The mean of what each sample by itself would make of them.
        samples, channels = input.size(0), input.size(1)
        found = _running_statistics(input.detach().reshape(1, samples * channels, -1),
                                    running_mean.detach().double().repeat(samples),
                                    running_var.detach().double().repeat(samples), momentum)
        _overwrite(running_mean, found[0].view(samples, channels).mean(0))
        _overwrite(running_var, found[1].view(samples, channels).mean(0))
    return y


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5, fast: Optional[bool] = None) -> Tensor:
    """torch.nn.functional.batch_norm.

    >>> batch_norm(torch.tensor([[1., 2.], [3., 8.]]), None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    if not torch.jit.is_scripting():
        if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
            return handle_torch_function(batch_norm, (input, running_mean, running_var, weight, bias), input,
                                         running_mean, running_var, weight=weight, bias=bias, training=training,
                                         momentum=momentum, eps=eps, fast=fast)
        if not is_dynamo_compiling() and momentum is not None and (training or running_mean is not None):
            updating = momentum if training and running_mean is not None else None
            y = eager_norm(_BATCH, None, eps, is_fast(fast), updating, input, weight, bias, running_mean, running_var)
            if y is not None:
                return y
        if _is_foreign(input, eps, momentum):
            return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not (_takes(input, [weight, bias, running_mean, running_var], False) and input.dim() >= 2
            and _has_statistics(input, running_mean, running_var, training, momentum)
            and _has_channels(input, weight, bias) and not (training and input.numel() == input.size(1))
            and not (eps < 0 or (training and eps == 0))):
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return _norm(input, weight, bias, "batch", 0, eps, fast, running_mean, running_var)
    if running_mean is None or running_var is None:
        return _norm(input, weight, bias, "batch", 0, eps, fast)
    if not torch.jit.is_scripting():
        if not is_dynamo_compiling() and all_plain(input, weight, bias, running_mean, running_var):
            return _batch_norm_at_once(input, running_mean, running_var, weight, bias, momentum, eps, fast)
    y = _norm(input, weight, bias, "batch", 0, eps, fast)
    found = _running_statistics(input.detach(), running_mean.detach(), running_var.detach(), momentum)
    _overwrite(running_mean, found[0])
    _overwrite(running_var, found[1])
    return y


def _is_foreign(input, *numbers_given):
    """DTensor among it, which is torch.distributed's and has no sharding rule for operators that are not PyTorch's."""
    return not isinstance(input, Tensor) or type(input).__name__ == "DTensor" or not all(
        type(number) is float or isinstance(number, (numbers.Real, torch.SymFloat)) for number in numbers_given)


def _is_no_integer(number):
    """It equals one, perhaps, but PyTorch refuses it where it wants integers."""
    return isinstance(number, (bool, float))


def _eager_instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, eps, fast):
    """eager_norm for it: group norm of single channels, or batch norm by given statistics. None: the same."""
    if type(input) not in PLAIN_TYPES or input.dim() < 3:
        return None
    if not use_input_stats and running_mean is not None:
        return eager_norm(_BATCH, None, eps, is_fast(fast), None, input, weight, bias, running_mean, running_var)
    if use_input_stats and running_mean is running_var is None and input.shape[2:].numel() != 1:
        return eager_norm(_GROUP, input.size(1), eps, is_fast(fast), None, input, weight, bias)
    return None


def _takes(input: Tensor, parameters: List[Optional[Tensor]], mixed: bool) -> bool:
    """Device and types are lnorm's: all on the CPU; parameters of the input's type, or all f32 beside 16-bit input.
    (rms_norm takes any mix.)"""
    narrow = input.dtype == torch.bfloat16 or input.dtype == torch.float16
    if not (narrow or input.dtype == torch.float32 or input.dtype == torch.float64):
        return False
    if input.device.type != "cpu" or input.layout != torch.strided or input.is_nested:
        return False
    same, single = True, True
    for parameter in parameters:
        if parameter is not None:
            if (parameter.device.type != "cpu" or parameter.layout != torch.strided
                    or not parameter.is_floating_point()):
                return False
            same, single = same and parameter.dtype == input.dtype, single and parameter.dtype == torch.float32
    return same or (narrow and single) or mixed


def _is_tail(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor]) -> bool:
    if not torch.jit.is_scripting():
        if not isinstance(normalized_shape, (tuple, list)) or any(map(_is_no_integer, normalized_shape)):
            return False
    count = len(normalized_shape)
    if count < 1 or count > input.dim():
        return False
    shape = list(normalized_shape)
    return (list(input.shape[input.dim() - count:]) == shape and (weight is None or list(weight.shape) == shape)
            and (bias is None or list(bias.shape) == shape))


def _has_groups(input: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor]) -> bool:
    if not torch.jit.is_scripting():
        if _is_no_integer(num_groups):
            return False
    if input.dim() < 2 or num_groups < 1 or input.size(1) % num_groups != 0:
        return False
    if input.size(0) * input.size(1) // num_groups * _positions(input) == 1:
        return False
    return _has_channels(input, weight, bias)


def _has_channels(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor]) -> bool:
    channels = [input.size(1)]
    return (weight is None or list(weight.shape) == channels) and (bias is None or list(bias.shape) == channels)


def _positions(input: Tensor) -> int:
    count = 1
    for axis in range(2, input.dim()):
        count *= input.size(axis)
    return count


def _has_statistics(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], update: bool,
                    momentum: float) -> bool:
    """There are statistics to use, or to update where there are any; with momentum=1.5 only PyTorch does that. It
    refuses to give gradients by them."""
    if running_mean is None or running_var is None:
        return update and running_mean is None and running_var is None
    if torch.is_grad_enabled() and (running_mean.requires_grad or running_var.requires_grad):
        return False
    channels = [input.size(1)]
    return (list(running_mean.shape) == channels and list(running_var.shape) == channels
            and not (update and not 0 <= momentum <= 1))


def _running_statistics(input: Tensor, running_mean: Tensor, running_var: Tensor,
                        momentum: float) -> Tuple[Tensor, Tensor]:
    return torch.ops.lnorm.running_statistics(input, running_mean, running_var, momentum)


def _overwrite(running: Tensor, value: Tensor) -> None:
    with torch.no_grad():
        running.copy_(value)


def _batch_norm_at_once(input, running_mean, running_var, weight, bias, momentum, eps, fast):
    """Eager training: the statistics are updated in the pass over the input that they come from."""
    found = tuple(running.detach().clone() for running in (running_mean, running_var))
    arguments = input, weight, bias, "batch", 0, eps, fast, None, None, (*found, momentum)
    y = Norm.record(None, *arguments) if records(input, weight, bias) else _compute.forward(*arguments)
    _overwrite(running_mean, found[0])
    _overwrite(running_var, found[1])
    return y


def _norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], kind: str, extent: int,
          eps: Optional[float], fast: Optional[bool], mean: Optional[Tensor] = None,
          variance: Optional[Tensor] = None) -> Tensor:
    if not torch.jit.is_scripting():
        if not is_dynamo_compiling() and all_plain(input, weight, bias, mean, variance):
            if records(input, weight, bias):
                return Norm.record(None, input, weight, bias, kind, extent, eps, fast, mean, variance)
            return _compute.forward(input, weight, bias, kind, extent, eps, fast, mean, variance)
    return torch.ops.lnorm.norm(input, weight, bias, kind, extent, eps, fast, mean, variance)
