"""Statistics that a recorded forward pass saves: the gradients by them have the bits of gradients that compute them."""
import gc
import itertools
import math
import weakref

import pytest

torch = pytest.importorskip("torch")
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import lnorm.torch as ours
from lnorm import _core

COLS, LONG = 96, 24576
TYPES = [(torch.float32, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.float16, torch.float32)]


def hard_rows(dtype, cols):
    """|mean|/spread from 0 to 1e6, most of them close to 8, where path B begins; rows of one value, of all but one
    equal, of the smallest and the largest numbers. (Of f32 what path B adds shows in gradients from some 1e5 on.)"""
    ratios = torch.cat([torch.tensor([0, 1, -3, 12, 1e2, -1e4, 1e5, 3e5, -1e6]), torch.linspace(7.4, 8.6, 50)]).double()
    z = torch.randn(len(ratios), cols, dtype=torch.float64)
    z = (z - z.mean(1, True)) / z.std(1, correction=0, keepdim=True)
    x = (z + ratios[:, None]) * 2.0 ** torch.randint(-6, 3, (len(ratios), 1))
    special = torch.zeros(7, cols, dtype=torch.float64)
    special[1], special[2], special[3] = 3.5, -2.0 ** -20, torch.finfo(dtype).tiny
    special[4], special[4, 5], special[5, 0], special[6] = -7, -7.25, 1, z[0] * 1e4
    return torch.cat([x, special]).to(dtype)


def recorded(kind, fast, x, weight, bias, eps):
    if kind == "rms":
        return ours.rms_norm(x, weight.shape, weight, eps, fast=fast), [x, weight]
    return ours.layer_norm(x, weight.shape, weight, bias, eps, fast=fast), [x, weight, bias]


def computed_anew(kind, fast, x, weight, bias, eps, dy):
    how = (_core.RMS_NORM if kind == "rms" else _core.LAYER_NORM, tuple(weight.shape), eps, fast, None)
    bias = None if kind == "rms" else bias
    tensors = [None if t is None else t.detach() for t in (x, weight, bias)]
    found = _core.tensor_norm_backward(tuple(tensors), how, dy, (True, True, bias is not None))
    return [gradient for gradient in found if gradient is not None]


def assert_same_bits(got, expected):
    """NaN have any bits."""
    for a, b in zip(got, expected, strict=True):
        integer = torch.int32 if a.dtype == torch.float32 else torch.int16
        assert torch.equal(a.isnan(), b.isnan())
        assert torch.equal(a.nan_to_num(0).view(integer), b.nan_to_num(0).view(integer))


def operands(types, rows, cols=COLS, x=None):
    x = torch.randn(rows, cols).to(types[0]) if x is None else x
    weight, bias = (torch.randn(2, cols).to(types[1]))
    return [t.requires_grad_() for t in (x, weight, bias)], torch.randn(rows, cols).to(types[0])


def saved_statistics(y):
    return [t for t in y.grad_fn.saved_tensors if t is not None and t.dtype == torch.float64]


