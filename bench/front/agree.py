"""Whether an implementation computed what lnorm computed. Compared are digests (data.h): evenly spread elements, the sum
of all magnitudes, and how many elements are infinite or NaN."""
import math

UNIT = {"f32": 2.0 ** -24, "f64": 2.0 ** -53, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}

# From here on a result is another one rather than a less accurate one. (PyTorch's gradients of bf16 parameters are: it
# sums them in bf16. So a finite difference is marked and told, but does not disqualify.)
WRONG = 2.0 ** -4

# Roundings of the result, and of the sums it depends on: the statistics enter y, and both statistics and sums of their
# own enter the gradients. Each sum of n terms has an error of some sqrt(n) units (n is the bound, which at n = 2^25
# would allow everything); the factor covers the handful of sums, and f32 statistics that partly cancel.
STEPS = 8


def tolerance(case):
    """Of elements relative to the largest one: what an implementation may differ that computes in f32 (f64 for f64)."""
    terms = max(case.shape) if case.op != "group" else case.elements // case.shape[0] // case.groups
    computed = UNIT["f64" if case.dtype == "f64" else "f32"]
    return 2 * UNIT[case.dtype] + STEPS * math.sqrt(terms) * computed


def difference(ours, theirs):
    """Of one array, relative to its largest sample; infinite where the arrays cannot be compared."""
    if ours["count"] != theirs["count"] or ours["not_finite"] or theirs["not_finite"]:
        return math.inf
    scale = max(map(abs, ours["samples"]))
    if scale == 0:
        return 0.0 if ours["samples"] == theirs["samples"] else math.inf
    samples = max(abs(a - b) for a, b in zip(ours["samples"], theirs["samples"])) / scale
    return max(samples, abs(ours["magnitude"] - theirs["magnitude"]) / ours["magnitude"])


def deviation(ours, theirs):
    """(difference, name) of the result that differs most; an infinite difference where one is missing."""
    missing = sorted(set(ours) - set(theirs))
    if missing:
        return math.inf, missing[0]
    return max((difference(ours[name], theirs[name]), name) for name in ours)


def judge(case, value):
    """"" for the same, "~" for less accurate than f32 arithmetic gives, "!" for another result."""
    if not value <= WRONG:
        return "!"
    return "~" if value > tolerance(case) else ""
