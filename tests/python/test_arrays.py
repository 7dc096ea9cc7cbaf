"""What arrays are taken, and what comes back."""
import array

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lnorm

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def bits(array):
    return np.ascontiguousarray(array).tobytes()


@st.composite
def views(draw):
    """An array of any of the types, seen through slices of any step, a transposition, and broadcast axes."""
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    base = random.standard_normal([3 * extent for extent in shape]).astype(draw(st.sampled_from(DTYPES)))
    view = base[tuple(slice(None, None, draw(st.sampled_from([1, 2, 3, -1, -2]))) for _ in shape)]
    view = view.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        view = np.broadcast_to(view[..., :1] if draw(st.booleans()) else view[:1], view.shape)
    return view


@settings(max_examples=150, deadline=None)
@given(views(), st.data())
def test_a_view_gives_the_bits_of_its_copy(x, data):
    axes = data.draw(st.integers(1, x.ndim))
    shape = x.shape[-axes:]
    copy = x.copy(order="C")
    before = bits(x)
    weight = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape).astype(x.dtype)
    assert bits(lnorm.layer_norm(x, shape, weight)) == bits(lnorm.layer_norm(copy, shape, weight))
    assert bits(lnorm.rms_norm(x, shape)) == bits(lnorm.rms_norm(copy, shape))
    due = lnorm.layer_norm_backward(copy, copy, shape, weight)
    for a, b in zip(lnorm.layer_norm_backward(x, x, shape, weight), due):
        assert b is None and a is None or bits(a) == bits(b)
    assert bits(x) == before


@settings(max_examples=60, deadline=None)
@given(views())
def test_results_go_into_views(x):
    due = lnorm.layer_norm(x, x.shape[-1:])
    room = np.zeros([2 * extent for extent in x.shape], x.dtype)
    out = room[tuple(slice(None, None, -2) for _ in x.shape)]
    assert lnorm.layer_norm(x, x.shape[-1:], out=out) is out
    assert bits(out) == bits(due)
    out[...] = 0
    assert not room.astype(np.float64).any(), "something beside the view was written"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 70), st.sampled_from(DTYPES), st.sampled_from([0, 1, 100, 1e4]), st.data())
def test_the_error_is_what_is_promised(rows, cols, dtype, mean, data):
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = (random.standard_normal((rows, cols)) + mean).astype(dtype)
    weight, bias = (random.standard_normal(cols).astype(dtype) for _ in range(2))
    report = lnorm.verify(x, lnorm.layer_norm(x, cols, weight, bias), cols, weight, bias)
    assert report.worst <= (1 if dtype is np.float64 else 0.501)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_come_back(random, dtype):
    x, weight = random.standard_normal((3, 5)).astype(dtype), random.standard_normal(5).astype(dtype)
    y, mean, rstd = lnorm.layer_norm(x, 5, weight, return_stats=True)
    statistic = np.float64 if dtype is np.float64 else np.float32
    assert y.dtype == dtype and mean.dtype == rstd.dtype == statistic
    assert type(lnorm.layer_norm(x, 5)) is np.ndarray
    assert [g.dtype for g in lnorm.layer_norm_backward(x, x, 5, weight, weight)] == [np.dtype(dtype)] * 3


def test_mixed_types(random):
    x, weight = random.standard_normal((3, 5)).astype(ml_dtypes.bfloat16), random.standard_normal(5).astype(np.float32)
    y = lnorm.layer_norm(x, 5, weight)
    assert y.dtype == x.dtype
    assert lnorm.verify(x, y, 5, weight).worst <= 0.501
    dx, dweight, _ = lnorm.layer_norm_backward(x, x, 5, weight)
    assert dx.dtype == x.dtype and dweight.dtype == np.float32


def test_in_place(random):
    x = random.standard_normal((3, 5))
    due = lnorm.layer_norm(x, 5)
    assert lnorm.layer_norm(x, 5, out=x) is x
    np.testing.assert_array_equal(x, due)


def test_read_only(random):
    x = random.standard_normal((3, 5))
    x.flags.writeable = False
    due = lnorm.layer_norm(x.copy(), 5)
    np.testing.assert_array_equal(lnorm.layer_norm(x, 5), due)
    with pytest.raises(ValueError, match="y: expected an array to write to, got one that can only be read"):
        lnorm.layer_norm(x, 5, out=x)
    statistic = np.zeros(3)
    statistic.flags.writeable = False
    with pytest.raises(ValueError, match="mean: expected an array to write to, got one that can only be read"):
        lnorm._core.execute(lnorm._core.LAYER_NORM, lnorm._core.FORWARD, x=x, mean=statistic)


def test_other_byte_order_and_packed_fields_are_copied(random):
    x = random.standard_normal((3, 5)).astype(np.float32)
    due = lnorm.layer_norm(x, 5)
    np.testing.assert_array_equal(lnorm.layer_norm(x.astype(">f4"), 5), due)
    packed = np.zeros((3, 5), np.dtype([("tag", "u1"), ("value", "f4")]))
    packed["value"] = x
    np.testing.assert_array_equal(lnorm.layer_norm(packed["value"], 5), due)
    with pytest.raises(ValueError, match="y: expected an array to write to, got elements that are not aligned"):
        lnorm.layer_norm(x, 5, out=packed["value"])
    with pytest.raises(ValueError, match="y: expected an array to write to, got elements of the other byte order"):
        lnorm.layer_norm(x, 5, out=np.empty((3, 5), ">f4"))


