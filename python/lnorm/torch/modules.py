"""PyTorch's norm layers by lnorm. Each is PyTorch's own class with another forward: constructors, parameters, state
dicts, reset_parameters and repr are inherited, and isinstance(layer, torch.nn.LayerNorm) holds."""
from torch import Tensor, nn

from . import functional


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm by lnorm. `fast`: fast arithmetic or not; None, the default: as set_arithmetic says."""

    __constants__ = [*nn.LayerNorm.__constants__, "fast"]
    fast = None

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, fast=self.fast)


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.RMSNorm.__constants__, "fast"]
    fast = None

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps, fast=self.fast)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.GroupNorm.__constants__, "fast"]
    fast = None

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, fast=self.fast)


_REPLACEMENTS = {nn.LayerNorm: LayerNorm, nn.RMSNorm: RMSNorm, nn.GroupNorm: GroupNorm}


def replace(model: nn.Module) -> int:
    """Every torch.nn.LayerNorm, RMSNorm and GroupNorm in `model`, itself included, computes by lnorm from now on.

    Returns how many layers that were. A layer stays the same object, with its parameters, hooks, flags and places in
    the model; only its class changes. Subclasses of PyTorch's layers are left alone: what they do is not known here.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    >>> replace(model)
    1
    """
    return _exchange(model, _REPLACEMENTS)


def restore(model: nn.Module) -> int:
    """The reverse of replace: every layer of lnorm's in `model` is PyTorch's from now on. Returns how many."""
    return _exchange(model, {ours: theirs for theirs, ours in _REPLACEMENTS.items()})


def _exchange(model, classes):
    layers = [layer for layer in model.modules() if type(layer) in classes]
    for layer in layers:
        layer.__class__ = classes[type(layer)]
    return len(layers)
