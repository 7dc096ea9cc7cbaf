"""python -m lnorm."""
import subprocess
import sys

import numpy as np
import pytest

import lnorm


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "lnorm", *map(str, arguments)], capture_output=True, text=True,
                          timeout=600)


def test_info():
    done = run("info")
    assert done.returncode == 0 and lnorm.isa() in done.stdout and lnorm.__version__ in done.stdout


@pytest.mark.parametrize("shift, status", [(0, 0), (1, 1)])
def test_verify(tmp_path, random, shift, status):
    x, weight = random.standard_normal((3, 4)).astype(np.float32), random.standard_normal(4).astype(np.float32)
    for name, array in (("x", x), ("w", weight), ("y", lnorm.layer_norm(x, 4, weight) + np.float32(shift))):
        np.save(tmp_path / name, array)
    done = run("verify", tmp_path / "x.npy", tmp_path / "y.npy", "--weight", tmp_path / "w.npy")
    assert done.returncode == status and "largest error" in done.stdout


def test_verify_of_other_files(tmp_path):
    """Status 1 would say that the result is wrong."""
    with open(tmp_path / "archive", "wb") as file:
        np.savez(file, np.ones(3))
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "text").write_text("1 2 3")
    for name, begins in ("archive", "50 4b 03 04"), ("nothing", ""), ("text", "31 20 32 20 33"):
        done = run("verify", tmp_path / name, tmp_path / name)
        assert done.returncode == 2
        assert f"{name}: expected an .npy file, got one that begins with '{begins}" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments, status", [((), 2), (("nothing",), 2), (("--help",), 0), (("info", "--help"), 0),
                                               (("verify", "no.npy", "no.npy"), 2)])
def test_usage(arguments, status):
    done = run(*arguments)
    assert done.returncode == status and done.stdout + done.stderr
    assert "Traceback" not in done.stderr
