"""The modules, replace and restore, and the choice of arithmetic."""
import copy
import doctest

import pytest

torch = pytest.importorskip("torch")
from torch import nn

import lnorm.torch as ours


class OwnNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x) * 2


def test_examples_in_the_documentation():
    import lnorm.torch.functional, lnorm.torch.modules
    for module in (lnorm.torch.functional, lnorm.torch.modules):
        result = doctest.testmod(module)
        assert result.attempted and not result.failed


def model():
    shared = nn.LayerNorm(8)
    return nn.ModuleDict({
        "first": shared, "again": shared, "list": nn.ModuleList([nn.RMSNorm(8), nn.Linear(8, 8)]),
        "deep": nn.Sequential(nn.Sequential(nn.GroupNorm(2, 8, affine=False))), "own": OwnNorm(8),
        "batch": nn.BatchNorm1d(8), "instance": nn.InstanceNorm2d(8), "sync": nn.SyncBatchNorm(8),
        "lazy": nn.LazyBatchNorm1d()})


def test_replace_and_restore():
    net = model()
    before = dict(net.named_parameters())
    assert ours.replace(net) == 5  # the shared layer once
    assert type(net["first"]) is ours.LayerNorm and net["again"] is net["first"]
    assert type(net["list"][0]) is ours.RMSNorm and type(net["deep"][0][0]) is ours.GroupNorm
    assert type(net["batch"]) is ours.BatchNorm1d and type(net["instance"]) is ours.InstanceNorm2d
    assert type(net["own"]) is OwnNorm
    assert type(net["sync"]) is nn.SyncBatchNorm and type(net["lazy"]) is nn.LazyBatchNorm1d
    assert all(before[name] is parameter for name, parameter in net.named_parameters())
    assert ours.replace(net) == 0
    assert ours.restore(net) == 5
    assert [type(m) for m in net.modules()] == [type(m) for m in model().modules()]
    assert ours.restore(net) == 0


def test_the_model_itself_may_be_a_layer():
    layer = nn.LayerNorm(8)
    assert ours.replace(layer) == 1 and type(layer) is ours.LayerNorm


def test_replaced_layers_keep_all_they_had():
    layer, calls = nn.LayerNorm(8).eval(), []
    layer.register_forward_hook(lambda *_: calls.append("hook"))
    layer.weight.requires_grad_(False)
    layer.remark = "kept"
    net = nn.Sequential(layer)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    ours.replace(net)
    assert net[0] is layer and not layer.training and layer.remark == "kept" and not layer.weight.requires_grad
    net(torch.randn(2, 8, requires_grad=True)).square().sum().backward()
    optimizer.step()
    assert calls == ["hook"] and layer.bias.abs().max() > 0 and torch.equal(layer.weight, torch.ones(8))


def test_state_dicts_are_pytorchs():
    for theirs, mine, arguments in ((nn.LayerNorm, ours.LayerNorm, ([2, 4],)), (nn.RMSNorm, ours.RMSNorm, (4,)),
                                    (nn.GroupNorm, ours.GroupNorm, (2, 4)),
                                    (nn.BatchNorm2d, ours.BatchNorm2d, (4,)),
                                    (nn.InstanceNorm1d, ours.InstanceNorm1d, (4, 1e-5, 0.1, True, True))):
        a, b = theirs(*arguments), mine(*arguments)
        with torch.no_grad():
            for value in a.state_dict().values():
                value.random_(1, 9)
        b.load_state_dict(a.state_dict())
        assert all(map(torch.equal, a.state_dict().values(), b.state_dict().values())) and isinstance(b, theirs)
        a.load_state_dict(b.state_dict())
        b.reset_parameters()
        assert all(map(torch.equal, b.state_dict().values(), theirs(*arguments).state_dict().values()))


def test_constructor_arguments():
    layer = ours.LayerNorm((3, 4), 0.5, True, False, "cpu", torch.float64)
    assert layer.eps == 0.5 and layer.bias is None and layer.weight.dtype == torch.float64
    assert ours.LayerNorm(4, elementwise_affine=False).weight is None
    assert ours.GroupNorm(2, 4, bias=False).bias is None
    assert ours.RMSNorm(4).eps is None
    layer = ours.BatchNorm3d(4, 0.5, None, True, False, "cpu", torch.float64, bias=False)
    assert layer.bias is layer.momentum is layer.running_var is None and layer.weight.dtype == torch.float64
    assert ours.InstanceNorm2d(4).weight is None and ours.InstanceNorm2d(4).running_mean is None
    assert ours.LayerNorm(4, device="meta").weight.is_meta


