"""Which arithmetic the operators use where a call does not say."""

_NAMES = ("accurate", "fast")
_fast = False


def set_arithmetic(name):
    """From now on norms are computed in "accurate" arithmetic (the default) or in "fast" arithmetic, in this process.

    Both are deterministic; lnorm.h says what each guarantees. A module or call with a `fast` of its own keeps it. The
    choice is made when an operator runs, in compiled and exported programs too."""
    global _fast
    if name not in _NAMES:
        raise ValueError(f'arithmetic: expected "accurate" or "fast", got {name!r}')
    _fast = name == "fast"


def get_arithmetic():
    """What set_arithmetic has set: "accurate" or "fast"."""
    return _NAMES[_fast]


def is_fast(fast):
    return _fast if fast is None else bool(fast)
