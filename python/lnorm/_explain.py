"""explain: what an operation does to an array, as the program `lnorm explain` shows it. All of it is drawn in C."""
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from . import _core
from ._arrays import as_array

_KINDS = {"layer": _core.LAYER_NORM, "rms": _core.RMS_NORM, "group": _core.GROUP_NORM, "instance": _core.INSTANCE_NORM,
          "batch": _core.BATCH_NORM}


class Explanation:
    """What explain returns. str() is a picture in characters with the rest in words; `svg` is an SVG document, which
    notebooks show in its place."""

    svg: str

    def __init__(self, text: str, svg: str) -> None:
        self._text = text
        self.svg = svg

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_svg_(self) -> str:
        return self.svg


def _is_index(thing):
    return not isinstance(thing, np.ndarray) and hasattr(type(thing), "__index__") and not hasattr(thing, "__dlpack__")


def _shape_or_array(thing):
    """A tuple of extents for a shape. torch.Size is a tuple; NumPy's integers are integers, its arrays never."""
    if _is_index(thing):
        return (operator.index(thing),)
    if isinstance(thing, (tuple, list)) and all(map(_is_index, thing)):
        return tuple(map(operator.index, thing))
    return as_array(thing, "x")


def _kind(op):
    kind = _KINDS.get(op) if isinstance(op, str) else None
    if kind is None:
        exception = ValueError if isinstance(op, str) else TypeError
        raise exception(f"op: expected 'layer', 'rms', 'group', 'instance' or 'batch', got {op!r}")
    return kind


def explain(
    shape_or_array: Any,
    normalized_shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    axes: SupportsIndex | Sequence[SupportsIndex] | None = None,
    op: str = "layer",
    num_groups: SupportsIndex | None = None,
    eps: float | None = None,
    width: SupportsIndex = 80,
    ascii: bool = False,
) -> Explanation:
    """Which elements of an array share a mean and a variance: a picture, and what else there is to say, in words.

    shape_or_array: a shape, that is an integer or a tuple or list of integers; or an array, of which the values are
    shown, too: elements, mean, variance and result, group by group (of a large one the first and the last). op: 'layer',
    'rms', 'group' (with num_groups), 'instance' or 'batch'. normalized_shape, axes, eps: as of layer_norm, with the last
    axis for neither. width: characters in a line, 40 to 240. ascii: no characters beyond ASCII.

    Returns an Explanation: print it, or let a notebook show it; its `svg` is what `lnorm explain --svg` writes.

    >>> print(lnorm.explain((2, 3), 3))  # doctest: +ELLIPSIS
    Layer norm of [2, 3] over axis 1: normalized_shape = [3]
    <BLANKLINE>
    Rows: axis 0, columns: axis 1. A number is that of the element's group.
    ┌───────────┐
    │ 0   0   0 │
    ├───────────┤
    │ 1   1   1 │
    └───────────┘
    <BLANKLINE>
    groups       2 of 3 elements each; x[i, :] share a mean and a variance
    ...
    """
    kind = _kind(op)
    if (num_groups is None) == (op == "group"):
        raise ValueError(f"num_groups: expected an integer with op='group', None with any other, got {num_groups!r}")
    return Explanation(*_core.explain(kind, _shape_or_array(shape_or_array), normalized_shape, axes,
                                      0 if num_groups is None else num_groups, eps, width, not ascii))
