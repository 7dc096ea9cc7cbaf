"""Docstrings, their examples, and the stubs."""
import ast
import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import lnorm

PACKAGE = pathlib.Path(lnorm.__file__).parent
PUBLIC = [name for name in lnorm.__all__]
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


@pytest.mark.parametrize("name", ["lnorm", *PUBLIC])
def test_examples(name):
    thing = lnorm if name == "lnorm" else getattr(lnorm, name)
    assert thing.__doc__, name
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {"lnorm": lnorm, "np": np}, name, None, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert result.failed == 0
    if name not in ("Explanation", "Report", "set_num_threads", "get_num_threads", "isa"):
        assert result.attempted > 0, "no example"


def test_the_page():
    result = doctest.testfile(str(DOCUMENT), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0 and result.attempted > 10


def test_the_front_page(capsys):
    """README.md's Python, one piece after the other, as a reader would paste it."""
    pieces = re.findall(r"(?ms)^```python\n(.*?)^```$", (DOCUMENT.parents[1] / "README.md").read_text(encoding="utf-8"))
    names = {}
    for piece in pieces:
        if "torch" in piece:
            pytest.importorskip("torch")
        exec(compile(piece, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "within 1 ulp    49152 of 49152" in printed and "2 norm layers replaced" in printed


def stub_functions():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    return {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "execute", "describe", "set_num_threads", "get_num_threads",
                                  "isa", "rows_forward", "rows_backward", "set_general", "explain"])
def test_stubs_name_the_arguments_that_there_are(name):
    arguments = stub_functions()[name]
    given = [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    assert list(inspect.signature(getattr(lnorm._core, name)).parameters) == given


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward"])
def test_both_ways_take_the_same_arguments(name):
    short, general = (inspect.signature(getattr(module, name)) for module in (lnorm._core, lnorm._functions))
    assert [(p.name, p.default, p.kind) for p in short.parameters.values()] == [
        (p.name, p.default, p.kind) for p in general.parameters.values()]


def test_stubs_are_what_is_there(tmp_path):
    """Of the NumPy layer: lnorm.torch and lnorm.onnx follow packages whose own types are loose."""
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n"
                                       "[mypy-lnorm.torch.*,lnorm.onnx,lnorm._peers]\nignore_errors = True\n"
                                       "[mypy-torch.*]\nfollow_imports = skip\n")
    (tmp_path / "others").write_text("lnorm\\.(torch|onnx).*\n")
    command = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "mypy.ini", "--allowlist", "others",
               "--ignore-unused-allowlist", "lnorm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
