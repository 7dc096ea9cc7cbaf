"""PyTorch's own samples and error inputs, given to lnorm.torch."""
import itertools

import pytest

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck
from torch.testing._internal.common_modules import module_db

import lnorm.torch as ours
from torch_samples import DTYPES, NAMES, call, differentiable, legal, on, op_info, running, samples, theirs, ulp

EVERY = pytest.mark.parametrize("name, dtype", list(itertools.product(NAMES, DTYPES)), ids=str)


def parameters(name, case):
    """weight and bias, broadcast over x; each 1 or 0 where there is none."""
    x = case["input"]
    shape = None if name in ("layer_norm", "rms_norm") else (-1,) + (1,) * (x.dim() - 2)
    fit = lambda p, default: torch.full((), default, dtype=x.dtype) if p is None else p.reshape(shape) if shape else p
    return fit(case.get("weight"), 1), fit(case.get("bias"), 0)


@EVERY
def test_values(name, dtype):
    """y within 0.501 ulp of the scale that lnorm.h names, of f64 within 1 ulp; PyTorch's f64 result, which is itself a
    few ulp of f64 off, is the measure, and 1e-12 the allowance for that."""
    for case in samples(name, dtype):
        y, wide = call(ours, name, case), on(torch.float64, case)
        exact = call(theirs, name, wide)
        weight, bias = parameters(name, wide)
        assert y.dtype == dtype and y.shape == exact.shape
        if dtype == torch.float64:
            torch.testing.assert_close(y, exact, rtol=1e-12, atol=1e-12)
        elif y.numel():
            scale = torch.stack([t.abs().expand_as(exact) for t in (exact, weight, bias, exact - bias)]).amax(0)
            assert ((y.double() - exact).abs() <= 0.501 * ulp(scale, dtype) + 1e-12).all()


@pytest.mark.parametrize("name, dtype", list(itertools.product(("instance_norm", "batch_norm"), DTYPES)), ids=str)
def test_running_statistics(name, dtype):
    """Rounded once, to nearest, from what f64 makes of them; whoever keeps a view of them sees that they changed."""
    changed = 0
    for case in samples(name, dtype):
        got, exact = running(case), running(on(torch.float64, case))
        versions = [value._version for value in got.values()]
        call(ours, name, case, **got)
        call(theirs, name, on(torch.float64, case), **exact)
        for key in got:
            assert got[key].dtype == dtype
            error = (got[key].double() - exact[key]).abs()
            assert (error <= (0 if dtype == torch.float64 else 0.501) * ulp(exact[key].abs(), dtype) + 1e-12).all()
        if any(not torch.equal(got[key], case[key]) for key in got):
            changed += 1
            assert all(value._version > before for value, before in zip(got.values(), versions))
    assert changed >= 2


@EVERY
def test_gradients(name, dtype):
    """Beside PyTorch's, of f64 arithmetic, at PyTorch's own tolerances for the type."""
    for case in samples(name, dtype):
        results, dy = [], torch.randn_like(case["input"])
        for module, at in ((ours, dtype), (theirs, torch.float64)):
            moved = on(at, case)
            tensors = {key: moved[key].detach().requires_grad_() for key in differentiable(case)}
            y = call(module, name, moved, **tensors)
            results.append(torch.autograd.grad(y, tuple(tensors.values()), dy.to(at)))
        for got, expected in zip(*results):
            assert got.dtype == dtype
            torch.testing.assert_close(got, expected.to(dtype))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    for case in samples(name, torch.float64, requires_grad=True):
        keys = differentiable(case)
        function = lambda *tensors: call(ours, name, case, **dict(zip(keys, tensors)))
        tensors = [case[key] for key in keys]
        assert gradcheck(function, tensors, check_forward_ad=True, check_batched_grad=True, fast_mode=True)
        assert gradgradcheck(function, tensors, check_fwd_over_rev=True, fast_mode=True)


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
    "one value per channel in training": lambda m: m.batch_norm(x[:1], None, None, training=True),
    "nothing to normalise with": lambda m: m.batch_norm(x, None, None),
    "nothing to normalise with, instance": lambda m: m.instance_norm(x[..., None], use_input_stats=False),
    "one of two statistics": lambda m: m.batch_norm(x, x[0], None),
    "statistics of another shape": lambda m: m.batch_norm(x, x[0, :5].clone(), x[0, :5].clone(), training=True),
    "statistics of another shape, instance": lambda m: m.instance_norm(x[..., None].expand(2, 6, 2), x[0, :5].clone(),
                                                                       x[0, :5].clone()),
    "weight of batch norm": lambda m: m.batch_norm(x, x[0], x[0], torch.ones(5)),
    "eps 0 in training": lambda m: m.batch_norm(x, None, None, training=True, eps=0.0),
    "eps below 0": lambda m: m.batch_norm(x, x[0], x[0], eps=-1e-5),
    "integers, batch": lambda m: m.batch_norm(x.long(), None, None, training=True),
    "f64 statistics": lambda m: m.batch_norm(x, x[0].double(), x[0].double()),
    "no channels": lambda m: m.batch_norm(x[0, 0], x[0], x[0]),
    "momentum is text": lambda m: m.batch_norm(x, x[0], x[0], training=True, momentum="large"),
    "not a tensor, batch": lambda m: m.batch_norm([1.0], None, None),
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


