"""lnorm.torch under PyTorch's machinery: compilers, exporters, transforms, modes, checkpoints, other processes."""
import copy
import io
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

import lnorm.torch as ours
import torch.nn.functional as theirs
from torch_samples import NAMES, assert_equal
from torch_workers import Norms

OPERATOR, BACKWARD = torch.ops.lnorm.norm.default, torch.ops.lnorm.norm_backward.default
RUNNING = torch.ops.lnorm.running_statistics.default


def operands(dtype=torch.float32, requires_grad=False, shape=(4, 6)):
    torch.manual_seed(5)
    make = lambda *shape: torch.randn(*shape, dtype=dtype, requires_grad=requires_grad)
    return make(*shape), make(shape[-1]), make(shape[-1])


def channel_operands(dtype=torch.float32, shape=(2, 6, 4, 3)):
    torch.manual_seed(6)
    return torch.randn(shape, dtype=dtype), torch.randn(shape[1], dtype=dtype), torch.randn(shape[1], dtype=dtype)


class Block(nn.Module):
    """A layer of each kind, with statistics in training and, where `given`, with those that are there."""

    def __init__(self, classes=ours, given=False):
        super().__init__()
        self.batch = classes.BatchNorm2d(6, momentum=0.25).train(not given)
        self.instance = classes.InstanceNorm2d(6, affine=True, track_running_stats=True).train(not given)
        self.group = classes.GroupNorm(2, 6)
        self.layer = classes.LayerNorm([4, 3])
        self.rms = classes.RMSNorm(3)

    def forward(self, x):
        return self.rms(self.layer(self.group(self.instance(self.batch(x)))).sin() + x)


def perturbed(module):
    torch.manual_seed(7)
    with torch.no_grad():
        for value in (*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())):
            value.add_(torch.rand_like(value) / 2)
    return module


