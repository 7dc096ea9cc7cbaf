"""PyTorch's norms by lnorm: the same functions, modules and names, on the CPU the same bits whatever the threads.

    import lnorm.torch
    lnorm.torch.replace(model)          # every LayerNorm, RMSNorm and GroupNorm, in place

Functions: layer_norm, rms_norm, group_norm, instance_norm, with the arguments of torch.nn.functional.
Modules: LayerNorm, RMSNorm, GroupNorm. What differs from PyTorch on purpose: docs/pytorch.md."""
from ._arithmetic import get_arithmetic, set_arithmetic
from .functional import group_norm, instance_norm, layer_norm, rms_norm
from .modules import GroupNorm, LayerNorm, RMSNorm, replace, restore

__all__ = ["layer_norm", "rms_norm", "group_norm", "instance_norm", "LayerNorm", "RMSNorm", "GroupNorm",
           "replace", "restore", "set_arithmetic", "get_arithmetic"]
