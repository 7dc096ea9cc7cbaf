"""Every exact case up to the size medium, through the public functions; with LNORM_CASES=large in the environment (make
check-large) those of the size large, too."""
import math
import os

import numpy as np
import pytest
from exact_cases import DTYPES, all_cases, input_of, numbers, wrong

import lnorm

ERRORS = {"invalid_argument": ValueError, "shape_mismatch": ValueError, "unsupported_dtype": TypeError}
# What recomputed statistics leave of the tolerance for gradients; derived in tests/case_check.c.
RECOMPUTED = 2.0**-16
LARGE = os.environ.get("LNORM_CASES") == "large"
CASES = list(all_cases(("medium", "large") if LARGE else ("medium",)))


def parameter_shape(case):
    """Of weight and bias: the normalised extents, or the channels."""
    shape = case["shape"]
    if case["op"] in ("group_norm", "instance_norm", "batch_norm"):
        return shape[1:2]
    if "axes" in case:
        return [shape[i] for i in sorted(axis % len(shape) for axis in case["axes"])]
    given = case["normalized_shape"]
    return given if isinstance(given, list) else [given]


class Call:
    """A case as arguments."""

    def __init__(self, case):
        self.case, self.dtype = case, case["dtype"]
        self.op = case["op"].removesuffix("_double_backward")
        shape = case["shape"]
        self.x = input_of(case, "x", self.dtype["x"], shape, case.get("strides"))
        self.dy = input_of(case, "dy", self.dtype["x"], shape)
        self.v = input_of(case, "v", self.dtype["x"], shape)
        affine = case.get("affine_broadcast") or case.get("weight_shape") or parameter_shape(case)
        self.weight = input_of(case, "weight", self.dtype["weight"], affine)
        self.bias = input_of(case, "bias", self.dtype["bias"], case.get("affine_broadcast") or parameter_shape(case))
        self.options = {"weight": self.weight, "eps": float.fromhex(case["eps"])}
        if self.op == "group_norm":
            self.options["num_groups"] = case["groups"]
        elif self.op == "batch_norm":
            self.options["training"] = True
        elif self.op != "instance_norm":
            for name in ("normalized_shape", "axes"):
                if name in case:
                    self.options[name] = tuple(case[name]) if isinstance(case[name], list) else case[name]
            if "affine_broadcast" in case:
                self.options["affine_broadcast"] = True

    def forward(self, **more):
        bias = {} if self.op == "rms_norm" else {"bias": self.bias}
        return getattr(lnorm, self.op)(self.x, **self.options, **bias, **more)

    def forward_results(self):
        names = ("y", "rstd") if self.op == "rms_norm" else ("y", "mean", "rstd")
        return dict(zip(names, self.forward(return_stats=True)))

    def backward_results(self, module=lnorm):
        bias = {} if self.op == "rms_norm" else {"bias": self.bias}
        results = getattr(module, f"{self.op}_backward")(self.dy, self.x, **self.options, **bias)
        return dict(zip(("dx", "dweight", "dbias"), results))

    def double_backward_results(self):
        results = lnorm.layer_norm_double_backward(self.v, self.dy, self.x, **self.options)
        return dict(zip(("ddy", "dx", "dweight"), results))


TYPE_OF = {"y": "y", "mean": "stat", "rstd": "stat", "dx": "x", "ddy": "x", "dweight": "weight", "dbias": "bias"}


def check(case, results):
    sampled = "expect_sampled" in case
    expect = case["expect_sampled"] if sampled else case["expect"]
    for name, got in results.items():
        if got is None or name not in expect:
            continue
        dtype = case["dtype"][TYPE_OF[name]]
        assert got.dtype == DTYPES[dtype], name
        flat = np.ascontiguousarray(got).ravel()
        index = {"y": "y_index", "dx": "dx_index", "mean": "row_index", "rstd": "row_index"}.get(name)
        if sampled and index:
            flat = flat[expect[index]]
        due = np.array([value != "any" for value in expect[name]], bool)
        expected = numbers([value if value != "any" else "0" for value in expect[name]], dtype)
        assert flat.shape == expected.shape, name
        absolute = case.get("tolerance_abs", {}).get(name)
        if absolute is not None:
            absolute = float.fromhex(absolute) if isinstance(absolute, str) else absolute
            if name in ("dx", "dweight", "dbias", "ddy") and case["dtype"]["stat"] == "f32":
                absolute *= RECOMPUTED
        bad = wrong(flat, expected, dtype, case["tolerance_ulp"][name], absolute) & due
        assert not bad.any(), f"{name} at {np.flatnonzero(bad)[:5]}: {flat[bad][:5]}, expected {expected[bad][:5]}"


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[f"{name}-{case['id']}" for name, case in CASES])
def test_case(case):
    call = Call(case)
    if "expect_error" in case:
        with pytest.raises(ERRORS[case["expect_error"]]) as caught:
            call.forward()
        assert case.get("message", "") in str(caught.value)
        return
    if case["op"].endswith("double_backward"):
        check(case, call.double_backward_results())
        return
    results = call.forward_results()
    check(case, results)
    # The short way of dense arrays gives the same bits as the general one, which also returns the statistics.
    assert call.forward().tobytes() == results["y"].tobytes()
    if call.dy is not None:
        results, general = call.backward_results(), call.backward_results(lnorm._functions)
        check(case, results)
        for name, got in results.items():
            assert got is general[name] is None or got.tobytes() == general[name].tobytes(), name


def test_all_cases_are_there():
    """The numbers of tests/test_cases.c: 708 in all, 9 large, 2 huge."""
    assert len(CASES) == 708 - 2 - (0 if LARGE else 9)


def test_a_wrong_result_is_noticed():
    one = np.float32(1)
    next_one = np.nextafter(one, np.float32(2))
    third = np.nextafter(next_one, np.float32(2))
    a, b = np.array([one, np.nan], np.float32), np.array([third, 0], np.float32)
    assert wrong(a, b, "f32", 1).all()
    assert not wrong(np.array([one]), np.array([next_one]), "f32", 1).any()
    assert wrong(np.array([one]), np.array([next_one]), "f32", 0).any()
    assert not wrong(np.array([one]), np.array([third]), "f32", 0, math.ldexp(1, -22)).any()
