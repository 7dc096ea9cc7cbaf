"""When the dispatcher has nothing to do.

A call through a Python operator costs more than a small norm. Where every operand is an ordinary CPU tensor and nothing
watches (no compiler, tracer, transform, mode, forward-mode level), the kernel may be called at once. Anything in doubt
goes to the dispatcher, which gets everything right."""
import torch
from torch._C import DispatchKey, DispatchKeySet, _dispatch_tls_local_include_set as included_keys
from torch.autograd import forward_ad

from ._compute import PLAIN_TYPES


# What this thread's dispatcher includes of its own accord, outside and inside torch.inference_mode. Transforms, tracers
# and modes all work by adding keys.
_INFERENCE = DispatchKeySet(DispatchKey.BackendSelect)
QUIET = frozenset(keys.raw_repr() for keys in (_INFERENCE, _INFERENCE.add(DispatchKey.ADInplaceOrView)))
_TYPES = frozenset(PLAIN_TYPES)


def no_mode_is_on():
    return included_keys().raw_repr() in QUIET and forward_ad._current_level < 0


def is_plain(tensor):
    """A strided CPU tensor whose memory holds its values: no lazy negation, no zero without storage."""
    return (type(tensor) in _TYPES and tensor.is_cpu and tensor.layout is torch.strided and not tensor.is_neg()
            and not tensor._is_zerotensor())


def all_plain(*tensors):
    """Those that are not None are plain, and so is the time."""
    return all(tensor is None or is_plain(tensor) for tensor in tensors) and no_mode_is_on()


def records(x, weight, bias):
    return torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)
                                        or (bias is not None and bias.requires_grad))