CLASSES = [getattr(torch.nn, name) for name in ours.__all__ if name.endswith(("Norm", "d"))]
MODULES = [info for info in module_db if info.module_cls in CLASSES]


@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
@pytest.mark.parametrize("training", [False, True])
def test_module_inputs(info, training):
    """Constructed alike, fed alike, twice, as some have a state: output, gradients and state beside PyTorch's, of f64
    arithmetic, at PyTorch's tolerances for the type."""
    for dtype in (torch.float64, torch.float32):
        for sample in info.module_inputs_func(info, "cpu", dtype, True, training):
            arguments, x = sample.constructor_input, sample.forward_input.args[0]
            pair = [cls(*arguments.args, **arguments.kwargs, dtype=at).train(training) for cls, at in
                    ((getattr(ours, info.module_cls.__name__), dtype), (info.module_cls, torch.float64))]
            assert repr(pair[0]) == repr(pair[1]) and list(pair[0].state_dict()) == list(pair[1].state_dict())
            for _ in range(2):
                outputs = [module(x.to(at)) for module, at in zip(pair, (dtype, torch.float64))]
                torch.testing.assert_close(outputs[0], outputs[1].to(dtype))
                for got, expected in zip(*(module.state_dict().values() for module in pair)):
                    torch.testing.assert_close(got, expected.to(got.dtype))
            dy = torch.randn_like(x)
            gradients = [torch.autograd.grad(y, (x, *module.parameters()), dy.to(y.dtype))
                         for y, module in zip(outputs, pair)]
            torch.testing.assert_close(gradients[0], tuple(gradient.to(dtype) for gradient in gradients[1]))
            if sample.reference_fn:
                torch.testing.assert_close(outputs[0], sample.reference_fn(pair[0], x),
                                           check_dtype=False, rtol=1e-5, atol=1e-5)


def test_module_error_inputs():
    tried = 0
    for info in MODULES:
        if not info.module_error_inputs_func:
            continue
        for error in info.module_error_inputs_func(info, "cpu", torch.float32, False, True):
            arguments, x = (getattr(error.module_error_input, name) for name in ("constructor_input", "forward_input"))
            with pytest.raises(error.error_type, match=error.error_regex):
                module = getattr(ours, info.module_cls.__name__)(*arguments.args, **arguments.kwargs)
                module(*x.args, **x.kwargs)
            tried += 1
    assert tried >= 7


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.__name__.endswith("d")], ids=lambda cls: cls.__name__)
def test_modules_refuse_in_the_same_words(cls):
    """Inputs of every number of axes; where affine, of another number of channels."""
    for shape in [(2, 3, 4, 4, 4, 4)[:ndim] for ndim in range(1, 7)] + [(2, 4, 4), (2, 4, 4, 4), (2, 5, 4, 4, 4)]:
        results = []
        for module in (cls(3, affine=True), getattr(ours, cls.__name__)(3, affine=True)):
            try:
                results.append(module(torch.ones(shape)).shape)
            except (ValueError, RuntimeError) as error:
                results.append((type(error), str(error)))
        assert results[0] == results[1]
