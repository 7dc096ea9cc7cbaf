"""python -m lnorm compare: does it see what a library gets wrong, and does it show what it saw?"""
import copy
import json
import math
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import lnorm
from lnorm import _compare, _compare_page, _peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--quick", "--libraries", "numpy", "--shape", "3x40"]


@pytest.fixture(scope="module")
def result():
    before = lnorm.get_num_threads()
    lnorm.set_num_threads(3)
    try:
        measured = _compare.measure(_compare._options([*QUICK, "--threads", "2"]))
        assert lnorm.get_num_threads() == 3  # it is put back
        return measured
    finally:
        lnorm.set_num_threads(before)


def peers_of(name):
    if name == "lnorm":
        return [_peers.Lnorm(), _peers.Lnorm(fast=True)]
    pytest.importorskip(name)
    return [_peers.PEERS[name]()]


# ---- The libraries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["lnorm", *_peers.PEERS])
def test_peers_compute_the_norm(name, dtype, random):
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else np.float32
    x, weight, bias = (random.standard_normal(shape, np.float32).astype(dtype) for shape in ((6, 96), 96, 96))
    image = x.reshape(2, 8, 6, 6)
    for peer in peers_of(name):
        for groups, given, parameters in ((None, x, (weight, bias)), (4, image, (weight[:8], bias[:8]))):
            norm = peer.prepare(given, *parameters, groups)
            if norm is None:
                assert name == "onnxruntime"
                continue
            y = peer.array(norm())
            assert y.dtype == given.dtype and y.shape == given.shape
            if groups is None:
                # f32: twice what was seen with four libraries; bf16: one more rounding than a correct result has
                assert lnorm.verify(given, y, 96, *parameters).worst < (8 if dtype == np.float32 else 1.5)
            else:
                exact = lnorm.group_norm(given.astype(np.float64), groups, *(p.astype(np.float64) for p in parameters))
                assert np.abs(y.astype(np.float64) - exact).max() < (1e-5 if dtype == np.float32 else 0.05)


@pytest.mark.parametrize("groups", [None, 2])
def test_the_model_is_one_for_the_package_onnx(groups):
    onnx = pytest.importorskip("onnx")
    weight, bias = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    model = onnx.load_model_from_string(_peers.onnx_model((2, 4), weight, bias, groups))
    onnx.checker.check_model(model)
    for value in (*model.graph.input, *model.graph.output):
        assert [d.dim_value for d in value.type.tensor_type.shape.dim] == [2, 4]
    (node,) = model.graph.node
    own = {"axis": -1} if groups is None else {"num_groups": groups}
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes == {**own, "epsilon": pytest.approx(1e-5, rel=1e-7)}
    assert [onnx.numpy_helper.to_array(t).tolist() for t in model.graph.initializer] == [weight.tolist(), bias.tolist()]


def test_what_is_missing_is_named_once(result, monkeypatch):
    class Absent:
        name = "Absent"

        def __init__(self):
            raise ModuleNotFoundError("No module named 'absent'")

    monkeypatch.setitem(_peers.PEERS, "absent", Absent)
    found, missing = _peers.find(["numpy", "absent"])
    assert [peer.name for peer in found] == ["lnorm", "lnorm fast", "NumPy"]
    assert missing == {"Absent": "No module named 'absent'"}
    assert _compare.text({**result, "missing": missing}).count("Absent") == 1


# ---- What is measured ------------------------------------------------------------------------------------------------


class Wrong(_peers.NumPy):
    """Right but for what `spoil` does to a float64 result; it is told the number of threads, too."""

    def __init__(self, spoil):
        self.spoil, self.threads = spoil, 1

    def set_threads(self, threads):
        self.threads = threads

    def prepare(self, x, weight, bias, groups=None):
        y = lnorm.layer_norm(x.astype(np.float64), x.shape[1], weight, bias)
        return lambda: self.spoil(self, y).astype(np.float32)


SPOILERS = {
    "a row alone = in a batch": lambda peer, y: y * (1 + 1e-6 * (len(y) > 1)),
    "one thread = two threads": lambda peer, y: y * (1 + 1e-6 * peer.threads),
    "constant rows give the bias": lambda peer, y: y + 1e-6 * (y.shape[1] > 1),
    "one column gives the bias": lambda peer, y: y + 1e-6 * (y.shape[1] == 1),
    "rows of 1e30 come out right": lambda peer, y: y * 1.01,
    "rows of f32's max, too": lambda peer, y: np.full_like(y, np.nan),
}


@pytest.mark.parametrize("name", _compare.PROMISES)
def test_a_broken_promise_is_seen(name):
    look = _compare.PROMISES[name]
    assert all(look(Wrong(lambda peer, y: y)))
    assert not all(look(Wrong(SPOILERS[name])))


def test_lnorm_keeps_them(result):
    assert _compare.broken(result) == []
    assert result["clock"] == "wall time, 2 threads"
    assert {who for r in result["promises"] for who in r["held"]} == {"lnorm", "lnorm fast", "NumPy"}


def test_figures_are_those_of_the_clock():
    """On a clock of our own they are exact."""
    now = 0

    def takes(ns):
        def call():
            nonlocal now
            now += ns

        return call

    found = _compare._interleaved({"a": takes(20), "b": takes(30)}, lambda: now, 4, 1000)
    assert found == {"a": 20, "b": 30}


# ---- What is shown ---------------------------------------------------------------------------------------------------


