"""Threads, forks, interpreters, and the environment."""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import lnorm

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=600)


def problem():
    random = np.random.default_rng(1)
    return random.standard_normal((300, 500)).astype(np.float32), random.standard_normal(500).astype(np.float32)


def test_many_threads_at_once():
    x, weight = problem()
    due = lnorm.layer_norm(x, 500, weight, threads=1)
    gradients = lnorm.layer_norm_backward(x, x, 500, weight, threads=1)
    failures = []

    def work(threads):
        for _ in range(20):
            if not np.array_equal(lnorm.layer_norm(x, 500, weight, threads=threads), due):
                failures.append("forward")
            if not np.array_equal(lnorm.layer_norm_backward(x, x, 500, weight, threads=threads)[1], gradients[1]):
                failures.append("backward")

    workers = [threading.Thread(target=work, args=(i % 3 + 1,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own():
    x, weight = problem()
    due = lnorm.layer_norm(x, 500, weight, threads=2)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if np.array_equal(lnorm.layer_norm(x, 500, weight, threads=2), due) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(lnorm.layer_norm(x, 500, weight, threads=2), due)


def test_large_calls_release_the_interpreter():
    """While one thread is in a call, another runs. It cannot otherwise: nobody is asked for the lock for 1000 s."""
    x = np.ones((2000, 2000), np.float32)
    out = np.empty_like(x)
    ready, go, ran = threading.Event(), threading.Event(), []

    def work():
        ready.set()
        go.wait()
        ran.append(True)

    worker = threading.Thread(target=work)
    worker.start()
    ready.wait()
    time.sleep(0.1)  # in go.wait() now: a thread that waits for the lock already has asked for it
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.set()
        end = time.monotonic() + 60
        while not ran and time.monotonic() < end:
            lnorm.layer_norm(x, 2000, out=out, threads=1)
        assert ran
    finally:
        sys.setswitchinterval(interval)
        worker.join()


@pytest.mark.parametrize("value, due", [("3", "3"), ("", None)])
def test_num_threads_from_the_environment(value, due):
    done = python("import lnorm; print(lnorm.get_num_threads())", LNORM_NUM_THREADS=value)
    assert done.returncode == 0 and done.stdout.strip() == (due or str(len(os.sched_getaffinity(0))))


@pytest.mark.parametrize("value", ["0", "-1", "two", "3x", "5000"])
def test_a_wrong_number_of_threads_in_the_environment(value):
    done = python("import lnorm", LNORM_NUM_THREADS=value)
    assert done.returncode == 1
    assert f"the environment variable LNORM_NUM_THREADS: expected 1 to 4096, got '{value}'" in done.stderr


# The narrowest instruction set that the library has for a machine.
NARROWEST = {"x86_64": "sse2", "AMD64": "sse2", "aarch64": "neon", "arm64": "neon"}.get(platform.machine(), "scalar")


def test_isa_from_the_environment():
    code = "import numpy as np, lnorm; print(lnorm.isa()); lnorm.layer_norm(np.ones(3), 3)"
    done = python(code, LNORM_ISA=NARROWEST)
    assert done.stdout == NARROWEST + "\n" and done.returncode == 0
    done = python(code, LNORM_ISA="sse9")
    assert done.returncode == 1 and "RuntimeError" in done.stderr and "LNORM_ISA" in done.stderr


def test_the_same_bits_with_every_instruction_set():
    code = ("import numpy as np, lnorm, hashlib;"
            "x = np.random.default_rng(0).standard_normal((50, 70)).astype('f4');"
            "print(hashlib.sha256(lnorm.layer_norm(x, 70).tobytes() + lnorm.layer_norm_backward(x, x, 70)[0].tobytes())"
            ".hexdigest())")
    assert python(code, LNORM_ISA=NARROWEST).stdout == python(code).stdout != ""


# Runs IMPORT in a new interpreter of the same process, with a lock of its own (from Python 3.12 on) or without.
INTERPRETERS = """
def run(code, isolated):
    try:
        import _interpreters
    except ImportError:
        import _xxsubinterpreters
        new = _xxsubinterpreters.create(isolated=isolated)
        _xxsubinterpreters.run_string(new, code)
        _xxsubinterpreters.destroy(new)
    else:
        new = _interpreters.create("isolated" if isolated else "legacy")
        _interpreters.exec(new, code)
        _interpreters.destroy(new)
"""
IMPORT = "try:\n import lnorm\n print('loaded', flush=True)\nexcept ImportError as error: print(error, flush=True)"
IN_ANOTHER = "lnorm is loaded in another interpreter of this process, and does not support subinterpreters"


@pytest.mark.parametrize("isolated", [False, True])
def test_a_second_interpreter_is_refused(isolated):
    """By the extension itself; one with a lock of its own, by Python. The first one's work goes on."""
    refusal = IN_ANOTHER
    if isolated and sys.version_info >= (3, 12):
        refusal = "module lnorm._core does not support loading in subinterpreters"
    done = python(f"{INTERPRETERS}\nimport lnorm\nrun({IMPORT!r}, {isolated})\nrun({IMPORT!r}, {isolated})\n"
                  "print(lnorm.rms_norm([3.0, 4.0], 2, eps=0.0).round(4))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [refusal, refusal, "[0.8485 1.1314]"]


def test_an_interpreter_that_could_not_load_it_does_not_keep_it():
    """The first interpreter fails on a wrong environment, not on being the second; the main one then may load it."""
    code = (f"{INTERPRETERS}\nimport os\nos.environ['LNORM_NUM_THREADS'] = 'x'\n"
            f"run({IMPORT.replace('ImportError', 'ValueError')!r}, False)\n"
            "os.environ['LNORM_NUM_THREADS'] = '1'\nimport lnorm\nprint(lnorm.get_num_threads())")
    done = python(code)
    assert done.returncode == 0, done.stderr
    said, threads = done.stdout.splitlines()
    assert said.startswith("the environment variable LNORM_NUM_THREADS") and threads == "1"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python 3.13 and later have the headers of free-threaded builds")
def test_it_compiles_for_free_threaded_python(tmp_path):
    """No such Python is at hand: its headers are those of this one, told in pyconfig.h that there is no lock."""
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    headers = pathlib.Path(sysconfig.get_path("include"))
    for header in headers.iterdir():
        (tmp_path / header.name).symlink_to(header)
    (tmp_path / "pyconfig.h").unlink()
    (tmp_path / "pyconfig.h").write_text((headers / "pyconfig.h").read_text() + "\n#define Py_GIL_DISABLED 1\n")
    folders = [tmp_path, ROOT / "include", ROOT / "src", np.get_include()]
    done = subprocess.run([compiler, "-fsyntax-only", "-Werror", *[f"-I{folder}" for folder in folders],
                           *sorted(ROOT.glob("python/core/*.c"))], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
