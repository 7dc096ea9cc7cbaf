"""The test vectors of docs/arithmetic.md, sections 14, 20 and 22: computed, and looked for in the text."""
import os
from functools import reduce
from operator import xor

import lnorm_independent as lnorm
from formats import round_to, widen

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS, COLS = 130, 600


def number(dtype, pattern):
    """As the document writes it: C's hex notation of f64, the pattern of the others."""
    return widen("f64", pattern).hex() if dtype == "f64" else "%0*x" % (8 if dtype == "f32" else 4, pattern)


def folded(dtype, values):
    return "%0*x" % (16 if dtype == "f64" else 8, reduce(xor, values, 0))


def dense(dtype, shape, values):
    return dtype, shape, [round_to(dtype, value) for value in values]


def small():
    """The four groups of section 20: x, weight, bias, kind."""
    x = [(7 * i % 23 - 11) / 8 for i in range(20)]
    weight, bias = [1 + i / 32 for i in range(20)], [(i % 3 - 1) / 4 for i in range(20)]
    return [([1, 2, 3, 4, 6], [1, 1, 2, -1, 0.5], [0, 0.5, 0, 1, -0.25], "layer"), (x, weight, bias, "layer"),
            ([1024 + (7 * i % 23 - 11) / 512 for i in range(20)], weight, bias, "layer"), (x, weight, None, "rms")]


def short_groups():
    rows = []
    for i, (x, weight, bias, kind) in enumerate(small(), 1):
        def run(given, out, arithmetic):
            n = len(x)
            tensors = {"x": dense(given, [1, n], x), "weight": dense(given, [n], weight), "y": (out, [1, n], None),
                       "rstd": ("f64", [1], None)}
            if kind == "layer":
                tensors["mean"] = ("f64", [1], None)
                tensors["bias"] = dense(given, [n], bias)
            return lnorm.compute({"kind": kind, "arithmetic": arithmetic}, tensors)

        def row(results, out):
            mean = number("f64", results["mean"][0]) if "mean" in results else ""
            y = results["y"]
            return [mean, number("f64", results["rstd"][0]), number(out, y[0]), number(out, y[-1]), folded(out, y)]

        rows.append([str(i)] + row(run("f32", "f64", "accurate"), "f64"))
        ends = [run("f32", out, "accurate")["y"] for out in ("f32", "f16", "bf16")]
        rows.append([str(i)] + ["%s %s" % (number(out, y[0]), number(out, y[-1]))
                                for out, y in zip(("f32", "f16", "bf16"), ends)])
        rows += [[str(i), given] + row(run(given, "f32", "fast"), "f32")
                 for given in ("f32", "bf16") if given == "f32" or i != 3]
    return rows


def large(dtype, shift=None):
    """The layer norm of 130 rows and 600 columns, its inputs in a type; shift makes section 14's second x of one."""
    cells = [(i, j) for i in range(ROWS) for j in range(COLS)]
    x = [((31 * i + 7 * j) % 101 - 50) / 16 for i, j in cells]
    w = [((5 * i + 11 * j) % 97 - 48) / 32 for i, j in cells]
    every, row = [ROWS, COLS], [COLS]
    return {"x": dense(dtype, every, [shift(value) for value in x] if shift else x), "v": dense(dtype, every, w),
            "dy": dense(dtype, every, [((17 * i + 13 * j) % 89 - 44) / 32 for i, j in cells]),
            "x_tangent": dense(dtype, every, w), "weight": dense(dtype, row, [1 + j % 16 / 32 for j in range(COLS)]),
            "weight_tangent": dense(dtype, row, [(j % 7 - 3) / 8 for j in range(COLS)]),
            "bias_tangent": dense(dtype, row, [(j % 5 - 2) / 8 for j in range(COLS)]),
            "bias": dense(dtype, row, [(j % 3 - 1) / 4 for j in range(COLS)])}


INPUTS = {"forward": ["x", "weight", "bias"], "backward": ["x", "weight", "dy"],
          "double_backward": ["x", "weight", "dy", "v"],
          "forward_mode": ["x", "weight", "x_tangent", "weight_tangent", "bias_tangent"]}
