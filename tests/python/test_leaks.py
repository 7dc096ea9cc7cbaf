"""References and memory."""
import gc
import importlib.util
import resource
import sys

import numpy as np
import pytest

import lnorm

X = np.ones((1, 64), np.float32)
WEIGHT = np.ones(64, np.float32)
BUFFER = memoryview(np.ones(64))


class Exporter:
    def __dlpack__(self, **keywords):
        return X.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


def refused(call):
    with pytest.raises((TypeError, ValueError)):
        call()


CALLS = {
    "dense": (1_000_000, lambda: lnorm.layer_norm(X, 64, WEIGHT, WEIGHT)),
    "keywords": (100_000, lambda: lnorm.rms_norm(input=X, normalized_shape=(64,), weight=WEIGHT, eps=1e-6)),
    "general": (5_000, lambda: lnorm.layer_norm(X[:, ::-1], [64], WEIGHT, return_stats=True)),
    "backward": (100_000, lambda: lnorm.layer_norm_backward(X, X, 64, WEIGHT, WEIGHT)),
    "general backward": (5_000, lambda: lnorm.layer_norm_backward(X[:, ::-1], X, 64, WEIGHT, WEIGHT)),
    "buffer": (5_000, lambda: lnorm.layer_norm(BUFFER, 64)),
    "dlpack": (5_000, lambda: lnorm.layer_norm(Exporter(), 64)),
    "copied": (5_000, lambda: lnorm.layer_norm(X.astype(">f4"), 64)),
    "refused shape": (2_000, lambda: refused(lambda: lnorm.layer_norm(X, 63, WEIGHT))),
    "refused type": (2_000, lambda: refused(lambda: lnorm.layer_norm(X, 64, WEIGHT.astype(int)))),
    "refused keyword": (2_000, lambda: refused(lambda: lnorm.layer_norm(X, 64, gain=WEIGHT))),
}


def tensor_calls():
    """lnorm.torch's short ways: inference, gradients, running statistics, and what they leave to others."""
    import torch

    import lnorm.torch as ours
    x, weight, mean, variance = (torch.ones(shape) for shape in ((2, 64), (64,), (64,), (64,)))
    tracked = x.clone().requires_grad_()
    return {
        "tensors": (100_000, lambda: ours.layer_norm(x, (64,), weight, weight)),
        "gradients": (10_000, lambda: ours.layer_norm(tracked, (64,), weight).backward(x)),
        "running statistics": (20_000, lambda: ours.batch_norm(x, mean, variance, weight, weight, True)),
        "gradients by statistics": (10_000, lambda: ours.batch_norm(tracked, mean, variance, weight).backward(x)),
        "one tensor as both statistics": (5_000, lambda: ours.batch_norm(x, mean, mean, training=True)),
        "strided tensors": (5_000, lambda: ours.layer_norm(x.mT, (2,))),
    }


if importlib.util.find_spec("torch"):
    CALLS |= tensor_calls()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def references():
    gc.collect()  # of tests before, which may have left cycles
    return [sys.getrefcount(thing) for thing in (X, WEIGHT, X.dtype, lnorm.layer_norm)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_left(name):
    count, call = CALLS[name]
    for _ in range(500):
        call()
    before = references()

    def growth():
        before = resident()
        for _ in range(count):
            call()
        return resident() - before

    # One object of the smallest size, 16 bytes, left by each call is 32 KiB to 16 MB; the allocators keep some pages. A
    # leak is one every time; once, the kernel may have made a huge page of a few small ones.
    assert any(growth() < max(count * 8, 256 * 1024) for _ in range(4))
    assert references() == before
