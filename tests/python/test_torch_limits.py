"""lnorm.torch where arguments are odd: many axes, empty batches, what is PyTorch's to compute or to refuse."""
import pytest

torch = pytest.importorskip("torch")

import lnorm.torch as ours
import torch.nn.functional as theirs
from torch_samples import assert_equal

CALLS = {"layer": lambda f, x: f.layer_norm(x, (2, 3), torch.arange(6.0).view(2, 3), torch.ones(2, 3)),
         "rms": lambda f, x: f.rms_norm(x, (2, 3)),
         "group": lambda f, x: f.group_norm(x, 2, torch.arange(4.0)),
         "batch": lambda f, x: f.batch_norm(x, torch.zeros(4), torch.ones(4), torch.arange(4.0), training=True)}


def result_and_gradient(f, name, x):
    x = x.detach().requires_grad_()
    y = CALLS[name](f, x)
    return y.detach(), *torch.autograd.grad(y.pow(3).sum(), x)


@pytest.mark.parametrize("name", CALLS)
def test_more_axes_than_the_library_has(name):
    """The bits of the same elements with few axes, dense or not, and with vmap's axis more."""
    few = torch.randn(2, 4, 2, 3)
    many = few.view(2, 4, *[1] * 15, 2, 3)
    spread = torch.empty(*many.shape[:-1], 6)[..., ::2].copy_(many)
    for x in many, spread:
        assert_equal([part.view(few.shape) for part in result_and_gradient(ours, name, x)],
                     result_and_gradient(ours, name, few))
    if name != "batch":
        sixteen = few.view(2, 4, *[1] * 12, 2, 3)
        assert torch.equal(torch.vmap(lambda x: CALLS[name](ours, x))(sixteen[None])[0], CALLS[name](ours, sixteen))


@pytest.mark.parametrize("name", CALLS)
def test_vmap_over_an_empty_batch(name):
    x = torch.empty(0, 2, 4, 2, 3, requires_grad=True)
    norm = lambda x: CALLS[name](ours, x)
    if name == "batch":
        norm = lambda x: ours.batch_norm(x, None, None, torch.ones(4), training=True)
    y = torch.vmap(norm)(x)
    assert y.shape == x.shape
    assert torch.autograd.grad(y.sum(), x)[0].shape == x.shape
    weights = torch.empty(0, 3)
    assert torch.vmap(lambda w: ours.layer_norm(torch.ones(2, 3), (3,), w))(weights).shape == (0, 2, 3)
    gradient = torch.func.grad(lambda w, x: ours.layer_norm(x, (3,), w).sum())
    assert torch.vmap(gradient, in_dims=(None, 0))(torch.ones(3), torch.empty(0, 2, 3)).shape == (0, 3)


def test_no_samples_leave_running_statistics_alone():
    for norm in ours.batch_norm, ours.instance_norm:
        mean, variance = torch.zeros(3), torch.ones(3)
        training = {"training": True} if norm is ours.batch_norm else {}
        assert norm(torch.empty(0, 3, 4), mean, variance, **training).shape == (0, 3, 4)
        assert_equal([mean, variance], [torch.zeros(3), torch.ones(3)])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("which", [0, 1])
def test_running_statistics_have_no_gradients(training, which):
    """PyTorch says so, and to ignore it would be a gradient of 0."""
    def call(f, x, statistics):
        return f.batch_norm(x, *statistics, training=training)

    statistics = [torch.zeros(3), torch.ones(3)]
    statistics[which].requires_grad_()
    for x in torch.randn(4, 3), torch.randn(3, 4).t(), torch.randn(4, 3, requires_grad=True):
        for f in theirs, ours:
            with pytest.raises(RuntimeError, match="is not differentiable with respect to argument 'running_"):
                call(f, x, statistics)
    with torch.no_grad():
        call(ours, torch.randn(4, 3), statistics)
    if not training:
        with pytest.raises(RuntimeError, match="is not differentiable"):
            torch.func.jacrev(lambda s: call(ours, torch.randn(4, 3), [s, s]))(torch.ones(3))


def test_numbers_that_pytorch_refuses():
    """Batch norm in training without momentum computed by the running statistics."""
    x = torch.randn(4, 6)
    for call in (lambda f: f.batch_norm(x, torch.zeros(6), torch.ones(6), training=True, momentum=None),
                 lambda f: f.layer_norm(x, (6.0,)), lambda f: f.rms_norm(x[:, :1], (True,)),
                 lambda f: f.layer_norm(x.t(), (4.0,)), lambda f: f.group_norm(x, 2.0),
                 lambda f: f.group_norm(x, True)):
        with pytest.raises(TypeError) as expected:
            call(theirs)
        with pytest.raises(TypeError) as got:
            call(ours)
        assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_tensors_are_left_to_pytorch(layout):
    x = torch.nested.nested_tensor([torch.randn(2, 6), torch.randn(3, 6)], layout=layout)
    weight, bias = torch.rand(6), torch.rand(6)
    calls = [lambda f: f.layer_norm(x, (6,), weight, bias)]
    if layout == torch.jagged:
        calls.append(lambda f: f.rms_norm(x, (6,), weight))
    for call in calls:
        assert torch.equal(call(ours).to_padded_tensor(0.0), call(theirs).to_padded_tensor(0.0))


def test_distributed_tensors_are_left_to_pytorch(tmp_path):
    import torch.distributed as distributed
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = distributed.init_device_mesh("cpu", (1,))
        x = distribute_tensor(torch.randn(4, 6, 2), mesh, [Shard(0)]).requires_grad_()
        weight = distribute_tensor(torch.rand(2), mesh, [Replicate()])
        for call in lambda f: f.layer_norm(x, (2,), weight, weight), lambda f: f.rms_norm(x, (2,), weight):
            y = call(ours)
            assert isinstance(y, DTensor)
            assert torch.equal(y.to_local(), call(theirs).to_local())
            y.sum().backward()
    finally:
        distributed.destroy_process_group()
