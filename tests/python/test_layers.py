"""Layers, and the files they are saved in."""
import json
import os
import pathlib
import stat
import struct
import threading

import ml_dtypes
import numpy as np
import pytest

import lnorm
from lnorm import _arrays, _safetensors

MINILM = pathlib.Path(__file__).resolve().parent.parent / "data/minilm.safetensors"
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def test_forward_and_backward(random):
    norm = lnorm.LayerNorm((4, 5), eps=1e-3, dtype=np.float64)
    norm.weight[...], norm.bias[...] = random.standard_normal((2, 4, 5))
    x, dy = random.standard_normal((3, 4, 5)), random.standard_normal((3, 4, 5))
    np.testing.assert_array_equal(norm(x), lnorm.layer_norm(x, (4, 5), norm.weight, norm.bias, 1e-3))
    dx, dweight, dbias = lnorm.layer_norm_backward(dy, x, (4, 5), norm.weight, norm.bias, 1e-3)
    np.testing.assert_array_equal(norm.backward(dy, x), dx)
    norm.backward(dy, x)
    np.testing.assert_array_equal(norm.weight_grad, 2 * dweight)
    np.testing.assert_array_equal(norm.bias_grad, 2 * dbias)
    norm.zero_grad()
    norm.reset_parameters()
    assert not norm.weight_grad.any() and not norm.bias_grad.any()
    assert (norm.weight == 1).all() and not norm.bias.any()


def test_rms_norm(random):
    norm = lnorm.RMSNorm(5)
    x = random.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(norm(x), lnorm.rms_norm(x, 5))
    dx, dweight = lnorm.rms_norm_backward(x, x, 5, norm.weight)
    np.testing.assert_array_equal(norm.backward(x, x), dx)
    np.testing.assert_array_equal(norm.weight_grad, dweight)
    assert list(norm.state_dict()) == ["weight"]


@pytest.mark.parametrize("options, keys", [({}, ["weight", "bias"]), ({"bias": False}, ["weight"]),
                                           ({"elementwise_affine": False}, [])])
def test_parameters(random, options, keys):
    norm = lnorm.LayerNorm(5, **options)
    assert list(norm.state_dict()) == keys
    assert [name for name in ("weight", "bias") if getattr(norm, name) is not None] == keys
    x = random.standard_normal((3, 5)).astype(np.float32)
    np.testing.assert_array_equal(norm(x), lnorm.layer_norm(x, 5))
    assert norm.backward(x, x).shape == x.shape


def test_repr():
    assert repr(lnorm.LayerNorm([2, 3], bias=False, dtype="float16")) == (
        "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False, dtype=float16)")
    assert repr(lnorm.RMSNorm(2)) == "RMSNorm((2,), eps=None, elementwise_affine=True, dtype=float32)"


