"""What the tests of lnorm.torch have in common: the norms, PyTorch's own samples of them, and a yardstick."""
import pytest

torch = pytest.importorskip("torch")
from torch.testing._internal.common_methods_invocations import op_db

import lnorm.torch as ours
import torch.nn.functional as theirs

NAMES = ("layer_norm", "rms_norm", "group_norm", "instance_norm")
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def op_info(name):
    found = [op for op in op_db if op.name == f"nn.functional.{name}" and not op.variant_test_name]
    assert len(found) == 1
    return found[0]


def legal(kwargs):
    """PyTorch's samples have negative eps, which is an error here: its magnitude serves both sides."""
    return {key: abs(value) if key == "eps" else value for key, value in kwargs.items()}


def samples(name, dtype, requires_grad=False):
    return [(sample.input, sample.args, legal(sample.kwargs))
            for sample in op_info(name).sample_inputs("cpu", dtype, requires_grad=requires_grad)]


def without_running(kwargs):
    """Instance norm as lnorm computes it; with running statistics it is PyTorch's own."""
    return {key: value for key, value in kwargs.items() if not key.startswith("running")}


def call(module, name, case, **more):
    x, args, kwargs = case
    return getattr(module, name)(x, *args, **kwargs, **more)


def on(dtype, case):
    """The case with its tensors in another type."""
    move = lambda value: value.to(dtype) if isinstance(value, torch.Tensor) else value
    x, args, kwargs = case
    return move(x), tuple(map(move, args)), {key: move(value) for key, value in kwargs.items()}


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


DERIVATIVES = [pytest.param(function, tensors, id=name) for name, function, tensors in derivative_cases()]
