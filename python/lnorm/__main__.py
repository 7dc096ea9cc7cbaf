"""python -m lnorm: a few of the library's services on the command line. Each verb is a function that takes its
arguments and returns the exit status, and stands in VERBS."""
import argparse
import os
import platform
import sys

import numpy as np

import lnorm


def info(arguments):
    """what is installed and what this machine runs"""
    argparse.ArgumentParser("python -m lnorm info", description=info.__doc__).parse_args(arguments)
    print(f"lnorm            {lnorm.__version__}")
    print(f"instruction set  {lnorm.isa()}")
    print(f"threads          {lnorm.get_num_threads()}")
    print(f"Python, NumPy    {platform.python_version()}, {np.__version__}")
    print(f"extension        {os.path.relpath(lnorm._core.__file__)}")
    return 0


def _extents(text):
    return tuple(int(part) for part in text.split(","))


def _array(path):
    with open(path, "rb") as file:
        begins = file.read(6)
    if begins != b"\x93NUMPY":  # NumPy takes it for a pickle, or opens an archive
        raise ValueError(f"{path}: expected an .npy file, got one that begins with '{begins.hex(' ')}'")
    return np.load(path)


def verify(arguments):
    """the error of a layer norm in a .npy file, against the exact result"""
    parser = argparse.ArgumentParser("python -m lnorm verify", description=verify.__doc__)
    parser.add_argument("x", help="input, .npy")
    parser.add_argument("y", help="what somebody made of it, .npy")
    parser.add_argument("--normalized-shape", type=_extents, metavar="N,...", help="default: the last axis")
    parser.add_argument("--weight", help=".npy")
    parser.add_argument("--bias", help=".npy")
    parser.add_argument("--eps", type=float, default=1e-5)
    parser.add_argument("--max-ulp", type=float, default=1.0, help="exit status 1 beyond it; default: 1")
    given = parser.parse_args(arguments)
    x, y = _array(given.x), _array(given.y)
    weight, bias = (None if path is None else _array(path) for path in (given.weight, given.bias))
    report = lnorm.verify(x, y, given.normalized_shape or x.shape[-1:], weight, bias, given.eps)
    print(report)
    return 0 if report.worst <= given.max_ulp else 1


def compare(arguments):
    """lnorm beside the libraries that are installed here: speed, accuracy, promises"""
    from lnorm import _compare
    return _compare.compare(arguments)


VERBS = {"info": info, "verify": verify, "compare": compare}


def main(arguments):
    if not arguments or arguments[0] not in VERBS:
        lines = "".join(f"  {name:<8}{verb.__doc__}\n" for name, verb in VERBS.items())
        wanted = bool(arguments) and arguments[0] in ("-h", "--help")
        print(f"usage: python -m lnorm VERB ...\n\n{lines}\npython -m lnorm VERB --help says more.",
              file=sys.stdout if wanted else sys.stderr)
        return 0 if wanted else 2
    try:
        return VERBS[arguments[0]](arguments[1:])
    except (OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        print(f"lnorm {arguments[0]}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
