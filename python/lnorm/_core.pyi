"""The compiled part of lnorm. What is public is exported by the package."""
from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

_Array = TypeVar("_Array")
_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
# None, an array, or (address, dtype, shape, strides in elements or None).
_Tensor: TypeAlias = Any

F64: int
F32: int
F16: int
BF16: int
LAYER_NORM: int
RMS_NORM: int
GROUP_NORM: int
INSTANCE_NORM: int
BATCH_NORM: int
FORWARD: int
BACKWARD: int
DOUBLE_BACKWARD: int
FORWARD_MODE: int
COMPUTED: int
SAVED: int
CONSTANT: int
ACCURATE: int
FAST: int
EPS_DEFAULT: float
version: str

@overload
def layer_norm(
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[False] = False,
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> _Array: ...
@overload
def layer_norm(
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    out: Any | None = None,
    return_stats: Literal[True],
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array, _Array]: ...
@overload
def rms_norm(
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    eps: float | None = None,
    *,
    out: Any | None = None,
    return_stats: Literal[False] = False,
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> _Array: ...
@overload
def rms_norm(
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    eps: float | None = None,
    *,
    out: Any | None = None,
    return_stats: Literal[True],
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array]: ...
def layer_norm_backward(
    dy: Any,
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    bias: Any | None = None,
    eps: float | None = 1e-5,
    *,
    mean: Any | None = None,
    rstd: Any | None = None,
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array | None, _Array | None]: ...
def rms_norm_backward(
    dy: Any,
    input: _Array,
    normalized_shape: _Shape | None = None,
    weight: Any | None = None,
    eps: float | None = None,
    *,
    rstd: Any | None = None,
    axes: _Shape | None = None,
    threads: int | None = None,
    fast: bool = False,
    affine_broadcast: bool = False,
) -> tuple[_Array, _Array | None]: ...
def set_general(
    layer_norm: Any, rms_norm: Any, layer_norm_backward: Any, rms_norm_backward: Any, /
) -> None: ...
def describe(array: Any, /) -> tuple[tuple[int, ...], int]: ...
def explain(
    kind: int, x: Any, normalized_shape: _Shape | None, axes: _Shape | None, groups: SupportsIndex, eps: float | None,
    width: SupportsIndex, utf8: bool, /,
) -> tuple[str, str]: ...
def execute(
    kind: int,
    pass_: int,
    /,
    *,
    statistics: int = 0,
    arithmetic: int = 0,
    eps: float = 1e-5,
    normalized_shape: _Shape | None = None,
    axes: _Shape | None = None,
    groups: int = 0,
    affine_broadcast: bool = False,
    weight_offset: bool = False,
    accumulate: bool = False,
    momentum: float = 0.1,
    batches: int = 0,
    threads: int = 0,
    x: _Tensor = None,
    weight: _Tensor = None,
    bias: _Tensor = None,
    y: _Tensor = None,
    mean: _Tensor = None,
    rstd: _Tensor = None,
    variance: _Tensor = None,
    running_mean: _Tensor = None,
    running_var: _Tensor = None,
    dy: _Tensor = None,
    dx: _Tensor = None,
    dweight: _Tensor = None,
    dbias: _Tensor = None,
    v: _Tensor = None,
    ddy: _Tensor = None,
    x_tangent: _Tensor = None,
    weight_tangent: _Tensor = None,
    bias_tangent: _Tensor = None,
    y_tangent: _Tensor = None,
    mean_tangent: _Tensor = None,
    rstd_tangent: _Tensor = None,
) -> None: ...
def execute_openmp(kind: int, pass_: int, /, **keywords: Any) -> None: ...
def set_openmp(parallel: int, thread_num: int, patience: int, /) -> None: ...
def rows_forward(
    kind: int, dtype: int, x: int | None, y: int | None, weight: int | None, bias: int | None, mean: int | None,
    rstd: int | None, rows: int, cols: int, eps: float, /,
) -> None: ...
def rows_backward(
    kind: int, dtype: int, dy: int | None, x: int | None, weight: int | None, dx: int | None, dweight: int | None,
    dbias: int | None, rows: int, cols: int, eps: float, /,
) -> None: ...
def set_tensors(
    types: tuple[type, ...], exchange: Any, empty: Any, dtypes: tuple[Any, ...], get_threads: Any, written: Any, /
) -> bool: ...
def tensor_norm(how: tuple[Any, ...], x: Any, weight: Any, bias: Any, *statistics: Any) -> Any: ...
def tensor_norm_backward(
    tensors: tuple[Any, ...], how: tuple[Any, ...], dy: Any, mask: tuple[bool, ...], /
) -> tuple[Any, ...] | None: ...
def set_eager(
    included_keys: Any, quiet: frozenset[int], forward_ad: Any, grad_enabled: Any, record: Any, /
) -> None: ...
def eager_norm(
    kind: int, shape: Any, eps: Any, fast: bool, momentum: Any, x: Any, weight: Any, bias: Any, *statistics: Any
) -> Any: ...
def tensor_norm_forward(
    ctx: Any, x: Any, weight: Any, bias: Any, how: tuple[Any, ...], *statistics: Any
) -> Any: ...
def tensor_norm_apply(node: type, backward: Any, /) -> Any: ...
def set_num_threads(threads: int | None, /) -> None: ...
def get_num_threads() -> int: ...
def isa() -> str: ...
