"""A line of tests/vectors/same_bits.txt as an operation: what tests/vectors/README.md says of names."""
import re

import lnorm_independent as lnorm
from axes import product, reduced
from inputs import fnv

# x dy v and tangents; y dx ddy and their like; weight, bias, each with its gradient and tangent; statistics
MIXES = {"f64": ["f64"] * 5, "f32": ["f32"] * 5, "f16": ["f16"] * 4 + ["f32"], "bf16": ["bf16"] * 4 + ["f32"],
         "bf16/f32": ["bf16", "bf16", "f32", "f32", "f32"], "f16/f32": ["f16", "f16", "f32", "f32", "f64"],
         "f32/f64": ["f32", "f32", "f64", "f32", "f32"], "bf16-f64/f16+f32": ["bf16", "f64", "f16", "f32", "f64"],
         "f32-f64": ["f32"] + ["f64"] * 4, "bf16-f64": ["bf16"] + ["f64"] * 4}
IN, OUT, WEIGHT, BIAS, STATISTIC = range(5)

# In the order of seeds and of the hash: name, column of MIXES, passes that read it, passes that write it.
BOTH, F, B, D, M = "backward double_backward", "forward", "backward", "double_backward", "forward_mode"
ALL = " ".join((F, BOTH, M))
ROLES = [("x", IN, ALL, ""), ("weight", WEIGHT, ALL, ""), ("bias", BIAS, ALL, ""), ("y", OUT, "", F),
         ("mean", STATISTIC, "", F), ("rstd", STATISTIC, "", F), ("variance", STATISTIC, "", ""),
         ("running_mean", STATISTIC, F, F), ("running_var", STATISTIC, F, F), ("dy", IN, BOTH, ""),
         ("dx", OUT, "", BOTH), ("dweight", WEIGHT, "", BOTH), ("dbias", BIAS, "", B), ("v", IN, D, ""),
         ("ddy", OUT, "", D), ("x_tangent", IN, M, ""), ("weight_tangent", WEIGHT, M, ""),
         ("bias_tangent", BIAS, M, ""), ("y_tangent", OUT, "", M), ("mean_tangent", STATISTIC, "", M),
         ("rstd_tangent", STATISTIC, "", M)]

NOTES = {"": {}, "variance": {"given": "variance"}, "constant variance": {"given": "variance"}, "saved": {},
         "no weight": {"absent": "weight"}, "no bias": {"absent": "bias"}, "plain": {"absent": "weight bias"},
         "1 + weight": {"weight_offset": 1}, "accumulate": {"accumulate": 1},
         "1 + weight accumulate": {"weight_offset": 1, "accumulate": 1}, "only statistics": {"absent": "y"},
         "only y or dx": {"absent": "mean rstd dweight dbias"}, "only dweight": {"absent": "dx dbias"},
         "only dbias": {"absent": "dx dweight"}, "default eps": {"eps": lnorm.DEFAULT_EPS}, "eps 1e-12": {"eps": 1e-12},
         "eps 1e300": {"eps": 1e300}, "eps 1e-300": {"eps": 1e-300}, "axes 0 2": {"axes": [2, 0]},
         "axis -2": {"axes": [-2]}, "all axes": {"axes": [0, 1, 2, 3]}, "axis 0": {"axes": [0]},
         "2 groups": {"groups": 2}, "8 groups": {"groups": 8}, "1 group": {"groups": 1}, "momentum": {},
         "cumulative": {"batches": 3}, "one element": {}, "inference": {"given": "variance"},
         "weight [4,1,33] bias [1]": {"affine_broadcast": 1, "shapes": ([4, 1, 33], [1])},
         "weight [4,6,1] bias [33]": {"affine_broadcast": 1, "shapes": ([4, 6, 1], [33])},
         "weight [3,1,1,1] bias [8,1,1]": {"affine_broadcast": 1, "shapes": ([3, 1, 1, 1], [8, 1, 1])}}

LINE = re.compile(r"(\w+) (\w+) (\S+) (\w+) \[([\d,]+)\] (\w+)(?: (.*?))??( fast)?$")


class Name:
    """An operation: op for lnorm_independent.compute, and of each tensor (name, dtype, shape, fill, seed, how)."""

    def __init__(self, text):
        kind, pass_, mix, statistics, shape, fill, note, fast = LINE.match(text).groups()
        self.text, self.seed = text, fnv(text.encode())
        self.shape = [int(extent) for extent in shape.split(",")]
        self.note = dict(NOTES[note or ""])
        self.kind, self.pass_, self.mix, self.fill = kind, pass_, mix, fill
        self.given = self.note.pop("given", "rstd") if statistics != "computed" else None
        absent = self.note.pop("absent", "").split()
        if kind == "rms" and len(self.shape) == 2:
            absent += ["bias", "dbias"]
        if fast and note == "only dweight":
            absent.append("bias")
        affine = self.note.pop("shapes", None)
        self.op = {"kind": kind, "pass": pass_, "statistics": statistics, **self.note}
        if fast:
            self.op["arithmetic"] = "fast"
        if kind == "group" and "groups" not in self.note:
            self.op["groups"] = 2
        if fill in ("hard", "limits"):
            self.op["eps"] = 0.0
        self.tensors = [self.tensor(i, role, affine) for i, role in enumerate(ROLES)
                        if role[0] not in absent and self.use(role)]

    def use(self, role):
        name, _, reads, writes = role
        if self.kind == "rms" and name in ("mean", "mean_tangent"):
            return ""
        if name == "variance":
            return "read" if self.given == "variance" else ""
        if name in ("mean", "rstd") and self.given:
            return "read" if name == "mean" or self.given == "rstd" else ""
        if name.startswith("running") and (self.kind != "batch" or self.given):
            return ""
        return "write" if self.pass_ in writes.split() else "read" if self.pass_ in reads.split() else ""

    def tensor(self, index, role, affine):
        name, column = role[:2]
        seen, r, _ = reduced(self.kind, self.shape, self.op.get("axes"), self.op.get("groups", 0))
        if column in (WEIGHT, BIAS):
            shape = affine[column - WEIGHT] if affine else [self.shape[1]]
            if not affine and self.kind in ("layer", "rms"):
                shape = [self.shape[axis] for axis in sorted(r)]
        elif column == STATISTIC:
            shape = [product(seen[axis] for axis in range(len(seen)) if axis not in r)]
        else:
            shape = self.shape
        positive = name in ("rstd", "variance", "running_var")
        fill = self.fill if name == "x" else "positive" if positive else "normal"
        return name, MIXES[self.mix][column], shape, fill, self.seed + index, self.use(role)
