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


class _BatchNorm:
    """What the batch norms have in common. PyTorch's count of batches is kept; momentum=None is their average."""

    fast = None

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        batches = self.num_batches_tracked
        if self.training and self.track_running_stats and batches is not None:
            batches.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(batches)
        running_mean, running_var = self.running_mean, self.running_var
        of_batch = self.training or (running_mean is None and running_var is None)
        if self.training and not self.track_running_stats:
            running_mean, running_var = None, None
        return functional.batch_norm(input, running_mean, running_var, self.weight, self.bias, of_batch, factor,
                                     self.eps, fast=self.fast)


class BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    """torch.nn.BatchNorm1d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.BatchNorm1d.__constants__, "fast"]


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """torch.nn.BatchNorm2d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.BatchNorm2d.__constants__, "fast"]


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """torch.nn.BatchNorm3d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.BatchNorm3d.__constants__, "fast"]


class _InstanceNorm:
    """What the instance norms have in common: PyTorch's forward calls this."""

    fast = None

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        of_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return functional.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias, of_input,
                                        momentum, self.eps, fast=self.fast)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """torch.nn.InstanceNorm1d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.InstanceNorm1d.__constants__, "fast"]


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """torch.nn.InstanceNorm2d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.InstanceNorm2d.__constants__, "fast"]


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """torch.nn.InstanceNorm3d by lnorm; `fast` as in LayerNorm."""

    __constants__ = [*nn.InstanceNorm3d.__constants__, "fast"]


_REPLACEMENTS = {nn.LayerNorm: LayerNorm, nn.RMSNorm: RMSNorm, nn.GroupNorm: GroupNorm,
                 nn.BatchNorm1d: BatchNorm1d, nn.BatchNorm2d: BatchNorm2d, nn.BatchNorm3d: BatchNorm3d,
                 nn.InstanceNorm1d: InstanceNorm1d, nn.InstanceNorm2d: InstanceNorm2d,
                 nn.InstanceNorm3d: InstanceNorm3d}


def replace(model: nn.Module) -> int:
    """Every torch.nn.LayerNorm, RMSNorm, GroupNorm, BatchNorm1d to 3d and InstanceNorm1d to 3d in `model`, itself
    included, computes by lnorm from now on.

    Returns how many layers that were. A layer stays the same object, with its parameters, hooks, flags and places in
    the model; only its class changes. Subclasses of PyTorch's layers (SyncBatchNorm and lazy ones are such) are left
    alone: what they do is not known here.

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
