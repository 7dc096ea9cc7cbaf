"""PyTorch's own samples and error inputs, given to lnorm.torch."""
import itertools

import pytest

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck
from torch.testing._internal.common_modules import module_db

import lnorm.torch as ours
from torch_samples import DTYPES, NAMES, call, legal, on, op_info, samples, theirs, ulp, without_running

EVERY = pytest.mark.parametrize("name, dtype", list(itertools.product(NAMES, DTYPES)), ids=str)


def parameters(name, case):
    """weight and bias, broadcast over x; each 1 or 0 where there is none."""
    x, args, kwargs = case
    named = dict(zip(("normalized_shape", "weight", "bias"), args)) | kwargs
    shape = (-1,) + (1,) * (x.dim() - 2) if name in ("group_norm", "instance_norm") else None
    fit = lambda p, default: torch.full((), default, dtype=x.dtype) if p is None else p.reshape(shape) if shape else p
    return fit(named.get("weight"), 1), fit(named.get("bias"), 0)


@EVERY
def test_values(name, dtype):
    """y within 0.501 ulp of the scale that lnorm.h names, of f64 within 1 ulp; PyTorch's f64 result, which is itself a
    few ulp of f64 off, is the measure, and 1e-12 the allowance for that."""
    for case in samples(name, dtype):
        case = case[0], case[1], without_running(case[2])
        y, wide = call(ours, name, case), on(torch.float64, case)
        exact = call(theirs, name, wide)
        weight, bias = parameters(name, wide)
        assert y.dtype == dtype and y.shape == exact.shape
        if dtype == torch.float64:
            torch.testing.assert_close(y, exact, rtol=1e-12, atol=1e-12)
        elif y.numel():
            scale = torch.stack([t.abs().expand_as(exact) for t in (exact, weight, bias, exact - bias)]).amax(0)
            assert ((y.double() - exact).abs() <= 0.501 * ulp(scale, dtype) + 1e-12).all()


