"""Layers that own their parameters."""
import os
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from . import _core, _safetensors
from ._arrays import as_array, convert, element_of, empty_like, extents
from ._call import execute
from ._core import layer_norm, rms_norm

_Input = TypeVar("_Input")


class _Layer:
    """What the layers share. `_parameters` names the arrays of normalized_shape that are there."""

    _kind: int
    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool
    dtype: np.dtype
    weight: np.ndarray | None
    bias: np.ndarray | None
    weight_grad: np.ndarray | None
    bias_grad: np.ndarray | None

    def __init__(self, normalized_shape: Any, eps: float | None, elementwise_affine: bool, parameters: tuple[str, ...],
                 dtype: Any) -> None:
        self.normalized_shape = extents(normalized_shape)
        element_of(dtype)
        self.eps = eps
        self.elementwise_affine = bool(elementwise_affine)
        self.dtype = np.dtype(dtype)
        self._parameters = parameters if elementwise_affine else ()
        for name in ("weight", "bias"):
            there = name in self._parameters
            setattr(self, name, np.empty(self.normalized_shape, dtype) if there else None)
            setattr(self, f"{name}_grad", np.empty(self.normalized_shape, dtype) if there else None)
        self.reset_parameters()
        self.zero_grad()

    def reset_parameters(self) -> None:
        """weight to 1, bias to 0."""
        for name in self._parameters:
            getattr(self, name)[...] = 1 if name == "weight" else 0

    def zero_grad(self) -> None:
        """weight_grad and bias_grad to 0."""
        for name in self._parameters:
            getattr(self, f"{name}_grad")[...] = 0

    def backward(self, dy: Any, input: _Input) -> _Input:
        """dx, the gradient by `input`, from dy, the gradient by the result, and the input of the forward pass.

        The gradients of weight and bias are added to weight_grad and bias_grad. The forward pass saved nothing."""
        input = as_array(input, "input")
        dx = empty_like(input)
        execute(self._kind, _core.BACKWARD, dy=dy, x=input, weight=self.weight, dx=dx, dweight=self.weight_grad,
                dbias=self.bias_grad, accumulate=True, normalized_shape=self.normalized_shape, eps=self.eps,
                threads=None, fast=False)
        return dx

    def state_dict(self) -> dict[str, np.ndarray]:
        """The parameters by name: the arrays themselves, no copies."""
        return {name: getattr(self, name) for name in self._parameters}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Copies arrays of the names and shapes of state_dict() in, converted to the layer's element type.

        Raises ValueError for a name that is missing or unexpected and for another shape; the layer is then as it was.
        """
        missing = [name for name in self._parameters if name not in state_dict]
        unexpected = [name for name in state_dict if name not in self._parameters]
        if missing or unexpected:
            raise ValueError(f"state_dict: expected the keys {list(self._parameters)}, got missing keys {missing} and "
                             f"unexpected keys {unexpected}")
        loaded = {name: np.asarray(state_dict[name]) for name in self._parameters}
        for name, array in loaded.items():
            if array.shape != self.normalized_shape:
                raise ValueError(f"{name}: expected shape {list(self.normalized_shape)}, got {list(array.shape)}")
        converted = {name: convert(array, self.dtype) for name, array in loaded.items()}
        for name, array in converted.items():
            getattr(self, name)[...] = array

    def save(self, path: str | os.PathLike[str], prefix: str = "") -> None:
        """Writes the parameters to a .safetensors file, as prefix + "weight" and prefix + "bias"."""
        _safetensors.save(path, {prefix + name: array for name, array in self.state_dict().items()})

    def load(self, path: str | os.PathLike[str], prefix: str = "") -> None:
        """load_state_dict from a .safetensors file, of the names that begin with the prefix and have no dot after it.
        The file may hold other tensors, too."""

        def is_ours(name):
            return name.startswith(prefix) and "." not in name[len(prefix) :]

        tensors = _safetensors.load(path, is_ours)
        self.load_state_dict({name[len(prefix) :]: array for name, array in tensors.items()})


class LayerNorm(_Layer):
    """A layer norm with parameters: weight = 1, bias = 0, both NumPy arrays of normalized_shape.

    normalized_shape: an int or a sequence of ints. elementwise_affine=False: no weight and no bias; bias=False: no
    bias. dtype: of the parameters; inputs may have any of the four.

    >>> norm = lnorm.LayerNorm(4)
    >>> norm
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True, dtype=float32)
    >>> y = norm(np.array([[1, 2, 3, 4]], dtype=np.float32))
    >>> y.round(3)
    array([[-1.342, -0.447,  0.447,  1.342]], dtype=float32)
    >>> dx = norm.backward(np.ones_like(y), np.array([[1, 2, 3, 4]], dtype=np.float32))
    >>> norm.bias_grad
    array([1., 1., 1., 1.], dtype=float32)
    """

    _kind = _core.LAYER_NORM

    def __init__(self, normalized_shape: SupportsIndex | Sequence[SupportsIndex], eps: float = 1e-5,
                 elementwise_affine: bool = True, bias: bool = True, dtype: Any = np.float32) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, ("weight", "bias") if bias else ("weight",), dtype)

    def __call__(self, input: _Input) -> _Input:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def __repr__(self) -> str:
        return (f"LayerNorm({self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}, dtype={self.dtype.name})")


class RMSNorm(_Layer):
    """An RMS norm with a weight = 1, a NumPy array of normalized_shape. eps None: 2^-23, for float64 input 2^-52.

    >>> lnorm.RMSNorm(2, eps=0.0)(np.array([3.0, 4.0])).round(4)
    array([0.8485, 1.1314])
    """

    _kind = _core.RMS_NORM

    def __init__(self, normalized_shape: SupportsIndex | Sequence[SupportsIndex], eps: float | None = None,
                 elementwise_affine: bool = True, dtype: Any = np.float32) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, ("weight",), dtype)

    def __call__(self, input: _Input) -> _Input:
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def __repr__(self) -> str:
        return (f"RMSNorm({self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"dtype={self.dtype.name})")
