"""Layer normalisation and its family: accurate, the same bits everywhere.

>>> import numpy as np, lnorm
>>> x = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], dtype=np.float32)
>>> lnorm.layer_norm(x, 3, eps=0.0).round(4)
array([[-1.2247,  0.    ,  1.2247],
       [-1.2247,  0.    ,  1.2247]], dtype=float32)

Names, argument order and defaults are those of torch.nn.functional. Arrays of float64, float32, float16 and
ml_dtypes.bfloat16 in every mix, with any strides, are read where they lie: NumPy's, those with DLPack (on the CPU), and
whatever NumPy makes an array of. Results are NumPy arrays, for torch tensors torch tensors. Wrong arguments raise
ValueError or TypeError; in messages x is the input and y the output.
"""
from . import _core, _functions
from ._core import (
    get_num_threads,
    isa,
    layer_norm,
    layer_norm_backward,
    rms_norm,
    rms_norm_backward,
    set_num_threads,
)
from ._explain import Explanation, explain
from ._functions import (
    batch_norm,
    batch_norm_backward,
    group_norm,
    group_norm_backward,
    instance_norm,
    instance_norm_backward,
    layer_norm_double_backward,
    rms_norm_double_backward,
)
from ._layers import LayerNorm, RMSNorm
from ._verify import Report, verify

_core.set_general(
    _functions.layer_norm, _functions.rms_norm, _functions.layer_norm_backward, _functions.rms_norm_backward
)

__version__ = _core.version
__all__ = [
    "Explanation",
    "LayerNorm",
    "RMSNorm",
    "Report",
    "batch_norm",
    "batch_norm_backward",
    "explain",
    "get_num_threads",
    "group_norm",
    "group_norm_backward",
    "instance_norm",
    "instance_norm_backward",
    "isa",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_double_backward",
    "rms_norm",
    "rms_norm_backward",
    "rms_norm_double_backward",
    "set_num_threads",
    "verify",
]