@EVERY
def test_gradients(name, dtype):
    """Beside PyTorch's, of f64 arithmetic, at PyTorch's own tolerances for the type."""
    for case in samples(name, dtype):
        case = case[0], case[1], without_running(case[2])
        results, dy = [], torch.randn_like(case[0])
        for module, at in ((ours, dtype), (theirs, torch.float64)):
            moved = on(at, case)
            tensors = [t.detach().requires_grad_() for t in (moved[0], *moved[1], *moved[2].values())
                       if isinstance(t, torch.Tensor)]
            remaining = iter(tensors)
            again = lambda value: next(remaining) if isinstance(value, torch.Tensor) else value
            y = call(module, name, (again(moved[0]), tuple(map(again, moved[1])),
                                    {key: again(value) for key, value in moved[2].items()}))
            results.append(torch.autograd.grad(y, tensors, dy.to(at)))
        for got, expected in zip(*results):
            assert got.dtype == dtype
            torch.testing.assert_close(got, expected.to(dtype))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    for x, args, kwargs in samples(name, torch.float64, requires_grad=True):
        kwargs = without_running(kwargs)
        function = lambda x, *t: getattr(ours, name)(x, *t, **kwargs)
        assert gradcheck(function, (x, *args), check_forward_ad=True, check_batched_grad=True,
                         fast_mode=True)
        assert gradgradcheck(function, (x, *args), check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
def test_error_inputs(name):
    """Where PyTorch refuses, lnorm does, in the same words."""
    info = op_info(name)
    errors = list(info.error_inputs("cpu")) if info.error_inputs_func else []
    if name == "layer_norm":
        native, = [op for op in torch.testing._internal.common_methods_invocations.op_db
                   if op.name == "native_layer_norm"]
        errors += list(native.error_inputs("cpu"))
    for error in errors:
        sample = error.sample_input
        with pytest.raises(error.error_type, match=error.error_regex):
            getattr(ours, name)(sample.input, *sample.args, **legal(sample.kwargs))


x = torch.ones(2, 6)
REFUSED = {
    "normalized_shape is an int": lambda m: m.layer_norm(x, 6),
    "normalized_shape too long": lambda m: m.layer_norm(x, (1, 2, 6)),
    "bias of another shape": lambda m: m.layer_norm(x, (6,), None, torch.ones(5)),
    "not a tensor": lambda m: m.layer_norm([1.0], (1,)),
    "not a tensor, rms": lambda m: m.rms_norm(None, (1,)),
    "eps is text": lambda m: m.layer_norm(x, (6,), eps="small"),
    "f64 parameters": lambda m: m.layer_norm(x, (6,), torch.ones(6).double(), torch.ones(6).double()),
    "mixed parameters": lambda m: m.layer_norm(x.half(), (6,), torch.ones(6), torch.ones(6).half()),
    "integers": lambda m: m.layer_norm(x.long(), (6,)),
    "integers, rms": lambda m: m.rms_norm(x.long(), (6,)),
    "complex": lambda m: m.group_norm(x.cfloat(), 2),
    "sparse": lambda m: m.layer_norm(x.to_sparse(), (6,)),
    "no groups": lambda m: m.group_norm(x, 0),
    "groups do not divide": lambda m: m.group_norm(x, 4),
    "weight of group norm": lambda m: m.group_norm(x[..., None], 3, torch.ones(5)),
    "one value per channel": lambda m: m.group_norm(x[:1], 6),
    "one position per channel": lambda m: m.instance_norm(x[..., None]),
    "weight on another device": lambda m: m.layer_norm(x, (6,), torch.ones(6, device="meta"), torch.ones(6)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_the_same_words(case):
    with pytest.raises(Exception) as expected:
        REFUSED[case](theirs)
    with pytest.raises(type(expected.value)) as got:
        REFUSED[case](ours)
    assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("eps", [-1e-5, -0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("grad", [False, True])
def test_eps_is_checked(eps, grad):
    for x in (torch.ones(2, 6, requires_grad=grad), torch.ones(0, 6)):
        for call in (lambda: ours.layer_norm(x, (6,), eps=eps), lambda: ours.rms_norm(x, (6,), eps=eps),
                     lambda: ours.group_norm(x, 2, eps=eps)):
            with pytest.raises(RuntimeError, match="eps: expected a finite number of at least 0, got"):
                call()


MODULES = [info for info in module_db if info.module_cls in (torch.nn.LayerNorm, torch.nn.RMSNorm, torch.nn.GroupNorm)]


@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
@pytest.mark.parametrize("training", [False, True])
def test_module_inputs(info, training):
    """Constructed alike, fed alike: the same state, output and gradients at PyTorch's tolerances."""
    for dtype in (torch.float64, torch.float32):
        for sample in info.module_inputs_func(info, "cpu", dtype, True, training):
            arguments, x = sample.constructor_input, sample.forward_input.args[0]
            pair = [cls(*arguments.args, **arguments.kwargs, dtype=dtype).train(training)
                    for cls in (getattr(ours, info.module_cls.__name__), info.module_cls)]
            assert repr(pair[0]) == repr(pair[1]) and list(pair[0].state_dict()) == list(pair[1].state_dict())
            outputs = [module(x) for module in pair]
            torch.testing.assert_close(*outputs)
            gradients = [torch.autograd.grad(y.sin().sum(), (x, *module.parameters()))
                         for y, module in zip(outputs, pair)]
            torch.testing.assert_close(*gradients)
            if sample.reference_fn:
                torch.testing.assert_close(outputs[0], sample.reference_fn(pair[0], x),
                                           check_dtype=False, rtol=1e-5, atol=1e-5)


def test_module_error_inputs():
    info, = [info for info in MODULES if info.module_cls is torch.nn.GroupNorm]
    for error in info.module_error_inputs_func(info, "cpu", torch.float32, False, False):
        arguments = error.module_error_input.constructor_input
        with pytest.raises(error.error_type, match=error.error_regex):
            ours.GroupNorm(*arguments.args, **arguments.kwargs)