def test_batch_norm_keeps_its_statistics():
    """By hand, in f64: momentum 1/4, then the cumulative average; a replaced layer goes on from PyTorch's."""
    torch.manual_seed(4)
    batches = torch.randn(3, 5, 2, dtype=torch.float64)
    for momentum in (0.25, None):
        layer, mean, variance = nn.BatchNorm1d(2, momentum=momentum, dtype=torch.float64), torch.zeros(2), torch.ones(2)
        for i, x in enumerate(batches):
            if i == 1:
                assert ours.replace(layer) == 1
            layer(x)
            q = momentum or 1 / (i + 1)
            mean, variance = (1 - q) * mean + q * x.mean(0), (1 - q) * variance + q * x.var(0)
        torch.testing.assert_close(layer.running_mean, mean, rtol=1e-14, atol=1e-14)
        torch.testing.assert_close(layer.running_var, variance, rtol=1e-14, atol=1e-14)
        assert layer.num_batches_tracked == 3
        before = layer.running_mean.clone()
        torch.testing.assert_close(layer.eval()(x), (x - mean) / (variance + 1e-5).sqrt(), rtol=1e-12, atol=1e-12)
        assert torch.equal(layer.running_mean, before) and layer.num_batches_tracked == 3
        layer.reset_running_stats()
        assert not layer.running_mean.any() and torch.equal(layer.running_var, torch.ones_like(before))


def test_dispatcher_updates_the_same_statistics():
    """The eager call takes one pass over x, under a mode there are two operators: the same bits."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    torch.manual_seed(4)
    for dtype, x in ((torch.float32, torch.randn(3, 4, 5)), (torch.bfloat16, torch.randn(3, 4, 5).bfloat16()),
                     (torch.float32, torch.randn(3, 4, 5).half())):
        layers = ours.BatchNorm1d(4, dtype=dtype), ours.BatchNorm1d(4, dtype=dtype)
        quick = layers[0](x)
        with Mode():
            assert torch.equal(layers[1](x), quick) and quick.dtype == x.dtype
        assert all(map(torch.equal, *(layer.buffers() for layer in layers)))
        assert layers[0].running_mean.dtype == dtype and layers[0].running_mean.any()


def values():
    torch.manual_seed(1)
    x = torch.randn(64, 768)
    return x, torch.randn(768), torch.randn(768)


def test_arithmetic():
    x, weight, bias = values()
    accurate = ours.layer_norm(x, (768,), weight, bias)
    fast = ours.layer_norm(x, (768,), weight, bias, fast=True)
    assert not torch.equal(fast, accurate)
    torch.testing.assert_close(fast, accurate, rtol=1e-5, atol=1e-5)
    layer = ours.LayerNorm(768)
    with torch.no_grad():
        layer.weight.copy_(weight), layer.bias.copy_(bias)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), accurate)
    ours.set_arithmetic("fast")
    try:
        assert ours.get_arithmetic() == "fast"
        assert torch.equal(layer(x), fast)
        assert torch.equal(ours.layer_norm(x, (768,), weight, bias, fast=False), accurate)
        assert torch.equal(compiled(x), fast)
        layer.fast = False
        assert torch.equal(layer(x), accurate)
    finally:
        ours.set_arithmetic("accurate")
    layer.fast = True
    assert torch.equal(layer(x), fast) and torch.equal(copy.deepcopy(layer)(x), fast)
    with pytest.raises(ValueError, match='arithmetic: expected "accurate" or "fast", got \'quick\''):
        ours.set_arithmetic("quick")


def test_gradients_of_channels_are_fast():
    """fast=True is for both passes."""
    torch.manual_seed(1)
    x, dy = torch.randn(2, 4, 6, 40)
    weight = torch.randn(6)
    for norm in (lambda *t, fast: ours.batch_norm(t[0], None, None, t[1], None, True, fast=fast),
                 lambda *t, fast: ours.group_norm(t[0], 2, t[1], fast=fast),
                 lambda *t, fast: ours.group_norm(t[0].mT.contiguous().mT, 2, t[1], fast=fast),
                 lambda *t, fast: ours.instance_norm(t[0], weight=t[1], fast=fast)):
        results = []
        for fast in (False, True):
            wrt = x.clone().requires_grad_(), weight.clone().requires_grad_()
            y = norm(*wrt, fast=fast)
            results.append((y, *torch.autograd.grad(y, wrt, dy)))
        assert not any(map(torch.equal, *results))
        for accurate, fast in zip(*results):
            torch.testing.assert_close(fast, accurate, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_same_bits_with_any_number_of_threads(fast, dtype):
    results, before = [], torch.get_num_threads()
    x, weight, bias = (t.to(dtype).requires_grad_() for t in values())
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            y = ours.layer_norm(x, (768,), weight, bias, fast=fast)
            results.append([y, *torch.autograd.grad(y, (x, weight, bias), x.detach().flip(0))])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))
