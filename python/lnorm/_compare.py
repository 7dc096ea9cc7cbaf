"""python -m lnorm compare: lnorm beside the libraries that are installed here. What is measured is in three lists of
plain dictionaries, one for speed, one for accuracy and one for promises; tables, page and JSON file show these."""
import argparse
import datetime
import functools
import json
import pathlib
import platform
import sys
import time

import numpy as np

import lnorm

from . import _peers
from ._compare_page import page
from ._safetensors import replace_file

SHAPES = ((1, 64), (64, 768), (512, 768), (2048, 1024))
IMAGES = (8, 64, 28, 28)
IMAGE_GROUPS = 32
LARGEST_SHAPE = 2**28  # elements: a gigabyte of f32, and NumPy's formula holds several of that at a time
ROUNDS, QUICK_ROUNDS = 15, 3
ROUND_NS, QUICK_ROUND_NS = 4_000_000, 500_000  # of one peer's turn; a call that takes longer is a turn
# Right enough for rows of huge numbers: three digits. An overflow on the way leaves NaN, an infinity or the bare bias.
RIGHT_ULP = 8192
# What lnorm.h promises of y in ulp of f32, looked at for the exit status
PROMISED_ULP = {"lnorm": 0.501, "lnorm fast": 24.0}


def _bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def _random(shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def _once(peer, x, weight, bias):
    return peer.array(peer.prepare(x, weight, bias)())


# ---- Speed -----------------------------------------------------------------------------------------------------------


def _turn(function, calls, clock):
    """ns of a call."""
    start = clock()
    for _ in range(calls):
        function()
    return (clock() - start) / calls


def _interleaved(functions, clock, rounds, budget):
    """ns of a call of each function: the least of all rounds."""
    calls = {}
    for name, function in functions.items():
        _turn(function, 2, clock)
        calls[name] = max(1, min(10000, int(budget / max(_turn(function, 3, clock), 1))))
    taken = {name: [] for name in functions}
    for i in range(rounds):
        # Every second round backwards: nobody has the same neighbour before him each time.
        for name in list(functions)[:: -1 if i % 2 else 1]:
            taken[name].append(max(_turn(functions[name], calls[name], clock), 1))
    return {name: min(ns) for name, ns in taken.items()}


def speed(peers, cases, threads, quick, progress):
    clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    for peer in peers:
        if peer.set_threads:
            peer.set_threads(threads)
    results = []
    for shape, groups, dtype in cases:
        name = "x".join(map(str, shape))
        label = f"{'group norm ' if groups else ''}{name} {'bf16' if dtype.name == 'bfloat16' else 'f32'}"
        progress(f"speed: {label}")
        x = _random(shape, dtype)
        weight, bias = _random(shape[1], dtype, 2), _random(shape[1], dtype, 3)
        functions = {peer.name: peer.prepare(x, weight, bias, groups) for peer in peers}
        functions = {name: function for name, function in functions.items() if function}
        found = _interleaved(functions, clock, QUICK_ROUNDS if quick else ROUNDS, QUICK_ROUND_NS if quick else ROUND_NS)
        results.append({"case": label, "microseconds": {name: ns / 1000 for name, ns in found.items()},
                        "ratio": {name: ns / found["lnorm"] for name, ns in found.items()}})
    return results


def _cases(shapes, quick, dtypes):
    """(shape, groups of a group norm or None, element type) of what is timed."""
    if shapes:
        kinds = [(shape, None) for shape in shapes]
    else:
        kinds = [(shape, None) for shape in (SHAPES[:2] if quick else SHAPES)]
        kinds += [] if quick else [(IMAGES, IMAGE_GROUPS)]
    return [(shape, groups, dtype) for dtype in dtypes for shape, groups in kinds]


# ---- Accuracy --------------------------------------------------------------------------------------------------------


def _outlier_pair(shape):
    x = _random(shape)
    x[:, 0], x[:, -1] = 1e4, -1e4
    return x


DATA = {
    "normal": _random,
    "mean of 100 spreads": lambda shape: _random(shape) + np.float32(100),
    "mean of 4096 spreads": lambda shape: _random(shape) + np.float32(4096),
    "outlier pair": _outlier_pair,
    # Student's t with 1.5 degrees of freedom: no variance
    "heavy tails": lambda shape: np.asarray(np.random.default_rng(4).standard_t(1.5, shape), np.float32),
}


def accuracy(peers, quick, progress):
    """ulp of f32, by lnorm.verify: the largest error and the mean one."""
    rows, cols = (2, 256) if quick else (16, 768)
    weight, bias = _random(cols, seed=2), _random(cols, seed=3)
    results = []
    for name, data in DATA.items():
        progress(f"accuracy: {name}")
        x = data((rows, cols))
        reports = {peer.name: lnorm.verify(x, _once(peer, x, weight, bias), cols, weight, bias, _peers.EPS)
                   for peer in peers}
        results.append({"data": name, "rows": rows, "cols": cols,
                        "worst": {name: report.worst for name, report in reports.items()},
                        "mean": {name: report.mean for name, report in reports.items()}})
    return results


# ---- Promises --------------------------------------------------------------------------------------------------------
# Each gives, for one peer, a list of truths: one for each case that was looked at; None where there is nothing to see.


def _parameters(cols):
    return _random(cols, seed=2), _random(cols, seed=3)


def _alone_and_in_a_batch(peer):
    held = []
    for rows, cols in ((7, 5), (33, 64), (64, 257), (64, 768), (16, 1000)):
        x, parameters = _random((rows, cols)) + np.float32(3), _parameters(cols)
        batch = _once(peer, x, *parameters)
        for row, expected in ((x[i:i + 1], batch[i:i + 1].tobytes()) for i in (0, rows // 2, rows - 1)):
            # Where it lies in the batch, and in memory of its own, which begins at another alignment.
            held += [_once(peer, place, *parameters).tobytes() == expected for place in (row, row.copy())]
    return held


def _one_and_two_threads(peer):
    if not peer.set_threads:
        return None
    held = []
    for shape in ((1, 100003), (3, 50000), (64, 1024), (1021, 768)):
        results = []
        for threads in (2, 1):  # what is looked at next is one thread's again
            peer.set_threads(threads)
            results.append(_once(peer, _random(shape) + np.float32(3), *_parameters(shape[1])).tobytes())
        held.append(results[0] == results[1])
    return held


def _gives_the_bias(peer, rows, cols):
    """x with one value in each row, of which there are many kinds."""
    weight, bias = _parameters(cols)
    values = np.resize(np.array([0, 0.1, -3.3, 1e-30, 12345.678, 1e6, 1e18], np.float32), rows)
    y = _once(peer, np.repeat(values[:, None], cols, axis=1), weight, bias)
    return [bool(np.array_equal(row, bias)) for row in y]


def _constant_rows(peer):
    return [held for cols in (3, 100, 768, 1023) for held in _gives_the_bias(peer, 7, cols)]


def _one_column(peer):
    return _gives_the_bias(peer, 7, 1)


def _large(size, peer):
    held = []
    for cols in (2, 64, 768, 1023):
        weight, bias = _parameters(cols)
        signs = np.sign(_random((4, cols)))
        rows = np.concatenate([signs * np.float32(size), np.full((1, cols), size, np.float32)])
        with np.errstate(all="ignore"):  # NumPy's formula overflows aloud
            y = _once(peer, rows, weight, bias)
        held += [lnorm.verify(row, result, cols, weight, bias, _peers.EPS).worst <= RIGHT_ULP
                 for row, result in zip(rows, y)]
    return held


PROMISES = {
    "a row alone = in a batch": _alone_and_in_a_batch,
    "one thread = two threads": _one_and_two_threads,
    "constant rows give the bias": _constant_rows,
    "one column gives the bias": _one_column,
    "rows of 1e30 come out right": functools.partial(_large, 1e30),
    "rows of f32's max, too": functools.partial(_large, np.finfo(np.float32).max),
}


def promises(peers, progress):
    results = []
    for name, look in PROMISES.items():
        progress(f"promises: {name}")
        held = {peer.name: look(peer) for peer in peers}
        results.append({"promise": name, "held": {who: None if cases is None else sum(cases)
                                                  for who, cases in held.items()},
                        "cases": max(len(cases) for cases in held.values() if cases is not None)})
    return results


# ---- What is shown ---------------------------------------------------------------------------------------------------


def _number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def speed_rows(result):
    return [(r["case"], {who: f"{_number(us)} {r['ratio'][who]:5.2f}" for who, us in r["microseconds"].items()})
            for r in result["speed"]]


def accuracy_rows(result):
    return [(r["data"], {who: f"{_number(worst)} {_number(r['mean'][who]):>5}" for who, worst in r["worst"].items()})
            for r in result["accuracy"]]


def promise_rows(result):
    return [(r["promise"], {who: "yes" if held == r["cases"] else f"no {held}/{r['cases']}"
                            for who, held in r["held"].items() if held is not None}) for r in result["promises"]]


def sections(result):
    """(title, what the figures are, rows) of each table."""
    accuracy_shape = "{rows} x {cols}".format(**result["accuracy"][0])
    return [("Speed", f"Microseconds of a call, the least of {result['rounds']} rounds ({result['clock']}; all took "
             "turns), and how many times lnorm's that is (above 1: lnorm is faster).", speed_rows(result)),
            ("Accuracy", f"Error against the exact result in ulp of f32, {accuracy_shape} elements: the largest, "
             "and the mean.", accuracy_rows(result)),
            ("Promises", "Bits and special rows, in f32. no 5/12: held in 5 of 12 cases only; -: nothing to look at. "
             f"Right: no NaN, no infinity, within {RIGHT_ULP} ulp, which is three digits.",
             promise_rows(result))]


def table(names, rows):
    """Plain text: the first column to the left, the others to the right."""
    lines = [("", *names), *((label, *(cells.get(name, "-") for name in names)) for label, cells in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width
                                                            in zip(line[1:], widths[1:]))]).rstrip() for line in lines)


def _wrapped(text, width=100):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def heading(result):
    libraries = ", ".join(f"{name} {version}" for name, version in result["libraries"].items() if name != "lnorm fast")
    notes = [libraries, f"{result['machine']}, {result['isa']}; Python {result['python']}",
             *(f"left out: {name} ({why})" for name, why in result["missing"].items())]
    return notes


def text(result):
    parts = ["\n".join(map(_wrapped, heading(result)))]
    for title, what, rows in sections(result):
        parts.append(f"{title}\n{_wrapped(what)}\n\n{table(list(result['libraries']), rows)}")
    return "\n\n".join(parts)


def broken(result):
    """What lnorm itself does not keep on this machine, in words."""
    found = [f"{who}: {r['promise']}: {r['held'][who]} of {r['cases']} cases" for r in result["promises"]
             for who in PROMISED_ULP if r["held"][who] != r["cases"]]
    return found + [f"{who}: {r['data']}: {r['worst'][who]:.5g} ulp, promised {promised:g}" for r in result["accuracy"]
                    for who, promised in PROMISED_ULP.items() if not r["worst"][who] <= promised]


def _without_infinities(value):
    """JSON has none: null."""
    if isinstance(value, dict):
        return {key: _without_infinities(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_infinities(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


# ---- The verb --------------------------------------------------------------------------------------------------------


def _shape(given):
    parts = given.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"expected ROWSxCOLS, two integers of at least 1, got {given!r}")
    rows, cols = map(int, parts)
    if rows * cols > LARGEST_SHAPE:
        raise argparse.ArgumentTypeError(f"expected at most {LARGEST_SHAPE} elements, got {given!r}")
    return rows, cols


def _threads(given):
    if not given.isdecimal() or not 1 <= int(given) <= 4096:
        raise argparse.ArgumentTypeError(f"expected an integer from 1 to 4096, got {given!r}")
    return int(given)


def _libraries(given):
    names = given.split(",")
    for name in names:
        if name not in _peers.PEERS:
            raise argparse.ArgumentTypeError(f"expected some of {','.join(_peers.PEERS)}, got {name!r}")
    return list(dict.fromkeys(names))


def _file(given):
    path = pathlib.Path(given)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file in a directory that exists, got {given!r}")
    return path


def _options(arguments):
    parser = argparse.ArgumentParser(
        "python -m lnorm compare", description="Speed, accuracy and promises of lnorm beside NumPy, PyTorch and ONNX "
        "Runtime, as far as they are installed, on this machine. Exit status: 1 where lnorm breaks a promise of its "
        "own, 2 for wrong arguments.")
    parser.add_argument("--quick", action="store_true", help="fewer shapes, rounds and rows: a few seconds")
    parser.add_argument("--shape", type=_shape, action="append", metavar="ROWSxCOLS",
                        help="time layer norm on this shape in place of the usual ones; may be given several times")
    parser.add_argument("--threads", type=_threads, default=1, metavar="N",
                        help="of every library, for the speed; default: 1, CPU time of the thread; more: wall time")
    parser.add_argument("--libraries", type=_libraries, default=list(_peers.PEERS), metavar="NAME,...",
                        help=f"beside lnorm; default: {','.join(_peers.PEERS)}")
    parser.add_argument("--html", type=_file, metavar="FILE", help="write a page with plots, one file")
    parser.add_argument("--json", type=_file, metavar="FILE", help="write all figures")
    return parser.parse_args(arguments)


def _progress(message):
    """One line on stderr that is written over, where somebody may be looking."""
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)


def measure(given):
    peers, missing = _peers.find(given.libraries)
    bfloat16 = _bfloat16()
    if bfloat16 is None:
        missing["bf16"] = "No module named 'ml_dtypes'"
    cases = _cases(given.shape, given.quick, [np.dtype(np.float32), *([bfloat16] if bfloat16 else [])])
    before = lnorm.get_num_threads()
    try:
        return {
            "libraries": {peer.name: peer.version for peer in peers}, "missing": missing, "isa": lnorm.isa(),
            "machine": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
            "date": datetime.datetime.now().isoformat(" ", "minutes"),
            "clock": "CPU time of one thread" if given.threads == 1 else f"wall time, {given.threads} threads",
            "rounds": QUICK_ROUNDS if given.quick else ROUNDS,
            "speed": speed(peers, cases, given.threads, given.quick, _progress),
            "accuracy": accuracy(peers, given.quick, _progress),
            "promises": promises(peers, _progress),
        }
    finally:
        lnorm.set_num_threads(before)
        _progress("")


def compare(arguments):
    given = _options(arguments)
    result = measure(given)
    print(text(result))
    if given.json:
        replace_file(given.json, [json.dumps(_without_infinities(result), indent=1).encode() + b"\n"])
    if given.html:
        replace_file(given.html, [page(result, heading(result), sections(result)).encode()])
    failed = broken(result)
    for line in failed:
        print(f"lnorm compare: not kept on this machine: {line}", file=sys.stderr)
    return 1 if failed else 0
