"""The extension under AddressSanitizer and UndefinedBehaviorSanitizer: python/core and what is drawn of cli/, which no
other test sees with them, linked with the library as the package's build has left it. (The library's own files have
their guard pages and `make check-sanitizers`.)

The tests of what drives the C code run in a process of their own, with a copy of the package around that extension."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import lnorm

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ("arrays", "errors", "explain", "functions")
FLAGS = ["-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=undefined", "-fvisibility=hidden", "-DLNORM_STATIC"]


def library_objects():
    """Of the newest build: setup.py keeps one for each version of Python."""
    builds = sorted(ROOT.glob("build/python/temp*/src"), key=lambda folder: folder.stat().st_mtime)
    return sorted(builds[-1].rglob("*.o")) if builds else []


def sanitizer(compiler):
    """The runtime that has to be there before the interpreter; None where the compiler has none."""
    path = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return path if os.path.isabs(path) else None


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder of a package lnorm, and the environment in which it loads."""
    compiler = shutil.which("gcc")
    runtime = compiler and sanitizer(compiler)
    objects = library_objects()
    if not sys.platform.startswith("linux") or not runtime or not objects:
        pytest.skip("expected Linux, gcc with libasan, and build/python of a build in this tree (make check-python)")
    folder = tmp_path_factory.mktemp("sanitized")
    shutil.copytree(pathlib.Path(lnorm.__file__).parent, folder / "lnorm",
                    ignore=shutil.ignore_patterns("_core.*.so", "__pycache__"))
    names = re.search(r"DRAWING = \((.*?)\)", (ROOT / "setup.py").read_text(), re.DOTALL)
    sources = [*ROOT.glob("python/core/*.c"), *(ROOT / f"cli/{n}.c" for n in re.findall(r'"(\w+)"', names.group(1)))]
    headers = [ROOT / "include", ROOT / "src", np.get_include(), sysconfig.get_path("include")]
    done = subprocess.run([compiler, *FLAGS, *(f"-I{header}" for header in headers), *sources, *objects,
                           "-o", folder / "lnorm/_core.abi3.so", "-pthread", "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The interpreter keeps memory to its end, and has arenas of its own, in which no overrun would be seen.
    environment = {**os.environ, "PYTHONPATH": str(folder), "LD_PRELOAD": runtime, "PYTHONMALLOC": "malloc",
                   "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    return folder, environment


def run(package, *arguments):
    folder, environment = package
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=900)


def test_the_tests_that_drive_the_extension(package):
    files = [ROOT / f"tests/python/test_{name}.py" for name in TESTS]
    done = run(package, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", *files)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) > 100


def test_the_tests_that_drive_the_short_way_of_tensors(package):
    pytest.importorskip("torch")
    chosen = "short_way or same_bits or running_statistics_whatever or inference"
    done = run(package, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", "-k", chosen,
               *(ROOT / f"tests/python/test_torch_{name}.py" for name in ("operators", "threads", "ways")))
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) > 20


# A row too much is read by python/core.
OVERRUN = """
import numpy as np
import lnorm
x = np.ones((4, 1000), np.float32)
class Longer:
    __array_interface__ = {"version": 3, "shape": (5, 1000), "typestr": "<f4", "data": (x.ctypes.data, False)}
print(lnorm._core.__file__, flush=True)
lnorm.explain(Longer())
"""


def test_the_sanitizer_sees_an_overrun(package):
    done = run(package, "-c", OVERRUN)
    assert done.stdout.startswith(str(package[0]))
    assert done.returncode != 0 and "AddressSanitizer: heap-buffer-overflow" in done.stderr, done.stderr
