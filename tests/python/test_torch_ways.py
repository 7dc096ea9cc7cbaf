"""The short ways of lnorm.torch beside the general ones: the same bits, and the same effect on running statistics."""
import pytest

torch = pytest.importorskip("torch")

import lnorm.torch as ours
from torch_samples import NAMES, assert_equal, call, samples


@pytest.mark.parametrize("name", NAMES)
def test_quick_way_and_dispatcher_agree(name):
    """A dispatch mode forces the long way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for case in samples(name, dtype):
            quick = call(ours, name, case)
            with Mode():
                assert torch.equal(call(ours, name, case), quick)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shape", [(4, 6, 5), (8, 64, 128)], ids=["one thread", "several"])
@pytest.mark.parametrize("types", [(torch.float64, torch.float64), (torch.float32, torch.float32),
                                   (torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32)], ids=str)
def test_dense_and_strided_operands_give_the_same_bits(types, shape, fast):
    """Dense ones take the short way through _core.tensor_norm, others the general call."""
    torch.manual_seed(2)
    x, dy = torch.randn(2, *shape, dtype=types[0])
    tail, channels = torch.randn(2, shape[-1], dtype=types[1]), torch.randn(2, shape[1], dtype=types[1])
    norms = {"layer": (lambda x, w, b: ours.layer_norm(x, shape[-1:], w, b, fast=fast), tail),
             "rms": (lambda x, w, b: ours.rms_norm(x, shape[-1:], w, fast=fast) + 0 * b, tail),
             "group": (lambda x, w, b: ours.group_norm(x, 2, w, b, fast=fast), channels),
             "batch": (lambda x, w, b: ours.batch_norm(x, None, None, w, b, True, fast=fast), channels),
             "given": (lambda x, w, b: ours.batch_norm(x, *given, w, b, fast=fast), channels)}
    given = torch.randn(shape[1], dtype=types[1]), torch.rand(shape[1], dtype=types[1])
    strided = lambda t: t.mT.contiguous().mT
    for norm, (weight, bias) in norms.values():
        results = []
        for to in (lambda t: t.clone(), strided):
            wrt = [t.requires_grad_() for t in (to(x), weight.clone(), bias.clone())]
            y = norm(*wrt)
            results.append([y, *torch.autograd.grad(y, wrt, to(dy))])
            with torch.inference_mode():
                results[-1].append(norm(*wrt))
        assert_equal(*results)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("types", [(torch.float64, torch.float64), (torch.float32, torch.float32),
                                   (torch.bfloat16, torch.float32)], ids=str)
def test_running_statistics_whatever_their_strides(types, fast):
    """Dense ones are updated where they lie, others through a copy; autograd is told of both."""
    torch.manual_seed(3)
    x = torch.randn(6, 5, 4, dtype=types[0])
    running = torch.randn(2, 5, dtype=types[1]).abs()
    results = []
    for to in (torch.clone, lambda t: t.repeat_interleave(2).clone()[::2]):
        for wrt in (x, x.clone().requires_grad_()):
            mean, variance = to(running[0]), to(running[1])
            versions = mean._version, variance._version
            y = ours.batch_norm(wrt, mean, variance, training=True, momentum=0.25, fast=fast)
            assert mean._version > versions[0] and variance._version > versions[1]
            results.append((y.detach(), mean, variance))
    for result in results:
        assert_equal(result, results[0])
    assert not torch.equal(results[0][1], running[0])


def test_batch_norm_by_statistics_that_change_before_the_backward_pass():
    x, mean, variance = torch.randn(4, 3).requires_grad_(), torch.zeros(3), torch.ones(3)
    y = ours.batch_norm(x, mean, variance)
    ours.batch_norm(x.detach(), mean, variance, training=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_batch_norm_of_what_the_short_way_leaves_alone():
    """One tensor as both statistics, a momentum of another type, one element for each channel."""
    x = torch.randn(4, 3)
    both, variance = torch.ones(3), torch.ones(3)
    ours.batch_norm(x, both, both, training=True)
    ours.batch_norm(x, torch.ones(3), variance, training=True)
    assert torch.equal(both, variance)
    means = [torch.zeros(3) for _ in range(2)]
    for mean, momentum in zip(means, (1, 1.0)):
        ours.batch_norm(x, mean, torch.ones(3), training=True, momentum=momentum)
    assert torch.equal(*means)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        ours.batch_norm(x[:1], means[0], torch.ones(3), training=True)
    torch.testing.assert_close(ours.batch_norm(x[:1], means[0], torch.ones(3)), x[:1] - means[0])


def test_the_bias_counts_by_shape_and_type_alone():
    """Only where there is no weight to tell them is it saved."""
    x, dy = torch.randn(2, 4, 6)
    for weight in (torch.rand(6), None):
        bias = torch.zeros(6, requires_grad=True)
        tensors = [x.clone().requires_grad_(), bias] + ([] if weight is None else [weight.requires_grad_()])
        y = ours.layer_norm(tensors[0], (6,), weight, bias)
        assert y.grad_fn.name() == "TensorNormBackward"
        assert sum(saved is not None for saved in y.grad_fn.saved_tensors) == 2
        once = torch.autograd.grad(y, tensors, dy, retain_graph=True)
        again = torch.autograd.grad(y, tensors, dy, create_graph=True)  # through the dispatcher
        assert_equal(once, [gradient.detach() for gradient in again])
        torch.testing.assert_close(once[1], dy.sum(0))