def check(kind, fast, x, weight, bias, eps, dy):
    y, wrt = recorded(kind, fast, x, weight, bias, eps)
    assert len(saved_statistics(y)) == 1
    assert_same_bits(torch.autograd.grad(y, wrt, dy), computed_anew(kind, fast, x, weight, bias, eps, dy))


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("types", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_same_bits_for_every_kind_of_row(kind, types, fast):
    """Each alone, as one of path B sends all others the long way, and all together."""
    torch.manual_seed(5)
    rows = hard_rows(types[0], LONG)
    (x, weight, bias), dy = operands(types, *rows.shape)
    for eps in (1e-5, 0.0, 1e-300, 0.5, 1e300):
        for i in range(len(rows)):
            check(kind, fast, rows[i:i + 1].clone().requires_grad_(), weight, bias, eps, dy[i:i + 1])
        check(kind, fast, rows.clone().requires_grad_(), weight, bias, eps, dy)
    for row in hard_rows(types[0], COLS)[::3]:
        (x, weight, bias), dy = operands(types, 256, x=row.expand(256, COLS).clone())
        check(kind, fast, x, weight, bias, 1e-12, dy)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_rows_that_are_not_finite(kind, fast, value):
    torch.manual_seed(6)
    (x, weight, bias), dy = operands(TYPES[0], 512)
    with torch.no_grad():
        x[17, 3], x[300] = value, value
    check(kind, fast, x, weight, bias, 1e-5, dy)


@pytest.mark.parametrize("rows, cols, count", [(384, 64, 768), (4, 8192, 8), (1, 30000, 2), (383, 64, 0),
                                               (4096, 16, 0)])
def test_what_is_saved(rows, cols, count):
    """Of layer norm two numbers for each row, of RMS norm one; nothing of few elements, of short rows, of float64."""
    for types in TYPES:
        (x, weight, bias), dy = operands(types, rows, cols)
        for kind in ("layer", "rms"):
            y, wrt = recorded(kind, False, x, weight, bias, 1e-5)
            numbers = sum(t.numel() for t in saved_statistics(y))
            assert numbers == (count if kind == "layer" else count // 2)
            assert_same_bits(torch.autograd.grad(y, wrt, dy), computed_anew(kind, False, x, weight, bias, 1e-5, dy))
    (x, weight, bias), dy = operands((torch.float64, torch.float64), rows, cols)
    assert len(recorded("layer", False, x, weight, bias, 1e-5)[0].grad_fn.saved_tensors) == 3


@pytest.mark.parametrize("kind, fast", list(itertools.product(["layer", "rms"], [False, True])))
def test_saved_statistics_are_used(kind, fast):
    """Others give other gradients; what cannot be statistics is not looked at."""
    (x, weight, bias), dy = operands(TYPES[0], 512)
    y, wrt = recorded(kind, fast, x, weight, bias, 1e-5)
    *tensors, statistics = y.grad_fn.saved_tensors
    expected = computed_anew(kind, fast, x, weight, bias, 1e-5, dy)
    how = y.grad_fn.how
    mask = True, True, kind == "layer"
    gradients = lambda s: [g for g in _core.tensor_norm_backward((*tensors, s), how, dy, mask) if g is not None]
    assert_same_bits(gradients(statistics), expected)
    assert not torch.equal(gradients(statistics * 0.75)[0], expected[0])
    for other in (None, statistics.float(), statistics[:-2], statistics.repeat_interleave(2)[::2]):
        assert_same_bits(gradients(other), expected)


@pytest.mark.parametrize("eps", [0.0, 1e-5, 3.0])
@pytest.mark.parametrize("fast", [False, True])
def test_rows_of_path_b_do_not_use_them(fast, eps):
    """And those that are clearly of path A do. Whether they are used a small change of rstd shows."""
    torch.manual_seed(7)
    rows = hard_rows(torch.float32, LONG)
    (_, weight, bias), dy = operands(TYPES[0], *rows.shape)
    all_used = set()
    for i, x in enumerate(rows):
        y, wrt = recorded("layer", fast, x[None].clone().requires_grad_(), weight, bias, eps)
        *tensors, statistics = y.grad_fn.saved_tensors
        changed = statistics * torch.tensor([1 + 2.0 ** -20, 1], dtype=torch.float64)
        given, other = (_core.tensor_norm_backward((*tensors, s), y.grad_fn.how, dy[i:i + 1], (True, False, False))[0]
                        for s in (statistics, changed))
        used = not torch.equal(given, other)
        values = x.double().tolist()
        mean, square = math.fsum(values) / LONG, math.fsum(v * v for v in values) / LONG
        variance = square - mean * mean
        assert not used or variance * 64.000001 >= mean * mean
        assert used or variance * 59 < mean * mean or variance < eps * 1e-3 or len(set(values)) < 3
        all_used.add(used)
    assert all_used == {False, True}


@pytest.mark.parametrize("shape, axes", [((LONG,), 1), ((2, 3, 5, 1000), 1), ((5, 7, 30, 40), 2)], ids=str)
def test_more_axes_than_rows_and_columns(shape, axes):
    x, dy = torch.randn(2, *shape)
    weight, bias = torch.randn(2, *shape[-axes:]).requires_grad_()
    for kind, fast in itertools.product(["layer", "rms"], [False, True]):
        check(kind, fast, x.requires_grad_(), weight, bias, 1e-5, dy)


def test_hooks_checkpoints_and_further_derivatives():
    (x, weight, bias), dy = operands(TYPES[0], 512)
    norm = lambda x, w, b: ours.layer_norm(x, (COLS,), w, b)
    expected = computed_anew("layer", False, x, weight, bias, 1e-5, dy)
    wrt = (x, weight, bias)
    with save_on_cpu():
        y = norm(*wrt)
    assert_same_bits(torch.autograd.grad(y, wrt, dy), expected)
    compressed = lambda t: t.bfloat16().double() if t.dtype == torch.float64 else t
    with saved_tensors_hooks(lambda t: t, compressed):  # whose owner answers for it
        y = norm(*wrt)
    torch.testing.assert_close(torch.autograd.grad(y, wrt, dy)[0], expected[0], rtol=0.1, atol=0.1)
    for reentrant in (False, True):
        y = checkpoint(norm, *wrt, use_reentrant=reentrant)
        if reentrant:
            y.backward(dy)
            assert_same_bits([t.grad for t in wrt], expected)
        else:
            assert_same_bits(torch.autograd.grad(y, wrt, dy), expected)
    for some in (dy[:1].expand_as(dy), dy.t().contiguous().t()):  # not dense; what is saved can be asked for once
        y = checkpoint(norm, *wrt, use_reentrant=False)
        assert_same_bits(torch.autograd.grad(y, wrt, some),
                         computed_anew("layer", False, *wrt, 1e-5, some.contiguous()))
    y = norm(*wrt)
    for _ in range(2):
        assert_same_bits(torch.autograd.grad(y, wrt, dy, retain_graph=True), expected)
    once = torch.autograd.grad(y, wrt, dy, create_graph=True)
    assert_same_bits([t.detach() for t in once], expected)
    theirs = torch.autograd.grad(torch.nn.functional.layer_norm(x, (COLS,), weight, bias), x, dy, create_graph=True)
    second = lambda gradient: torch.autograd.grad(gradient.square().sum(), x)
    torch.testing.assert_close(second(once[0]), second(theirs[0]))
    batched = torch.autograd.grad(y, wrt, torch.stack([dy, 2 * dy]), is_grads_batched=True)
    assert_same_bits([t[0] for t in batched], expected)


def test_statistics_go_with_the_graph():
    (x, weight, bias), dy = operands(TYPES[0], 512)
    for last in ("backward", "graph"):
        packed = []
        with saved_tensors_hooks(lambda t: packed.append(weakref.ref(t)) or t, lambda t: t):
            y = ours.layer_norm(x, (COLS,), weight, bias)
        assert len(packed) == 3 and packed[-1]().dtype == torch.float64
        if last == "backward":
            y.backward(dy)
        else:
            del y
        gc.collect()
        assert packed[-1]() is None