OUTPUTS = {"forward": ["y", "mean", "rstd"], "backward": ["dx", "dweight", "dbias"],
           "double_backward": ["ddy", "dx", "dweight"],
           "forward_mode": ["y_tangent", "mean_tangent", "rstd_tangent"]}


def passes(tensors, out, chosen, **op):
    """(pass, output, first element, exclusive or) of some passes over `large`."""
    for pass_ in chosen:
        given = {name: tensors[name] for name in INPUTS[pass_]}
        given.update({name: (out, [COLS] if name in ("dweight", "dbias") else [ROWS, COLS], None)
                      for name in OUTPUTS[pass_]})
        results = lnorm.compute({"pass": pass_, **op}, given)
        for name in OUTPUTS[pass_]:
            yield pass_, name, number(out, results[name][0]), folded(out, results[name])


def titled(pass_, name):
    """The first cells of a row: the pass is named in its first row only."""
    return [pass_.replace("_", " ") if name == OUTPUTS[pass_][0] else "", name]


def narrow_passes():
    for pass_, name, first, fold in passes(large("f32"), "f64", ["backward", "double_backward", "forward_mode"]):
        # in section 20 the double backward's dx stands first
        title = titled(pass_, name) if pass_ != "double_backward" else [None, name]
        yield title + [first, "" if name in ("mean_tangent", "rstd_tangent") else fold]


def wide_passes():
    first = passes(large("f64"), "f64", list(INPUTS))
    second = passes(large("f64", lambda x: 2.0**40 + x / 2**8), "f64", list(INPUTS), eps=0.0)
    for (pass_, name, a, b), (_, _, c, d) in zip(first, second):
        yield titled(pass_, name) + [a, b, c, d]


def fast_passes():
    for dtype in ("f32", "bf16"):
        for _, name, first, fold in passes(large(dtype), "f32", ["forward", "backward"], arithmetic="fast"):
            if name not in ("mean", "rstd"):
                yield [name, first, fold]


def channels():
    """Group norm and batch norm of [3, 6, 10, 10]."""
    shape, count = [3, 6, 10, 10], 1800
    x = dense("f32", shape, [(7 * k % 101 - 50) / 16 for k in range(count)])
    dy = dense("f32", shape, [(13 * k % 89 - 44) / 32 for k in range(count)])
    weight = dense("f32", [6], [1 + c / 8 for c in range(6)])
    bias = dense("f32", [6], [(c - 3) / 4 for c in range(6)])
    for op in ({"kind": "group", "groups": 2}, {"kind": "batch"}):
        tensors = {"x": x, "weight": weight, "bias": bias, "y": ("f64", shape, None)}
        if op["kind"] == "batch":
            tensors["running_mean"] = dense("f64", [6], [0.0] * 6)
            tensors["running_var"] = dense("f64", [6], [1.0] * 6)
        results = lnorm.compute(op, tensors)
        results.update(lnorm.compute({**op, "pass": "backward"}, {
            "x": x, "weight": weight, "dy": dy, "dx": ("f64", shape, None), "dweight": ("f64", [6], None),
            "dbias": ("f64", [6], None)}))
        for name in ("y", "running_mean", "running_var", "dx", "dweight", "dbias"):
            if name not in results or (op["kind"] == "batch" and name == "dbias"):
                continue
            whole = name in ("y", "dx")
            first = "" if whole and op["kind"] == "batch" else number("f64", results[name][0])
            yield [op["kind"] + " norm" if name == "y" else "", name, first,
                   folded("f64", results[name]) if whole else ""]


def rows():
    yield from short_groups()
    for table in (narrow_passes, channels, fast_passes, wide_passes):
        yield from table()


def found():
    """The computed rows that docs/arithmetic.md has not, and how many there are."""
    with open(os.path.join(ROOT, "docs", "arithmetic.md"), encoding="utf-8") as text:
        table = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text
                 if line.startswith("|")]
    missing, count = [], 0
    for row in rows():
        count += 1
        if not any(len(row) == len(cells) and all(a in (None, b) for a, b in zip(row, cells)) for cells in table):
            missing.append(row)
    return missing, count