def test_load_state_dict_refuses_and_changes_nothing():
    norm = lnorm.LayerNorm(3)
    good = {"weight": np.full(3, 2.0), "bias": np.full(3, 3.0)}
    for state, text in (({"weight": good["weight"]}, r"missing keys \['bias'\]"),
                        ({**good, "scale": 1}, r"unexpected keys \['scale'\]"),
                        ({**good, "bias": np.zeros(2)}, r"bias: expected shape \[3\], got \[2\]")):
        with pytest.raises(ValueError, match=text):
            norm.load_state_dict(state)
        assert (norm.weight == 1).all() and not norm.bias.any()
    norm.load_state_dict(good)
    assert (norm.weight == 2).all() and (norm.bias == 3).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_save_and_load(tmp_path, random, dtype):
    path = tmp_path / "norm.safetensors"
    norm = lnorm.LayerNorm(7, dtype=dtype)
    norm.weight[...], norm.bias[...] = random.standard_normal((2, 7)).astype(dtype)
    norm.save(path, "encoder.norm.")
    loaded = lnorm.LayerNorm(7, dtype=dtype)
    loaded.load(path, prefix="encoder.norm.")
    for name, array in norm.state_dict().items():
        assert loaded.state_dict()[name].tobytes() == array.tobytes()
    with pytest.raises(ValueError, match="missing keys"):
        loaded.load(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_bytes_are_those_of_the_format(tmp_path):
    path = tmp_path / "x.safetensors"
    _safetensors.save(path, {"b": np.float16([1]), "c": np.float32([[2, 3]]), "a": np.float32([4])})
    header = (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"c":{"dtype":"F32","shape":[1,2],"data_offsets":'
              b'[4,12]},"b":{"dtype":"F16","shape":[1],"data_offsets":[12,14]}}')
    header += b" " * (-len(header) % 8)
    data = struct.pack("<fff", 4, 2, 3) + struct.pack("<e", 1)
    assert path.read_bytes() == struct.pack("<Q", len(header)) + header + data


def test_a_file_of_others_with_more_in_it(tmp_path):
    tensors = _safetensors.load(MINILM)
    prefix = "encoder.layer.0.output.LayerNorm."
    norm = lnorm.LayerNorm(384)
    with pytest.raises(ValueError, match=r"unexpected keys \['input', 'pytorch'\]"):
        norm.load(MINILM, prefix)
    path = tmp_path / "model.safetensors"
    _safetensors.save(path, {name: array for name, array in tensors.items() if name.endswith(("weight", "bias"))})
    norm.load(path, prefix)
    np.testing.assert_array_equal(norm.weight, tensors[prefix + "weight"])
    np.testing.assert_array_equal(norm.bias, tensors[prefix + "bias"])


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    """As root a device would have been: a pipe goes with it."""
    pipe, link, read = tmp_path / "pipe", tmp_path / "link", []
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    lnorm.LayerNorm(3).save(tmp_path / "file")
    for path in pipe, link:
        def reader():
            with open(pipe, "rb") as file:
                read.append(file.read())

        thread = threading.Thread(target=reader, daemon=True)
        thread.start()
        lnorm.LayerNorm(3).save(path)
        thread.join(10)
    assert read == [(tmp_path / "file").read_bytes()] * 2
    assert stat.S_ISFIFO(pipe.stat().st_mode) and link.is_symlink()
    with pytest.raises(IsADirectoryError):
        lnorm.LayerNorm(3).save(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"before")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        lnorm.LayerNorm(3).save(path)
    assert path.read_bytes() == b"before"


def test_files_of_other_formats_are_called_what_they_are(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    np.savez(tmp_path / "x.npz", np.ones(3))
    for name, text in ("x.npy", "an .npy file"), ("x.npz", "a zip archive"):
        with pytest.raises(ValueError, match=f"expected a .safetensors file, got {text}"):
            lnorm.LayerNorm(3).load(tmp_path / name)


def test_an_existing_file_keeps_its_mode_and_survives_a_failure(tmp_path):
    path = tmp_path / "x.safetensors"
    lnorm.LayerNorm(2).save(path)
    path.chmod(0o600)
    lnorm.LayerNorm(3).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(TypeError, match="tensor 'x': expected float64"):
        _safetensors.save(path, {"x": np.ones(2, int)})
    assert path.read_bytes() == before


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize("header, text", [
    (b"[]", "expected a JSON object as header, got list"),
    (b"{", "expected a header in JSON"),
    (b"\xff\xff", "expected a header in JSON"),
    (b'{"a":1,"a":2}', "a key twice"),
    ({"a": {**ENTRY, "more": 1}}, "expected dtype, shape and data_offsets"),
    ({"a": {**ENTRY, "shape": [-1]}}, "expected a shape of integers of at least 0"),
    ({"a": {**ENTRY, "shape": [True]}}, "expected a shape of integers of at least 0"),
    ({"a": {**ENTRY, "data_offsets": [0, 5]}}, "expected offsets within the 4 bytes of data"),
    ({"a": {**ENTRY, "data_offsets": [4, 0]}}, "expected offsets within the 4 bytes of data"),
    ({"a": {**ENTRY, "data_offsets": [0]}}, "expected two offsets"),
    ({"a": {**ENTRY, "shape": [2]}}, "expected 8 bytes"),
])
def test_files_that_are_not_what_the_format_says(tmp_path, header, text):
    path = tmp_path / "x.safetensors"
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
    with pytest.raises(ValueError, match=text):
        _safetensors.load(path)


@pytest.mark.parametrize("content", [b"", b"1234567", struct.pack("<Q", 9) + b"{}", struct.pack("<Q", 2**60) + b"{}"])
def test_files_that_are_cut(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="expected a header"):
        _safetensors.load(path)


def test_conversion_rounds_once():
    """Half way between two bfloat16 numbers, and a little more: float32 drops the little, and would round to even."""
    half_way = 1 + 2.0**-8
    little = 2.0**-40
    values = np.array([half_way, half_way + little, half_way - little, -half_way - little, 0.0, -0.0, np.inf, np.nan,
                       1e300, -1e300, 1e-300, 3.0])
    got = _arrays.convert(values, ml_dtypes.bfloat16).astype(np.float64)
    due = [1, 1 + 2.0**-7, 1, -1 - 2.0**-7, 0, 0, np.inf, np.nan, np.inf, -np.inf, 0, 3]
    np.testing.assert_array_equal(got, due)