def spoilt(result):
    result = copy.deepcopy(result)
    result["promises"][0]["held"]["lnorm"] -= 1
    result["accuracy"][0]["worst"]["lnorm"] = 0.502
    result["accuracy"][1]["worst"]["lnorm fast"] = math.inf
    return result


def test_the_text_fits_a_terminal(result):
    wide = {**result, "libraries": {name: "1.0" for name in _compare_page._LOOKS}}
    wide["speed"] = [{"case": "group norm 8x64x28x28 bf16", "microseconds": dict.fromkeys(wide["libraries"], 123456.7),
                      "ratio": dict.fromkeys(wide["libraries"], 12.345)}]
    lines = _compare.text(wide).splitlines()
    assert max(map(len, lines)) <= 100
    # Columns are aligned: every line of a table ends where its heading does.
    head = next(i for i, line in enumerate(lines) if line.split() == " ".join(wide["libraries"]).split())
    assert len(lines[head]) == len(lines[head + 1]) and lines[head + 1].startswith("group norm")
    assert lines[head + 1].count("123457 12.35") + lines[head + 1].count("123457 12.34") == 5


def test_failures_of_lnorm_are_said(result, monkeypatch, capsys):
    monkeypatch.setattr(_compare, "measure", lambda given: spoilt(result))
    assert _compare.compare(QUICK) == 1
    shown = capsys.readouterr()
    cases = result["promises"][0]["cases"]
    assert f"no {cases - 1}/{cases}" in shown.out
    assert f"lnorm: a row alone = in a batch: {cases - 1} of {cases} cases" in shown.err
    assert f"lnorm: normal: 0.502 ulp, promised {_compare.PROMISED_ULP['lnorm']:g}\n" in shown.err
    assert f"lnorm fast: mean of 100 spreads: inf ulp, promised {_compare.PROMISED_ULP['lnorm fast']:g}\n" in shown.err


def test_the_promises_are_those_of_the_header():
    """lnorm.h says it in prose; who changes a number there is sent to the other place."""
    header = " ".join((ROOT / "include/lnorm.h").read_text().replace("\n *", " ").split())
    accurate = re.search(r"y in f32, f16 and bf16 is within ([\d.]+) ulp of max", header)
    fast = re.search(r"LNORM_FAST .*? y is within ([\d.]+) ulp of f32", header)
    assert _compare.PROMISED_ULP == {"lnorm": float(accurate.group(1)), "lnorm fast": float(fast.group(1))}


def test_files(result, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_compare, "measure", lambda given: spoilt(result))
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    figures.write_text("old")
    _compare.compare([*QUICK, "--html", str(page), "--json", str(figures)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json", "page.html"]
    read = json.loads(figures.read_text(), parse_constant=lambda name: pytest.fail(f"{name} in the JSON file"))
    assert read["speed"] == result["speed"] and read["accuracy"][1]["worst"]["lnorm fast"] is None
    text = page.read_text()
    assert not re.search(r"https?:|src=|href=|@import|url\(|nan", text)
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    # A mark for each figure, and one for each library in the legend
    assert [len(svg.findall("path")) for svg in pictures] == [3 * len(result["speed"]) + 3, 3 * len(_compare.DATA) + 3]
    assert text.count('class="no"') == sum(
        held not in (None, r["cases"]) for r in spoilt(result)["promises"] for held in r["held"].values())


def test_the_plot_is_logarithmic():
    svg = ElementTree.fromstring(_compare_page.plot("t", [("row", {"lnorm": 1.0, "NumPy": 10.0, "PyTorch": 100.0,
                                                                   "ONNX Runtime": math.inf})],
                                                    ["lnorm", "NumPy", "PyTorch", "ONNX Runtime"], 1))
    across = [float(re.match(r"translate\(([\d.]+) ", path.get("transform")).group(1)) for path in svg.findall("path")]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)
    assert across[2] < across[3] <= 900


# ---- The command line ------------------------------------------------------------------------------------------------


def test_the_verb(tmp_path):
    done = subprocess.run([sys.executable, "-m", "lnorm", "compare", *QUICK, "--json", tmp_path / "figures.json"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no terminal, no progress
    titles = ("Speed", "Accuracy", "Promises")
    assert [line for line in done.stdout.splitlines() if line in titles] == list(titles)
    cases = [r["case"] for r in json.loads((tmp_path / "figures.json").read_text())["speed"]]
    assert cases[0] == "3x40 f32" and all(case.startswith("3x40") for case in cases)


@pytest.mark.parametrize("arguments, said", [
    (["--shape", "64"], "argument --shape: expected ROWSxCOLS, two integers of at least 1, got '64'"),
    (["--shape", "0x3"], "argument --shape: expected ROWSxCOLS, two integers of at least 1, got '0x3'"),
    (["--shape", "99999x99999"], "argument --shape: expected at most 268435456 elements, got '99999x99999'"),
    (["--threads", "0"], "argument --threads: expected an integer from 1 to 4096, got '0'"),
    (["--libraries", "numpy,jax"], "argument --libraries: expected some of numpy,torch,onnxruntime, got 'jax'"),
    (["--html", "no/such/page.html"], "argument --html: expected a file in a directory that exists, got 'no/such/"),
])
def test_wrong_arguments(arguments, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        _compare.compare(arguments)
    assert stopped.value.code == 2 and said in capsys.readouterr().err
