"""PyTorch's norms by lnorm: the same functions, modules and names, on the CPU the same bits whatever the threads.

    import lnorm.torch
    lnorm.torch.replace(model)          # every norm layer, in place

Functions: layer_norm, rms_norm, group_norm, instance_norm, batch_norm, with the arguments of torch.nn.functional.
Modules: LayerNorm, RMSNorm, GroupNorm, BatchNorm1d to 3d, InstanceNorm1d to 3d. What differs from PyTorch on purpose:
docs/pytorch.md."""
from ._arithmetic import get_arithmetic, set_arithmetic
from .functional import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from .modules import (BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
                      LayerNorm, RMSNorm, replace, restore)

__all__ = ["layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "LayerNorm", "RMSNorm", "GroupNorm",
           "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
           "replace", "restore", "set_arithmetic", "get_arithmetic"]
