"""lnorm.torch on the threads of PyTorch's OpenMP runtime: the bits of one thread, whatever the runtime does."""
import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import lnorm.torch as ours
from lnorm import _core
from lnorm.torch import _openmp

FOUND, EVER = _openmp.addresses(), 2**62
needs_runtime = pytest.mark.skipif(FOUND == (0, 0), reason="PyTorch has no OpenMP runtime here that lnorm can find")
REGION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
THREAD_NUM = ctypes.CFUNCTYPE(ctypes.c_int)


@pytest.fixture(autouse=True)
def patient():
    """Otherwise on a busy machine most would be computed alone."""
    _core.set_openmp(*FOUND, EVER)
    yield
    _core.set_openmp(*FOUND, _openmp.PATIENCE)


@contextlib.contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def runtime(parallel, thread_num, patience=EVER):
    address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
    _core.set_openmp(*(address(function) if function else 0 for function in (parallel, thread_num)), patience)
    try:
        yield
    finally:
        _core.set_openmp(*FOUND, EVER)


class Team:
    """A runtime whose teams have `come` threads, whatever was asked for."""

    def __init__(self, come):
        self.come, self.asked, self.mine = come, [], threading.local()
        self.parallel, self.thread_num = PARALLEL(self.run), THREAD_NUM(lambda: getattr(self.mine, "number", 0))

    def run(self, function, data, asked, flags):
        def member(number):
            self.mine.number = number
            REGION(function)(data)

        self.asked.append(asked)
        members = [threading.Thread(target=member, args=(number,)) for number in range(1, self.come)]
        for one in members:
            one.start()
        member(0)
        for one in members:
            one.join()


NORMS = (lambda x, w: ours.layer_norm(x, w.shape, w, w), lambda x, w: ours.layer_norm(x, w.shape, w, w, fast=True),
         lambda x, w: ours.rms_norm(x, w.shape, w), lambda x, w: ours.group_norm(x.unflatten(1, (20, 25)), 4),
         lambda x, w: ours.batch_norm(x, None, None, w, w, True))


def results():
    """Forward and backward of every kind, of dense operands and of strided ones."""
    random, found = torch.Generator().manual_seed(3), []
    for dtype in (torch.float32, torch.bfloat16):
        values, weight = torch.randn(300, 500, 2, generator=random), torch.rand(500, generator=random)
        strided, weight = values.to(dtype)[..., 0], weight.to(dtype).requires_grad_()
        for norm in NORMS:
            for x in (strided.contiguous().requires_grad_(), strided.detach().requires_grad_()):
                y = norm(x, weight)
                found += [y.detach(), *torch.autograd.grad(y, (x, weight), y.detach().cos(), allow_unused=True)]
    return found


def same(found, due):
    return len(found) == len(due) and all(a is b is None or torch.equal(a, b) for a, b in zip(found, due))


def alone():
    with threads(1):
        return results()


@needs_runtime
@pytest.mark.parametrize("count", [2, 3, 5, 40])
def test_the_same_bits_on_pytorchs_threads(count):
    with threads(count):
        assert same(results(), alone())


@pytest.mark.parametrize("asked, come", [(2, 2), (2, 1), (3, 2), (2, 7), (40, 3), (40, 40)])
def test_the_same_bits_whatever_threads_come(asked, come):
    team = Team(come)
    with threads(asked), runtime(team.parallel, team.thread_num):
        found = results()
    assert same(found, alone())
    assert len(team.asked) >= 20 and set(team.asked) == {asked}


def test_a_pool_where_there_is_no_runtime():
    with threads(3), runtime(None, None):
        assert same(results(), alone())


def test_each_way_of_operands_goes_to_the_runtime():
    """Dense tensors through _core.tensor_norm, strided ones through the general call."""
    for x in (torch.randn(300, 500), torch.randn(500, 300).T):
        team = Team(2)
        with threads(2), runtime(team.parallel, team.thread_num):
            ours.layer_norm(x, (500,))
        assert team.asked == [2]


def test_small_norms_and_one_thread_do_without():
    team = Team(2)
    with runtime(team.parallel, team.thread_num):
        with threads(2):
            ours.layer_norm(torch.randn(32, 1000), (1000,))
        with threads(1):
            ours.layer_norm(torch.randn(300, 1000), (1000,))
    assert team.asked == []


def test_calls_do_without_threads_that_do_not_come():
    """For ten times as long as one has waited for them."""
    class Late(Team):
        def run(self, *arguments):
            super().run(*arguments)
            time.sleep(0.1)

    team, x = Late(2), torch.randn(300, 500)
    with threads(2), runtime(team.parallel, team.thread_num, 50_000_000):
        due = ours.layer_norm(x, (500,))
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert torch.equal(ours.layer_norm(x, (500,)), due) and team.asked == [2]
        end = time.monotonic() + 60
        while team.asked == [2] and time.monotonic() < end:
            ours.layer_norm(x, (500,))
    assert team.asked == [2, 2]


@needs_runtime
def test_inside_a_parallel_region():
    """The inner region has one thread, which has to do all tasks."""
    due, found = alone(), []

    def region(data):
        if thread_num() == 1:
            with threads(2):
                found.append(results())

    thread_num = THREAD_NUM(FOUND[1])
    region = REGION(region)
    PARALLEL(FOUND[0])(ctypes.cast(region, ctypes.c_void_p), None, 2, 0)
    assert len(found) == 1 and same(found[0], due)


def test_eight_python_threads_at_once():
    due, wrong = alone(), []

    def work():
        for _ in range(3):
            if not same(results(), due):
                wrong.append(threading.get_ident())

    with threads(2):
        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong


FORK = """
import os, signal, sys, torch, lnorm.torch
torch.set_num_threads(2)
x = torch.arange(300 * 500.0).reshape(300, 500).sin()
norm = lambda: lnorm.torch.layer_norm(x, (500,)).numpy().tobytes()  # after a fork PyTorch's own operators do hang
due = norm()
for generation in range(2):
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        for _ in range(3):
            if norm() != due:
                os._exit(2)
        continue  # and forks in its turn
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if norm() != due:
        status = 3
    os._exit(status)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_children_do_not_hang():
    """libgomp's threads are not there, and it would wait for them."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the runtime is looked for on Linux only")
def test_it_is_found_where_pytorch_has_one():
    """That of the libraries that libtorch_cpu depends on."""
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "omp" in line.rsplit("/", 1)[-1] and ".so" in line}
    assert (FOUND != (0, 0)) == ("parallel backend: OpenMP" in torch.__config__.parallel_info())
    if FOUND != (0, 0):
        owners = set()
        for address in FOUND:
            with open("/proc/self/maps") as maps:
                for line in maps:
                    begin, end = (int(text, 16) for text in line.split()[0].split("-"))
                    if begin <= address < end:
                        owners.add(line.split()[-1])
        assert len(owners) == 1 and owners <= loaded


def test_none_is_found_where_it_is_not_known_how(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(torch.__config__, "parallel_info", lambda: "ATen parallel backend: native thread pool")
        assert _openmp.addresses() == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda name, mode: object())  # without the symbols
        assert _openmp.addresses() == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert _openmp.addresses() == (0, 0)