CASES = {
    "layer": (operands, "layer", 1), "layer in f64": (lambda: operands(torch.float64), "layer", 1),
    "two axes": (lambda: (torch.randn(2, 3, 4), torch.randn(3, 4), torch.randn(3, 4)), "layer", 2),
    "rms": (lambda: (*operands()[:2], None), "rms", 1),
    "no parameters": (lambda: (operands()[0], None, None), "layer", 1),
    "narrow": (lambda: operands(torch.bfloat16), "layer", 1),
    "mixed": (lambda: (operands(torch.bfloat16)[0], *operands()[1:]), "layer", 1),
    "strided": (lambda: (torch.randn(6, 4).mT, *operands()[1:]), "layer", 1), "group": (channel_operands, "group", 3),
    "channels last": (lambda: (channel_operands()[0].to(memory_format=torch.channels_last), *channel_operands()[1:]),
                      "group", 3),
    "batch": (channel_operands, "batch", 0), "batch in f64": (lambda: channel_operands(torch.float64), "batch", 0),
    "batch, channels last": (lambda: (channel_operands()[0].to(memory_format=torch.channels_last),
                                      *channel_operands()[1:]), "batch", 0),
    "no rows": (lambda: (torch.randn(0, 6), *operands()[1:]), "layer", 1),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck(case, requires_grad):
    make, kind, extent = CASES[case]
    tensors = [None if t is None else t.detach().requires_grad_(requires_grad) for t in make()]
    torch.library.opcheck(OPERATOR, (*tensors, kind, extent, 1e-5, None))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_with_given_statistics(requires_grad):
    tensors = [t.requires_grad_(requires_grad) for t in channel_operands()]
    more = ("batch", 0, 1e-5, None)
    constants = torch.randn(6), torch.rand(6)
    torch.library.opcheck(OPERATOR, (*tensors, *more, *constants))
    dy = torch.randn_like(tensors[0]).requires_grad_(requires_grad)
    torch.library.opcheck(BACKWARD, (dy, *tensors, *more, [True, True, True], *constants))
    torch.library.opcheck(RUNNING, (tensors[0].detach(), *constants, 0.25))


@pytest.mark.parametrize("case", ["layer", "rms", "mixed", "group", "batch", "no rows"])
def test_opcheck_backward(case):
    make, kind, extent = CASES[case]
    tensors = [None if t is None else t.detach().requires_grad_() for t in make()]
    x, weight, bias = tensors
    dy = torch.randn_like(x).requires_grad_()
    mask = [True, weight is not None, bias is not None]
    if case == "mixed":
        mask = [True, False, True]
    torch.library.opcheck(BACKWARD, (dy, x, weight, bias, kind, extent, 1e-5, False, mask))


def test_the_operator_checks_what_it_gets():
    x, weight, bias = operands()
    for message, arguments in {
        "kind: expected one of layer, rms, group, batch, got 'instance'": (x, weight, bias, "instance", 1, 1e-5, None),
        "extent: expected 1 to 2 axes, got 3": (x, weight, bias, "layer", 3, 1e-5, None),
        "extent: expected 1 to 2 axes, got 0": (x, weight, bias, "layer", 0, 1e-5, None),
        "weight": (x, weight[:5], bias, "layer", 1, 1e-5, None),
        "bias": (x, weight, bias[:5], "layer", 1, 1e-5, None),
        "x: expected float64, float32, float16 or bfloat16, got": (x.long(), None, None, "rms", 1, 1e-5, None),
        "eps: expected a finite number": (x, weight, bias, "layer", 1, -1.0, None),
    }.items():
        with pytest.raises(RuntimeError, match=message):
            OPERATOR(*arguments)
    with pytest.raises(RuntimeError, match="dy"):
        BACKWARD(x[:3], x, weight, bias, "layer", 1, 1e-5, None, [True, True, True])


# Every way of running must give the bits of the eager call: there is one kernel.
def same(function, *arguments, wrt=()):
    return [function(*arguments), *torch.autograd.grad(function(*arguments).sin().sum(), wrt)] if wrt else \
        [function(*arguments)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_compile(backend, dynamic, given):
    torch._dynamo.reset()
    block, other = perturbed(Block(given=given)), perturbed(Block(given=given))
    compiled = torch.compile(other, fullgraph=True, backend=backend, dynamic=dynamic)
    for batch in (2, 5):
        x = channel_operands(shape=(batch, 6, 4, 3))[0].requires_grad_()
        assert_equal(same(compiled, x, wrt=(x, *other.parameters())), same(block, x, wrt=(x, *block.parameters())))
        with torch.no_grad():
            assert torch.equal(compiled(x), block(x))
        assert_equal(other.buffers(), block.buffers())


def test_compiled_graph_has_the_operator():
    graphs = []
    torch._dynamo.reset()
    torch.compile(perturbed(Block()), fullgraph=True, backend=lambda graph, _: graphs.append(graph) or graph)(
        channel_operands()[0])
    targets = [str(node.target) for node in graphs[0].graph.nodes]
    assert sum("lnorm.norm" in target for target in targets) == 5
    assert sum("lnorm.running_statistics" in target for target in targets) == 2


@pytest.mark.parametrize("training", [True, False])
def test_compiled_autograd(training):
    """The graph of the eager call's backward pass has the operator, too: nothing breaks it."""
    x, statistics = torch.randn(5, 4).requires_grad_(), torch.rand(2, 4)
    norm = lambda: ours.batch_norm(ours.layer_norm(x, (4,)), *statistics.clone(), training=training)
    due, = torch.autograd.grad(norm(), x, torch.ones(5, 4))
    y = norm()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager", fullgraph=True)):
        y.backward(torch.ones(5, 4))
    assert torch.equal(x.grad, due)



def test_export():
    block, (x, _, _) = perturbed(Block(given=True)), channel_operands()
    program = torch.export.export(block, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    names = [str(node.target) for node in program.graph.nodes]
    assert names.count("lnorm.norm.default") == 5
    stored = io.BytesIO()
    torch.export.save(program, stored)
    stored.seek(0)
    loaded = torch.export.load(stored).module()
    for batch in (2, 7):
        x = channel_operands(shape=(batch, 6, 4, 3))[0]
        assert torch.equal(loaded(x), block(x))


def test_export_for_training():
    """The exported program updates the running statistics."""
    block, other, (x, _, _) = perturbed(Block()), perturbed(Block()), channel_operands()
    program = torch.export.export(other, (x,)).module()
    for _ in range(2):
        assert torch.equal(program(x), block(x))
    state = program.state_dict()
    assert all(torch.equal(state[name], value) for name, value in block.named_buffers())


@pytest.mark.parametrize("through_file", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("given", [False, True])
def test_script(through_file, given):
    block, x = perturbed(Block(given=given)), channel_operands()[0].requires_grad_()
    scripted = torch.jit.script(block)
    if through_file:
        stored = io.BytesIO()
        torch.jit.save(scripted, stored)
        stored.seek(0)
        scripted = torch.jit.load(stored)
    block = copy.deepcopy(block)  # not to share the running statistics
    for _ in range(3):  # the first runs profile, the later ones are optimised
        assert torch.equal(scripted(x), block(x))
        assert_equal(scripted.buffers(), block.buffers())
    gradients = [torch.autograd.grad(module(x).sin().sum(), (x, *module.parameters())) for module in (scripted, block)]
    assert_equal(*gradients)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", [getattr(ours, name) for name in NAMES])
def test_script_functions(function):
    scripted = torch.jit.script(function)
    x = channel_operands()[0]
    arguments = {ours.layer_norm: ([4, 3],), ours.rms_norm: ([3],), ours.group_norm: (3,), ours.instance_norm: (),
                 ours.batch_norm: (x[0, :, 0, 0], x[0, :, 0, 1].abs())}
    assert torch.equal(scripted(x, *arguments[function]), function(x, *arguments[function]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_trace():
    block, x = perturbed(Block(given=True)), channel_operands()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(block, (x,))
    assert str(traced.inlined_graph).count("lnorm::norm") == 5
    other = channel_operands(shape=(3, 6, 4, 3))[0] + 1
    assert torch.equal(traced(other), block(other))


VMAPPED = {
    "layer": (lambda x, w, b: ours.layer_norm(x, (6,), w, b), lambda n: operands(shape=(n, 6))),
    "rms": (lambda x, w, b: ours.rms_norm(x, (6,), w), lambda n: operands(shape=(n, 6))),
    "group": (lambda x, w, b: ours.group_norm(x, 3, w, b), lambda n: channel_operands(shape=(n, 6, 2, 2))),
    "instance": (lambda x, w, b: ours.instance_norm(x, weight=w, bias=b), lambda n: channel_operands(shape=(n, 6, 4))),
    "batch": (lambda x, w, b: ours.batch_norm(x, None, None, w, b, True), lambda n: channel_operands(shape=(n, 6, 4))),
    "given": (lambda x, w, b: ours.batch_norm(x, torch.arange(6.0), torch.ones(6) * 2, w, b),
              lambda n: channel_operands(shape=(n, 6, 4))),
    "given, batched": (lambda x, w, b: ours.batch_norm(x, x.detach().mean((0, 2)), x.detach().square().mean((0, 2)),
                                                       w, b),
                       lambda n: channel_operands(shape=(n, 6, 4))),
}


def test_vmap_of_running_statistics():
    """An ensemble of layers, each with its own."""
    x, mean, variance = torch.randn(3, 2, 6, 4), torch.randn(3, 6), torch.rand(3, 6)

    def step(x, mean, variance):
        y = ours.batch_norm(x, mean, variance, training=True)
        return y, mean, variance

    got = torch.vmap(step)(x, mean.clone(), variance.clone())
    for i in range(3):
        assert_equal([part[i] for part in got], step(x[i], mean[i].clone(), variance[i].clone()))


def test_transforms_with_running_statistics_as_arguments():
    x, mean, variance = torch.randn(2, 6, 4), torch.randn(6), torch.rand(6)

    def loss(x, mean, variance):
        mean, variance = mean.clone(), variance.clone()
        return ours.batch_norm(x, mean, variance, training=True).sin().sum(), (mean, variance)

    gradient, updated = torch.func.grad(loss, has_aux=True)(x, mean, variance)
    leaf = x.clone().requires_grad_()
    value, expected = loss(leaf, mean, variance)
    assert_equal([gradient, *updated], [*torch.autograd.grad(value, leaf), *expected])


@pytest.mark.parametrize("name", VMAPPED)
@pytest.mark.parametrize("axes", [(0, None, None), (1, None, None), (None, 0, None), (0, 0, 0), (-1, None, 0)])
def test_vmap(name, axes):
    """Bit for bit the elements' own results: of values, of the gradients by x, and of per-sample gradients."""
    function, make = VMAPPED[name]
    tensors = [t if axis is None else torch.stack([t * (i + 1) for i in range(3)], axis)
               for t, axis in zip(make(2), axes)]
    alone = lambda i: [t if axis is None else t.select(axis, i) for t, axis in zip(tensors, axes)]
    scalar = lambda *a: function(*a).sin().sum()
    for f in (function, torch.func.grad(scalar), torch.func.grad(scalar, argnums=(0, 1))):
        got = torch.vmap(f, in_dims=axes)(*tensors)
        for i in range(3):
            pick = (lambda r: [part[i] for part in r]) if isinstance(got, tuple) else (lambda r: [r[i]])
            expected = f(*alone(i))
            assert_equal(pick(got), expected if isinstance(expected, tuple) else [expected])


def test_vmap_of_vmap_and_of_nothing():
    x = torch.randn(2, 3, 4, 6)
    assert torch.equal(torch.vmap(torch.vmap(lambda x: ours.layer_norm(x, (6,))))(x), ours.layer_norm(x, (6,)))
    assert torch.equal(torch.vmap(lambda x: ours.layer_norm(x, (6,)), in_dims=2)(x),
                       ours.layer_norm(x.movedim(2, 0), (6,)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    """The output's type is PyTorch's, for inputs of either type."""
    linear = nn.Linear(6, 6)
    with torch.autocast("cpu", dtype):
        x = torch.randn(4, 6)
        for value in (x, linear(x)):
            weight = torch.randn(6)
            for norm in (lambda m: m.layer_norm(value, (6,), weight, weight), lambda m: m.rms_norm(value, (6,), weight),
                         lambda m: m.group_norm(value, 2, weight, weight),
                         lambda m: m.batch_norm(value, weight, weight.abs(), weight, weight)):
                assert norm(ours).dtype == norm(theirs).dtype
        model = nn.Sequential(linear, perturbed(ours.LayerNorm(6)))
        model(x).square().sum().backward()
    assert model[1].weight.grad.dtype == torch.float32 and linear.weight.grad.abs().max() > 0


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant):
    block, x = perturbed(Block(given=True)), channel_operands()[0].requires_grad_()
    wrt = (x, *block.parameters())
    gradients = []
    for run in (block, lambda x: checkpoint(block, x, use_reentrant=use_reentrant)):
        for tensor in wrt:
            tensor.grad = None
        run(x).sin().sum().backward()
        gradients.append([tensor.grad for tensor in wrt])
    assert_equal(*gradients)


def test_saved_tensors_are_watched():
    x = torch.randn(4, 6, requires_grad=True)
    held = x * 1
    y = ours.layer_norm(held, (6,))
    held.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_copies_and_pickles():
    block, x = perturbed(Block(given=True)), channel_operands()[0]
    block.layer.fast = True
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block)), copy.copy(block)):
        assert type(other.layer) is ours.LayerNorm and other.layer.fast is True
        assert torch.equal(other(x), block(x))
    stored = io.BytesIO()
    torch.save(block, stored)
    stored.seek(0)
    assert torch.equal(torch.load(stored, weights_only=False)(x), block(x))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader_workers(context):
    expected = [Norms()[i] for i in range(8)]
    loader = DataLoader(Norms(), batch_size=None, num_workers=1, multiprocessing_context=context)
    assert_equal(list(loader), expected)


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.empty(2, 6, 4, 3).to(memory_format=torch.channels_last)
        y = ours.group_norm(x, 2)
        assert y.shape == x.shape and y.is_contiguous(memory_format=torch.channels_last)


def test_other_devices_are_left_to_pytorch():
    x = torch.randn(4, 6, device="meta")
    assert ours.layer_norm(x, (6,)).device.type == "meta"
    assert ours.LayerNorm(6, device="meta")(x).shape == x.shape


def test_views_that_hide_their_values():
    """Lazy negation, expanded and reversed memory, a gradient that is zero without storage."""
    c = torch.randn(4, 6, dtype=torch.complex64)
    lazy = c.conj().imag
    assert lazy.is_neg()
    assert torch.equal(ours.layer_norm(lazy, (6,)), ours.layer_norm(-c.imag, (6,)))
    expanded = torch.randn(1, 6).expand(4, 6)
    assert torch.equal(ours.layer_norm(expanded, (6,)), ours.layer_norm(expanded.contiguous(), (6,)))
    zero = torch._efficientzerotensor((4, 6))
    assert torch.equal(ours.layer_norm(zero, (6,)), torch.zeros(4, 6))
    x = torch.randn(4, 6, requires_grad=True)
    ours.layer_norm(x, (6,)).backward(torch.ones(()).expand(4, 6))
    assert x.grad.shape == x.shape


def test_modes_and_subclasses_see_the_call():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Subclass(torch.Tensor):
        pass

    x = torch.randn(4, 6)
    with Functions():
        ours.layer_norm(x, (6,))
    assert ours.layer_norm in seen
    with Operators():
        ours.layer_norm(x, (6,))
    assert OPERATOR in seen
    assert type(ours.rms_norm(x.as_subclass(Subclass), (6,))) is Subclass


def test_inference_mode_and_parameters():
    x, weight, bias = operands()
    expected = ours.layer_norm(x, (6,), weight, bias)
    with torch.inference_mode():
        y = ours.layer_norm(x.clone(), (6,), nn.Parameter(weight), bias)
    assert torch.equal(y, expected) and y.is_inference()
    assert not ours.layer_norm(nn.Parameter(x, requires_grad=False), (6,)).requires_grad
    assert ours.layer_norm(x, (6,), None, bias.clone().requires_grad_()).requires_grad
