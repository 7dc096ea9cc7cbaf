"""explain: what the program draws, from Python."""
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import lnorm

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs/pictures"
PROGRAM = os.environ.get("LNORM_PROGRAM")
SVG = "{http://www.w3.org/2000/svg}"

# Arguments of the program, and of explain
CASES = {
    "4,2,3 --normalized-shape 2,3": ((4, 2, 3), {"normalized_shape": (2, 3)}),
    "4,2,3": ([4, 2, 3], {}),
    "7": (7, {}),
    "2,3 --axes 0 --eps 0.5": ((2, 3), {"axes": 0, "eps": 0.5}),
    "40,600,7 --op rms --axes 0,-1": ((40, 600, 7), {"op": "rms", "axes": [0, -1]}),
    "2,4,3,3 --op group --groups 2": ((2, 4, 3, 3), {"op": "group", "num_groups": 2}),
    "2,4,3,3 --op instance": ((2, 4, 3, 3), {"op": "instance"}),
    "2,4,3,3 --op batch": ((2, 4, 3, 3), {"op": "batch"}),
    "3,0 --axes 0": ((3, 0), {"axes": 0}),
}


def program(*arguments, utf8=True):
    if not PROGRAM:
        pytest.skip("LNORM_PROGRAM: expected the path of the program lnorm, got nothing: make check sets it")
    environment = {**os.environ, "LC_ALL": "C.UTF-8" if utf8 else "C", "NO_COLOR": "1"}
    done = subprocess.run([PROGRAM, "explain", *map(str, arguments)], env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("arguments", CASES)
def test_shapes_as_the_program(arguments):
    shape, keywords = CASES[arguments]
    for utf8 in (True, False):
        assert str(lnorm.explain(shape, ascii=not utf8, **keywords)) == program(*arguments.split(), utf8=utf8)
    assert lnorm.explain(shape, width=200, **keywords).svg == program(*arguments.split(), "--svg", "-")


# Few elements, and more than are shown; of strides that a file has, and that no file has.
@pytest.mark.parametrize("keywords, arguments", [({}, ""), ({"op": "rms"}, "--op rms"), ({"axes": 0}, "--axes 0"),
                                                 ({"op": "group", "num_groups": 2}, "--op group --groups 2")])
@pytest.mark.parametrize("shape", [(3, 4), (5, 4, 90)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_values_as_the_program(tmp_path, random, shape, dtype, keywords, arguments):
    x = (random.standard_normal(shape) * 5).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    due = program(tmp_path / "x.npy", *arguments.split())
    reversed_twice = np.ascontiguousarray(x[::-1])[::-1]
    for array in (x, np.asfortranarray(x), reversed_twice, memoryview(np.ascontiguousarray(x))):
        explained = lnorm.explain(array, **keywords)
        assert str(explained) == due
    assert explained.svg == lnorm.explain(x, **keywords).svg


@pytest.mark.parametrize("name, shape, keywords", [
    ("layer-norm", (4, 2, 3), {"normalized_shape": (2, 3)}), ("batch-norm", (2, 4, 3, 3), {"op": "batch"}),
    ("group-norm", (2, 4, 3, 3), {"op": "group", "num_groups": 2}), ("instance-norm", (2, 4, 3, 3), {"op": "instance"})])
def test_the_svg_is_that_of_the_documents(name, shape, keywords):
    explained = lnorm.explain(shape, **keywords)
    assert explained._repr_svg_() == explained.svg == (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(explained.svg)
    assert root.tag == SVG + "svg"
    numbers = [text.text for text in root.iter(SVG + "text") if text.get("class") == "on number"]
    assert len(numbers) == np.prod(shape)  # all of it is shown


def test_values_are_those_of_the_functions(random):
    x = random.standard_normal((3, 4)).astype(np.float32)
    y, mean, _ = lnorm.layer_norm(x, 4, return_stats=True)
    groups = re.findall(r"Group (\d): x\[\1, :\], mean (\S+), variance (\S+)\n  x +(.*)\n  y +(.*)\n",
                        str(lnorm.explain(x)))
    assert len(groups) == 3
    for i, (_, shown_mean, shown_variance, shown_x, shown_y) in enumerate(groups):
        assert [float(shown_mean), float(shown_variance)] == pytest.approx([mean[i, 0], x[i].var()], rel=1e-5)
        assert list(map(float, shown_x.split())) == pytest.approx(list(x[i]), rel=1e-5)
        assert list(map(float, shown_y.split())) == pytest.approx(list(y[i]), rel=1e-5)


def test_other_arrays():
    x = [[1.0, 2.0], [3.0, 5.0]]
    due = str(lnorm.explain(np.array(x)))
    assert "Group 1: x[1, :], mean 4, variance 1" in due
    assert str(lnorm.explain(x)) == due
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(x, dtype=torch.float64)
    assert str(lnorm.explain(tensor)) == due
    assert "Values" not in str(lnorm.explain(tensor.shape)) and str(lnorm.explain(tensor.shape)) == str(
        lnorm.explain((2, 2)))
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    assert "mean 4, variance 1" in str(lnorm.explain(np.array(x, bf16)))


def test_a_group_too_large_to_be_shown():
    x = np.broadcast_to(np.float32(1), (2, 2**22 + 1))
    assert "4194305 elements: too many to read here. The functions have return_stats=True." in str(lnorm.explain(x))


def test_width_and_repr():
    narrow, wide = (str(lnorm.explain((4, 4, 30), width=width)) for width in (40, 200))
    assert max(map(len, narrow.splitlines())) <= 40 < max(map(len, wide.splitlines())) <= 200
    explained = lnorm.explain((2, 3), ascii=True)
    assert repr(explained) + "\n" == str(explained) and str(explained).isascii()


@pytest.mark.parametrize("shape, keywords, exception, said", [
    ((2, 3), {"normalized_shape": 2}, ValueError,
     "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]"),
    ((2, 3), {"normalized_shape": 2.5}, TypeError,
     "normalized_shape: expected an integer or a sequence of integers, got 2.5"),
    ((2, 3), {"axes": 5}, ValueError, "axes: expected axes from -2 to 1, got 5"),
    ((2, 3), {"op": "layr"}, ValueError, "op: expected 'layer', 'rms', 'group', 'instance' or 'batch', got 'layr'"),
    ((2, 3), {"op": []}, TypeError, "op: expected 'layer', 'rms', 'group', 'instance' or 'batch', got []"),
    ((2, 3), {"op": "group"}, ValueError,
     "num_groups: expected an integer with op='group', None with any other, got None"),
    ((2, 3), {"num_groups": 1}, ValueError,
     "num_groups: expected an integer with op='group', None with any other, got 1"),
    ((2, 3), {"op": "group", "num_groups": "1"}, TypeError, "num_groups: expected an integer, got '1'"),
    ((2, 3), {"op": "group", "num_groups": 2}, ValueError, "Expected number of channels in input to be divisible by "
                                                           "num_groups, but got input of shape [2, 3] and num_groups=2"),
    ((2, 3), {"eps": -1}, ValueError, "eps: expected a finite number of at least 0, got -1"),
    ((2, 3), {"eps": "x"}, TypeError, "eps: expected a number, got 'x'"),
    ((2, 3), {"width": 39}, ValueError, "width: expected 40 to 240 characters, got 39"),
    ((2, -3), {}, ValueError, "x: expected extents of at least 0, got shape [2, -3]"),
    ((), {}, ValueError, "x: expected at least 1 dimension to normalise over, got 0"),
    ((1,) * 17, {}, ValueError, "x: expected at most 16 integers, got 17"),
    (2**70, {}, ValueError, f"x: expected an integer below 2^63, got {2**70}"),
    (None, {}, TypeError, "x: expected elements of float64, float32, float16 or bfloat16, got object"),
    (np.ones((2, 3), int), {}, TypeError, "x: expected elements of float64, float32, float16 or bfloat16, got int64"),
    (np.ma.ones(3), {}, TypeError,
     "x: expected an array without a mask, got a numpy.ma.MaskedArray (its filled() is one)"),
])
def test_wrong_arguments(shape, keywords, exception, said):
    with pytest.raises(exception) as raised:
        lnorm.explain(shape, **keywords)
    assert str(raised.value) == said
