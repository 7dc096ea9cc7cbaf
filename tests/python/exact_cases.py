"""The cases of tests/cases, and how a result is compared with what one expects (tests/cases/README.md)."""
import json
import pathlib

import ml_dtypes
import numpy as np

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent / "cases"
DTYPES = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32), "f16": np.dtype(np.float16),
          "bf16": np.dtype(ml_dtypes.bfloat16), "i64": np.dtype(np.int64)}
_SMALLEST = {"f64": -1074, "f32": -149, "f16": -24, "bf16": -133}
_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def all_cases(sizes):
    """(file's name, case) of every case of one of the sizes."""
    for path in sorted(DIRECTORY.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if case.get("size", "medium") in sizes:
                yield path.stem, case


def numbers(values, dtype):
    """A flat array of the hex floats of a case; None for None."""
    if values is None:
        return None
    if dtype == "i64":
        return np.array([int(float.fromhex(value)) if isinstance(value, str) else value for value in values], np.int64)
    exact = np.array([float.fromhex(value) for value in values], np.float64)
    with np.errstate(all="ignore"):
        rounded = exact.astype(DTYPES[dtype])
    assert np.array_equal(rounded.astype(np.float64), exact, equal_nan=True), "a value that its type does not have"
    return rounded


def generated(rule, count, dtype):
    """mix24 of the README."""
    def unsigned(number):
        return np.uint64(number & (2**64 - 1))

    with np.errstate(over="ignore"):
        z = unsigned(rule["seed"]) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * unsigned(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * unsigned(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * unsigned(0x94D049BB133111EB)
    k = ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.int64)
    return np.ldexp(((k >> rule["s"]) + rule["a"]).astype(np.float64), rule["e"]).astype(DTYPES[dtype])


def input_of(case, name, dtype, shape, strides=None):
    """x, dy, v, weight or bias as an array of `shape`; flat where a case has a parameter of a wrong length."""
    if f"{name}_gen" in case:
        return generated(case[f"{name}_gen"], int(np.prod(shape)), dtype).reshape(shape)
    flat = numbers(case.get(name), dtype)
    if flat is None:
        return None
    if strides is None:
        return flat.reshape(shape) if flat.size == np.prod(shape) else flat
    step = flat.dtype.itemsize
    return np.lib.stride_tricks.as_strided(flat, shape, [stride * step for stride in strides])


def _order(array):
    """Numbers such that neighbours of a type differ by 1, and both zeros are 0."""
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    largest = np.int64(2 ** (8 * array.dtype.itemsize - 1) - 1)
    return np.where(bits < 0, -(bits & largest), bits)


def wrong(got, expected, dtype, ulp, absolute=None):
    """True where an element fails: NaN against a number, or further off than both tolerances allow. Infinities count
    as the number after the largest."""
    bad_nan = np.isnan(got) != np.isnan(expected)
    a, b = _order(got).astype(object), _order(expected).astype(object)
    far = np.array([abs(x - y) > ulp for x, y in zip(a, b)], bool) & ~np.isnan(expected)
    if absolute is not None and far.any():
        with np.errstate(all="ignore"):
            x, y = got.astype(np.float64), expected.astype(np.float64)
            step = np.ldexp(1.0, np.maximum(np.frexp(y)[1] - _DIGITS[dtype], _SMALLEST[dtype]))
            far &= ~(np.abs(x - y) <= absolute + ulp * step)
    return bad_nan | far
