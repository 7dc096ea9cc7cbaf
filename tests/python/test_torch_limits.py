"""lnorm.torch where arguments are odd: many axes, empty batches."""
import pytest

torch = pytest.importorskip("torch")

import lnorm.torch as ours
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
