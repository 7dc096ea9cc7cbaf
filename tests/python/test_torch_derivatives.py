"""Derivatives of every order and direction, against finite differences and against each other."""
import pytest

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck

import lnorm.torch as ours
from torch_samples import DERIVATIVES


@pytest.mark.parametrize("function, tensors", DERIVATIVES)
def test_first_derivatives(function, tensors):
    assert gradcheck(function, tensors, check_forward_ad=True, check_batched_grad=True,
                     check_batched_forward_grad=True, check_undefined_grad=True)


@pytest.mark.parametrize("function, tensors", DERIVATIVES)
def test_second_derivatives(function, tensors):
    assert gradgradcheck(function, tensors, check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize("function, tensors", DERIVATIVES)
def test_each_parameter_by_itself(function, tensors):
    """Only one operand wants a gradient: the others' are not computed, which changes no bit."""
    outputs = torch.randn_like(function(*tensors))
    together = torch.autograd.grad(function(*tensors), tensors, outputs)
    for i, expected in enumerate(together):
        alone = [t if i == k else t.detach() for k, t in enumerate(tensors)]
        got, = torch.autograd.grad(function(*alone), alone[i], outputs)
        assert torch.equal(got, expected)


# Three derivatives one after the other, each in one of the two modes: their order must not matter, and nothing may be
# missing. 1e-8 relative is f64 with room for cancellation; a term left out is of the order of 1.
FORWARD, REVERSE = torch.func.jacfwd, torch.func.jacrev


# (The parameters' part is linear; the cases with fewer tensors have it all.)
@pytest.mark.parametrize("function, tensors", [case for case in DERIVATIVES if len(case.values[1]) < 3])
def test_third_derivatives_in_any_mode(function, tensors):
    detached = [t.detach() for t in tensors]
    scalar = lambda *a: function(*a).cos().sum()
    results = [a(b(c(scalar)))(*detached) for a in (FORWARD, REVERSE) for b in (FORWARD, REVERSE)
               for c in (FORWARD, REVERSE)]
    assert results[0].abs().max() > 1e-3
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-8, atol=1e-8)


def test_fourth_derivative_is_not_a_silent_zero():
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    value = ours.layer_norm(x, (3,)).sin().sum()
    for order in range(4):
        value, = torch.autograd.grad(value.cos().sum(), x, create_graph=True)
        assert value.abs().max() > 1e-6, f"derivative {order + 1}"


def test_forward_over_reverse_outside_torch_func():
    x = torch.randn(2, 3, dtype=torch.float64)
    direction = torch.randn(2, 3, dtype=torch.float64)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.clone().requires_grad_(), direction)
        gradient, = torch.autograd.grad(ours.layer_norm(dual, (3,)).cos().sum(), dual, create_graph=True)
        product = torch.autograd.forward_ad.unpack_dual(gradient).tangent
    hessian = torch.func.hessian(lambda x: ours.layer_norm(x, (3,)).cos().sum())(x)
    torch.testing.assert_close(product, torch.einsum("abcd,cd->ab", hessian, direction))


def test_constant_group_with_eps_0():
    """rstd is 0 by definition: no infinity in any derivative."""
    x = torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    gradient, = torch.autograd.grad(ours.layer_norm(x, (4,), eps=0.0).sum(), x, create_graph=True)
    second, = torch.autograd.grad(gradient.sum(), x)
    assert torch.equal(gradient, torch.zeros_like(x)) and torch.equal(second, torch.zeros_like(x))


def test_narrow_second_derivatives_have_their_types():
    x = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(8, requires_grad=True)
    bias = torch.randn(8, requires_grad=True)
    dx, dweight, dbias = torch.autograd.grad(ours.layer_norm(x, (8,), weight, bias).float().sin().sum(),
                                             (x, weight, bias), create_graph=True)
    assert (dx.dtype, dweight.dtype, dbias.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    total = dx.float().sum() + dweight.cos().sum() + dbias.cos().sum()
    second = torch.autograd.grad(total, (x, weight, bias))
    assert [g.dtype for g in second] == [torch.bfloat16, torch.float32, torch.float32]
    assert all(g.abs().max() > 0 for g in second)
