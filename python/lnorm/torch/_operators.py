"""lnorm::norm, lnorm::norm_backward and lnorm::running_statistics: what PyTorch's dispatcher, compiler and transforms
know of.

The first two serve every kind of norm (_compute.py says how one is named). Each has a kernel for the CPU, a description
of its outputs for tensors without data, a rule for vmap, and an autograd.Function for reverse and forward mode whose
formulas consist of operators that are differentiable in their turn (_formulas.py)."""
import contextlib

import torch
from torch.autograd import Function, forward_ad
from torch.autograd.forward_ad import _set_fwd_grad_enabled, unpack_dual
from torch._functorch.autograd_function import enable_single_level_autograd_function

from .. import _core
from . import _compute, _formulas
from ._eager import QUIET, included_keys, is_plain, no_mode_is_on

library = torch.library.Library("lnorm", "DEF")
library.define("norm(Tensor input, Tensor? weight, Tensor? bias, str kind, SymInt extent, float? eps, bool? fast, "
               "Tensor? mean=None, Tensor? variance=None) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define("norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor? bias, str kind, SymInt extent, "
               "float? eps, bool? fast, bool[3] mask, Tensor? mean=None, Tensor? variance=None) -> "
               "(Tensor, Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
library.define("running_statistics(Tensor input, Tensor running_mean, Tensor running_var, float momentum) -> "
               "(Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
norm = torch.ops.lnorm.norm.default
norm_backward = torch.ops.lnorm.norm_backward.default
running_statistics = torch.ops.lnorm.running_statistics.default

library.impl("norm", _compute.forward, "CPU")
library.impl("norm_backward", _compute.backward, "CPU")
library.impl("running_statistics", _compute.running_statistics, "CPU")


@torch.library.register_fake("lnorm::norm", lib=library)
def _(x, weight, bias, kind, extent, eps, fast, mean=None, variance=None):
    _compute.checked_eps(kind, eps, x.dtype)
    return _compute.empty_like(x, kind)


@torch.library.register_fake("lnorm::norm_backward", lib=library)
def _(dy, x, weight, bias, kind, extent, eps, fast, mask, mean=None, variance=None):
    _compute.checked_eps(kind, eps, x.dtype)
    return (_compute.empty_like(x, kind) if mask[0] else x.new_empty(0),
            weight.new_empty(weight.shape) if mask[1] else x.new_empty(0),
            bias.new_empty(bias.shape) if mask[2] else x.new_empty(0))


@torch.library.register_fake("lnorm::running_statistics", lib=library)
def _(x, running_mean, running_var, momentum):
    return running_mean.new_empty(running_mean.shape), running_var.new_empty(running_var.shape)


# The gradients of what has none: as many as may follow the last tensor, of which autograd drops those too many.
_NOTHING = (None,) * 7


@contextlib.contextmanager
def _next_level():
    """Below this level's autograd, with the levels of torch.func that lie further down in full working order."""
    with torch.enable_grad(), _set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        yield


@contextlib.contextmanager
def _primals(ctx):
    """In forward mode: what was saved, without this level's tangents, ready to carry those of the levels below."""
    with _set_fwd_grad_enabled(True):
        yield tuple(None if tensor is None else unpack_dual(tensor).primal for tensor in ctx.saved_tensors)


class _Recorded(Function):
    """An operator with derivatives. The first argument is the dispatcher's keys, below which the operator goes on; or
    None in plain eager mode, where the kernel is called at once."""

    @classmethod
    def record(cls, *arguments):
        """Function.apply, but for this level of torch.func alone, as the dispatcher comes by once for each; and
        without its look at the signature, which takes longer than a small norm."""
        return super(Function, cls).apply(*arguments)

    @classmethod
    def dispatched(cls, keys, *arguments):
        with enable_single_level_autograd_function():
            return cls.record(keys, *arguments)

    @classmethod
    def run(cls, keys, arguments):
        if keys is None:
            return cls.kernel(*arguments)
        with _next_level():
            return cls.operator.redispatch(keys & torch._C._after_autograd_keyset, *arguments)


class Norm(_Recorded):
    """`running` is for the kernel alone: the operator has no such argument, and nobody who calls it gives one."""

    operator, kernel = norm, staticmethod(_compute.forward)

    @staticmethod
    def forward(keys, x, weight, bias, kind, extent, eps, fast, mean=None, variance=None, running=None):
        arguments = (x, weight, bias, kind, extent, eps, fast, mean, variance)
        return Norm.run(keys, arguments if running is None else (*arguments, running))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.plain = inputs[0] is None
        ctx.how = inputs[4:8]
        tensors = (*inputs[1:4], *inputs[8:10])
        ctx.save_for_backward(*tensors)
        if not ctx.plain:
            ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias, *constants = ctx.saved_tensors
        mask = ctx.needs_input_grad[1:4]
        if ctx.plain and not torch.is_grad_enabled() and is_plain(dy) and no_mode_is_on():
            found = _compute.gradients(dy, x, weight, bias, *ctx.how, mask, *constants)
        else:
            found = norm_backward(dy, x, weight, bias, *ctx.how, mask, *constants)
        return None, *(gradient if wanted else None for gradient, wanted in zip(found, mask)), *_NOTHING

    @staticmethod
    def jvp(ctx, keys, x_t, weight_t, bias_t, *how):
        with _primals(ctx) as (x, weight, bias, *constants):
            view = _formulas.View(x, weight, *ctx.how[:3], *constants)
            tangent = _formulas.forward_tangent(view, x_t, weight_t, bias_t)
            return view.narrow(tangent.expand(view.shape))


class TensorNorm(Function):
    """Norm for plain eager mode with as little around the kernel as can be; _core.eager_norm applies it. `how` and the
    tensors are those of _core.tensor_norm; the output is None where that does not take them."""

    # forward(ctx, x, weight, bias, how, *statistics) saves what the gradients need of the tensors, and sets ctx.how.
    forward = staticmethod(_core.tensor_norm_forward)

    @staticmethod
    def backward(ctx, dy, saved=None):
        """Through the dispatcher, of whatever dy, and differentiable. saved: ctx.saved_tensors, if they have been asked
        for, which a checkpoint allows once."""
        (code, shape, eps, fast, _), mask = ctx.how, ctx.needs_input_grad
        x, weight, bias, *constants = ctx.saved_tensors if saved is None else saved
        if len(constants) == 1:  # statistics, which only spare time
            constants = ()
        extent = len(shape) if isinstance(shape, tuple) else shape or 0
        bias_like = weight if bias is None and mask[2] else bias
        found = norm_backward(dy, x, weight, bias_like, _compute.KIND_OF[code], extent, eps, fast, mask[:3], *constants)
        return *(gradient if wanted else None for gradient, wanted in zip(found, mask)), *(None,) * len(mask[3:])


# PyTorch looks for these at every call, by names that no cache holds: in the class itself it finds them soonest.
for name in ("setup_context", "clear_saved_tensors_on_access", "boxed_grads_call"):
    if hasattr(Function, name):
        setattr(TensorNorm, name, getattr(Function, name))

# Function.apply without its look at transforms and signature (_Recorded.record), bound once.
_core.set_eager(included_keys, QUIET, forward_ad, torch.is_grad_enabled, super(Function, TensorNorm).apply)
# For the engine the short way to the gradients, in place of a method that looks for `backward`.
TensorNorm._backward_cls.apply = _core.tensor_norm_apply(TensorNorm._backward_cls, TensorNorm.backward)


class NormBackward(_Recorded):
    operator, kernel = norm_backward, staticmethod(_compute.backward)

    @staticmethod
    def forward(keys, dy, x, weight, bias, kind, extent, eps, fast, mask, mean=None, variance=None):
        return NormBackward.run(keys, (dy, x, weight, bias, kind, extent, eps, fast, mask, mean, variance))

    @staticmethod
    def setup_context(ctx, inputs, output):
        *ctx.how, ctx.mask = inputs[5:10]
        tensors = (*inputs[1:5], *inputs[10:])
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *cotangents):
        dy, x, weight, bias, *constants = ctx.saved_tensors
        v, v_weight, v_bias = (c if wanted else None for c, wanted in zip(cotangents, ctx.mask))
        view = _formulas.View(x, weight, *ctx.how[:3], *constants)
        by_dy, by_x, by_weight = _formulas.double_backward(view, dy, v, v_weight, v_bias, bias)
        expand = lambda a: None if a is None else view.narrow(a.expand(view.shape))
        return None, expand(by_dy), expand(by_x), by_weight, None, *_NOTHING

    @staticmethod
    def jvp(ctx, keys, dy_t, x_t, weight_t, *others):
        with _primals(ctx) as (dy, x, weight, bias, *constants):
            view = _formulas.View(x, weight, *ctx.how[:3], *constants)
            tangents = _formulas.backward_tangent(view, dy, dy_t, x_t, weight_t)
            shaped = (view.narrow, lambda a: view.summed(a, weight), lambda a: view.summed(a, bias))
            zeros = (x, weight, bias)
            return tuple(x.new_zeros(0) if not wanted else torch.zeros_like(zero) if tangent is None else shape(tangent)
                         for tangent, wanted, shape, zero in zip(tangents, ctx.mask, shaped, zeros))


def _batch_first(tensor, dim, size):
    """The batch at axis 0, where there is none as a view that repeats the tensor."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _one_by_one(operator, info, in_dims, arguments):
    """One call for each element of the batch, so each has the bits it would have alone. (An empty batch goes by a call
    with zeros, which are sums of nothing, so that the result has its shape and its place in autograd's graph.)"""
    size = info.batch_size
    results = [operator(*(a if not isinstance(dim, int) else a.select(dim, i) if size else a.sum(dim)
                          for a, dim in zip(arguments, in_dims))) for i in range(max(size, 1))]
    if isinstance(results[0], tuple):
        return tuple(torch.stack(column)[:size] for column in zip(*results)), (0,) * len(results[0])
    return torch.stack(results)[:size], 0


def _in_one_call(operator, info, in_dims, tensors, others):
    """The batch is more rows, or more samples: no group notices."""
    batched = [_batch_first(t, dim, info.batch_size) for t, dim in zip(tensors, in_dims)]
    if others[2] not in ("group", "batch"):
        return operator(*batched, *others)
    first = tensors[-1].shape if in_dims[len(tensors) - 1] is None else batched[-1].shape[1:]
    result = operator(*(b.flatten(0, 1) for b in batched), *others)
    restore = lambda r: r.unflatten(0, (info.batch_size, first[0])) if r.dim() > 1 else r
    return tuple(map(restore, result)) if isinstance(result, tuple) else restore(result)


def _mixes_samples(kind, constants):
    return kind == "batch" and all(constant is None for constant in constants)


@torch.library.register_vmap("lnorm::norm", lib=library)
def _(info, in_dims, x, *others):
    if (info.batch_size == 0 or any(dim is not None for dim in in_dims[1:])
            or _mixes_samples(others[2], others[6:])):
        return _one_by_one(norm, info, in_dims, (x, *others))
    return _in_one_call(norm, info, in_dims[:1], (x,), others), 0


@torch.library.register_vmap("lnorm::norm_backward", lib=library)
def _(info, in_dims, dy, x, *others):
    mask, constants = others[6], others[7:]
    if (info.batch_size == 0 or mask[1] or mask[2] or in_dims[2] is not None
            or any(dim is not None for dim in in_dims[9:]) or _mixes_samples(others[2], constants)):
        return _one_by_one(norm_backward, info, in_dims, (dy, x, *others))
    return _in_one_call(norm_backward, info, in_dims[:2], (dy, x), others), (0, None, None)


@torch.library.register_vmap("lnorm::running_statistics", lib=library)
def _(info, in_dims, *arguments):
    return _one_by_one(running_statistics, info, in_dims, arguments)


library.impl("norm", Norm.dispatched, "Autograd", with_keyset=True)
library.impl("norm_backward", NormBackward.dispatched, "Autograd", with_keyset=True)
