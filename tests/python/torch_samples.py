"""What the tests of lnorm.torch have in common: the norms, PyTorch's own samples of them, and a yardstick."""
import inspect

import pytest

torch = pytest.importorskip("torch")
from torch.testing._internal.common_methods_invocations import op_db

import lnorm.torch as ours
import torch.nn.functional as theirs

NAMES = ("layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm")
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def assert_equal(got, expected):
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def op_info(name):
    found = [op for op in op_db if op.name == f"nn.functional.{name}" and not op.variant_test_name]
    assert len(found) == 1
    return found[0]


def legal(arguments):
    """PyTorch's samples have eps < 0, an error here, and momentum < 0, with which the call is PyTorch's: the magnitude,
    of momentum 1 at most, serves both sides."""
    change = {"eps": abs, "momentum": lambda value: min(abs(value), 1.0)}
    return {key: change[key](value) if key in change and value is not None else value
            for key, value in arguments.items()}


def samples(name, dtype, requires_grad=False):
    """PyTorch's, each as a dict of arguments."""
    signature = inspect.signature(getattr(ours, name))
    return [legal(signature.bind(sample.input, *sample.args, **sample.kwargs).arguments)
            for sample in op_info(name).sample_inputs("cpu", dtype, requires_grad=requires_grad)]


def differentiable(case):
    """The names of the tensors that a derivative may be taken by."""
    return [key for key, value in case.items() if isinstance(value, torch.Tensor) and not key.startswith("running")]


def running(case):
    """Copies of the running statistics, to be given to a call that updates them."""
    return {key: value.detach().clone() for key, value in case.items()
            if key.startswith("running") and value is not None}


def call(module, name, case, **more):
    return getattr(module, name)(**(case | running(case) | more))


def on(dtype, case):
    """The case with its tensors in another type."""
    return {key: value.to(dtype) if isinstance(value, torch.Tensor) else value for key, value in case.items()}


def ulp(scale, dtype):
    """The distance of neighbouring numbers of `dtype` at magnitudes `scale`, which is f64."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(scale.clamp(min=info.tiny)))
    return info.eps * torch.exp2(exponent)


# Small cases of each kind, as functions of tensors that a derivative may be taken by: (function, tensors).
def derivative_cases():
    torch.manual_seed(3)
    make = lambda *shape: torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    yield "layer", lambda x, w, b: ours.layer_norm(x, (4,), w, b), (make(3, 4), make(4), make(4))
    yield "layer2", lambda x, w, b: ours.layer_norm(x, (2, 3), w, b, 0.5), (make(2, 2, 3), make(2, 3), make(2, 3))
    yield "layer_no_weight", lambda x, b: ours.layer_norm(x, (4,), None, b), (make(2, 4), make(4))
    yield "layer_no_bias", lambda x, w: ours.layer_norm(x, (4,), w), (make(2, 4), make(4))
    yield "layer_eps_0", lambda x: ours.layer_norm(x, (4,), eps=0.0), (make(2, 4),)
    yield "layer_strided", lambda x, w: ours.layer_norm(x.mT, (3,), w), (make(3, 2), make(3))
    yield "rms", lambda x, w: ours.rms_norm(x, (4,), w), (make(3, 4), make(4))
    yield "rms_no_weight", lambda x: ours.rms_norm(x, (2, 2), eps=0.1), (make(3, 2, 2),)
    yield "group", lambda x, w, b: ours.group_norm(x, 2, w, b), (make(2, 4, 3), make(4), make(4))
    yield "group_flat", lambda x, w: ours.group_norm(x, 2, w), (make(1, 6), make(6))
    yield "instance", lambda x, w, b: ours.instance_norm(x, weight=w, bias=b), (make(2, 2, 3), make(2), make(2))
    statistics = make(2).detach(), make(2).detach().exp()
    yield "batch", lambda x, w, b: ours.batch_norm(x, None, None, w, b, True), (make(3, 2, 2), make(2), make(2))
    yield "batch_no_bias", lambda x, w: ours.batch_norm(x, None, None, w + 1, None, True), (make(5, 2), make(2))
    yield ("batch_with_running", lambda x, w, b: ours.batch_norm(x, *(s.clone() for s in statistics), w, b, True),
           (make(2, 2, 2), make(2), make(2)))
    yield "given", lambda x, w, b: ours.batch_norm(x, *statistics, w, b), (make(2, 2, 3), make(2), make(2))
    yield "given_no_bias", lambda x, w: ours.batch_norm(x, *statistics, w), (make(2, 2, 3), make(2))
    yield "given_instance", lambda x: ours.instance_norm(x, *statistics, None, None, False), (make(2, 2, 3),)


DERIVATIVES = [pytest.param(function, tensors, id=name) for name, function, tensors in derivative_cases()]
