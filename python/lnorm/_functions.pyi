"""The public functions' types; those that _core has, too, are typed there."""
from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

from ._core import layer_norm as layer_norm
from ._core import layer_norm_backward as layer_norm_backward
from ._core import rms_norm as rms_norm
from ._core import rms_norm_backward as rms_norm_backward

_Array = TypeVar("_Array")
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

@overload
def group_norm(
    input: _Array,
    num_groups: SupportsIndex,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[False] = False,
    threads: int | None = None,
    fast: bool = False,
) -> _Array: ...
@overload
def group_norm(
    input: _Array,
    num_groups: SupportsIndex,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[True],
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array, _Array]: ...
@overload
def instance_norm(
    input: _Array,
    running_mean: Any | None = None,
    running_var: Any | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[False] = False,
    threads: int | None = None,
    fast: bool = False,
) -> _Array: ...
@overload
def instance_norm(
    input: _Array,
    running_mean: Any | None = None,
    running_var: Any | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[True],
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array, _Array]: ...
@overload
def batch_norm(
    input: _Array,
    running_mean: Any | None = None,
    running_var: Any | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[False] = False,
    threads: int | None = None,
    fast: bool = False,
) -> _Array: ...
@overload
def batch_norm(
    input: _Array,
    running_mean: Any | None = None,
    running_var: Any | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[True],
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array, _Array]: ...
def layer_norm_double_backward(
    v: Any,
    dy: Any,
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    eps: float | None = 1e-5,
    *,
    axes: _Shape | None = None,
    threads: int | None = None,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array, _Array | None]: ...
def rms_norm_double_backward(
    v: Any,
    dy: Any,
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    eps: float | None = None,
    *,
    axes: _Shape | None = None,
    threads: int | None = None,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array, _Array | None]: ...
def group_norm_backward(
    dy: Any,
    input: _Array,
    num_groups: SupportsIndex,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    mean: Any | None = None,
    rstd: Any | None = None,
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array | None, _Array | None]: ...
def instance_norm_backward(
    dy: Any,
    input: _Array,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    mean: Any | None = None,
    rstd: Any | None = None,
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array | None, _Array | None]: ...
def batch_norm_backward(
    dy: Any,
    input: _Array,
    running_mean: Any | None = None,
    running_var: Any | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    training: bool = False,
    eps: float | None = 1e-5,
    *,
    mean: Any | None = None,
    rstd: Any | None = None,
    threads: int | None = None,
    fast: bool = False,
) -> tuple[_Array, _Array | None, _Array | None]: ...
