"""One operation of the library."""
from typing import Any

from . import _core


def execute(kind: int, pass_: int, *, eps: float | None, threads: int | None, fast: bool, **arguments: Any) -> None:
    """_core.execute with None for what is not given."""
    _core.execute(
        kind,
        pass_,
        eps=_core.EPS_DEFAULT if eps is None else eps,
        threads=0 if threads is None else threads,
        arithmetic=_core.FAST if fast else _core.ACCURATE,
        **arguments,
    )