def test_buffers(random):
    x = random.standard_normal(5)
    due = lnorm.layer_norm(x, 5)
    buffer = array.array("d", x)
    np.testing.assert_array_equal(lnorm.layer_norm(buffer, 5), due)
    np.testing.assert_array_equal(lnorm.layer_norm(memoryview(buffer)[::-1], 5), due[::-1])
    np.testing.assert_array_equal(lnorm.layer_norm(x.tolist(), 5), due)
    out = array.array("d", [0.0] * 5)
    assert lnorm.layer_norm(x, 5, out=out) is out
    assert list(out) == due.tolist()


def test_array_interface(random):
    class Holder:
        def __init__(self, array):
            self.array, self.__array_interface__ = array, array.__array_interface__

    x = random.standard_normal((4, 5))[::-2]
    np.testing.assert_array_equal(lnorm.layer_norm(Holder(x), 5), lnorm.layer_norm(x, 5))


class Exporter:
    """Something that is known by DLPack only."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device, 0


def test_dlpack(random):
    x = random.standard_normal((4, 5))[:, ::-1]
    y = lnorm.layer_norm(Exporter(x), 5)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, lnorm.layer_norm(x, 5))
    out = Exporter(np.empty((4, 5)))
    assert lnorm.layer_norm(x, 5, out=out) is out
    np.testing.assert_array_equal(out.array, y)


def test_dlpack_of_another_device(random):
    with pytest.raises(BufferError, match=r"input: expected an array on the CPU \(device type 1\), got device type 2"):
        lnorm.layer_norm(Exporter(random.standard_normal((4, 5)), device=2), 5)


def test_torch_tensors_of_other_types():
    torch = pytest.importorskip("torch")
    x = torch.ones(4, 6)
    for other, text in [(x.int(), "int of 32 bits"), (x.cfloat(), "complex of 64 bits"), (x > 0, "bool of 8 bits"),
                        (x.to(torch.float8_e4m3fn), "another type of 8 bits")]:
        with pytest.raises(TypeError, match=f"^input: expected elements of float64, .* got {text}$"):
            lnorm.layer_norm(other, 6)
        with pytest.raises(TypeError, match=f"^weight: expected elements of float64, .* got {text}$"):
            lnorm.layer_norm(x, 6, other[0])


def test_torch_tensors_that_negate_their_memory():
    torch = pytest.importorskip("torch")
    lazy = torch.randn(4, 6, dtype=torch.complex64).conj().imag
    assert lazy.is_neg()
    x = lazy.clone()
    for one, other in [(lnorm.layer_norm(lazy, 6), lnorm.layer_norm(x, 6)),
                       (lnorm.layer_norm(x, 6, lazy[0]), lnorm.layer_norm(x, 6, x[0])),
                       (lnorm.rms_norm_backward(lazy, x, 6)[0], lnorm.rms_norm_backward(x, x, 6)[0])]:
        assert torch.equal(one, other)
    with pytest.raises(BufferError, match="^y: expected an array to write to, got one that negates its memory$"):
        lnorm.layer_norm(x, 6, out=lazy)


def test_torch(random):
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 4, 5)
    weight = torch.randn(5)
    y = lnorm.layer_norm(x, torch.Size([5]), weight)
    assert isinstance(y, torch.Tensor) and y.dtype == x.dtype
    np.testing.assert_array_equal(y.numpy(), lnorm.layer_norm(x.numpy(), 5, weight.numpy()))
    half = x.bfloat16().transpose(0, 1)
    assert lnorm.rms_norm(half, 5).dtype == torch.bfloat16
    out = torch.empty_like(x)
    assert lnorm.layer_norm(x, 5, out=out) is out
    with pytest.raises(BufferError, match="grad"):
        lnorm.layer_norm(x.requires_grad_(), 5)


@pytest.mark.parametrize("bad, got", [(np.zeros((2, 5), np.int64), "int64"), (np.zeros((2, 5), complex), "complex128"),
                                      (np.zeros((2, 5), "M8[s]"), "datetime64"), (np.array([["a"]]), "<U1"),
                                      (np.zeros((2, 5), np.longdouble), "float128"), ([[1, 2]], "int64")])
def test_other_types_are_refused(bad, got):
    text = f"input: expected elements of float64, float32, float16 or bfloat16, got {got}"
    with pytest.raises(TypeError, match=text):
        lnorm.layer_norm(bad, 5)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(TypeError, match="input: expected an array without a mask"):
        lnorm.layer_norm(masked, 2)
    with pytest.raises(TypeError, match="weight: expected an array without a mask"):
        lnorm.layer_norm(np.ones(2), 2, masked)
    with pytest.raises(TypeError, match="dy: expected an array without a mask"):
        lnorm.layer_norm_backward(masked, np.ones(2), 2)


def test_outputs_need_memory():
    with pytest.raises(TypeError, match="y: expected an array to write to, got <class 'list'>"):
        lnorm.layer_norm(np.ones(2), 2, out=[1.0, 2.0])
