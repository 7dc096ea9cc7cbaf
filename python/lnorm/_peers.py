"""Layer norm and group norm by the libraries that `python -m lnorm compare` sets side by side.

A peer has a name, a version, set_threads(n), prepare(x, weight, bias, groups) and array(result). prepare gives a
function without arguments that computes y once, into memory of its own, or None where the library has no such norm;
groups is None for layer norm of [rows, cols] over cols, else the groups of a group norm. What the library wants done
once (its own arrays, a session) is done by prepare and is not measured."""
import functools
import importlib
import struct

import numpy as np

import lnorm

EPS = 1e-5


class Lnorm:
    version = lnorm.__version__

    def __init__(self, fast=False):
        self.name = "lnorm fast" if fast else "lnorm"
        # Without the keyword a call goes through C alone, which is what the accurate arithmetic's users write.
        self._options = {"fast": True} if fast else {}

    def set_threads(self, threads):
        lnorm.set_num_threads(threads)

    def prepare(self, x, weight, bias, groups=None):
        if groups is not None:
            return functools.partial(lnorm.group_norm, x, groups, weight, bias, EPS, **self._options)
        return functools.partial(lnorm.layer_norm, x, x.shape[-1], weight, bias, EPS, **self._options)

    def array(self, result):
        return result


def _formula(x, weight, bias):
    """The textbook's, in float32 whatever x is, rounded to x's type at the end; over the last axis."""
    wide = x.astype(np.float32, copy=False)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    y = centred / np.sqrt(variance + np.float32(EPS)) * weight + bias
    return y.astype(x.dtype, copy=False)


class NumPy:
    name, version = "NumPy", np.__version__
    set_threads = None  # it has one

    def prepare(self, x, weight, bias, groups=None):
        weight, bias = weight.astype(np.float32, copy=False), bias.astype(np.float32, copy=False)
        if groups is None:
            return functools.partial(_formula, x, weight, bias)
        grouped = x.reshape(x.shape[0], groups, -1)
        # A channel's parameter for each of its elements, once, in the order of the group's elements.
        weight, bias = (np.repeat(p, x[0, 0].size).reshape(groups, -1) for p in (weight, bias))
        return lambda: _formula(grouped, weight, bias).reshape(x.shape)

    def array(self, result):
        return result


class PyTorch:
    name = "PyTorch"

    def __init__(self):
        self._torch = importlib.import_module("torch")
        self.version = self._torch.__version__

    def set_threads(self, threads):
        self._torch.set_num_threads(threads)

    def _tensor(self, array):
        # Made in inference mode, a tensor is not looked at by autograd: the shortest way that PyTorch has.
        with self._torch.inference_mode():
            if array.dtype.name == "bfloat16":
                return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
            return self._torch.from_numpy(array)

    def prepare(self, x, weight, bias, groups=None):
        norms = self._torch.nn.functional
        x, weight, bias = self._tensor(x), self._tensor(weight), self._tensor(bias)
        if groups is not None:
            return functools.partial(norms.group_norm, x, groups, weight, bias, EPS)
        return functools.partial(norms.layer_norm, x, x.shape[-1:], weight, bias, EPS)

    def array(self, result):
        if result.dtype == self._torch.bfloat16:
            return result.view(self._torch.int16).numpy().view(importlib.import_module("ml_dtypes").bfloat16)
        return result.numpy()


# ---- ONNX: a model of one node. The package onnx would write the same, but may be missing where the runtime is. ------


def _varint(number):
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _field(number, value):
    """One field of a protocol buffer: an integer, a float, or bytes and text with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _message(*fields):
    return b"".join(_field(number, value) for number, value in fields)


_FLOAT, _FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 1, 2  # of TensorProto.DataType and AttributeProto.AttributeType


def _constant(name, array):
    return _message((1, array.size), (2, _FLOAT), (8, name), (9, array.astype("<f4").tobytes()))


def onnx_model(shape, weight, bias, groups=None):
    """The bytes of a ModelProto: y = norm(x), x of this shape, constant weight and bias. The field numbers are those of
    onnx.proto."""
    operator, opset = ("LayerNormalization", 17) if groups is None else ("GroupNormalization", 21)
    own = ("axis", 2**64 - 1) if groups is None else ("num_groups", groups)  # -1, as a varint has it
    attributes = (_message((1, own[0]), (3, own[1]), (20, _INT_ATTRIBUTE)),
                  _message((1, "epsilon"), (2, EPS), (20, _FLOAT_ATTRIBUTE)))
    node = _message((1, "x"), (1, "weight"), (1, "bias"), (2, "y"), (4, operator), *((5, a) for a in attributes))
    dimensions = _message(*((1, _message((1, extent))) for extent in shape))
    tensor = _message((1, _message((1, _FLOAT), (2, dimensions))))
    graph = _message((1, node), (2, "norm"), (5, _constant("weight", weight)), (5, _constant("bias", bias)),
                     (11, _message((1, "x"), (2, tensor))), (12, _message((1, "y"), (2, tensor))))
    return _message((1, 10), (7, graph), (8, _message((1, ""), (2, opset))))


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self):
        self._runtime = importlib.import_module("onnxruntime")
        self.version = self._runtime.__version__
        self._threads = 1

    def set_threads(self, threads):
        self._threads = threads

    def prepare(self, x, weight, bias, groups=None):
        if x.dtype != np.float32:  # its norms on the CPU have no bfloat16
            return None
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = self._threads, 1, 4
        model = onnx_model(x.shape, weight, bias, groups)
        try:
            session = self._runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception:  # a runtime older than the operator; its exceptions have no base of their own
            return None
        return functools.partial(session.run, None, {"x": x})

    def array(self, result):
        return result[0]


PEERS = {"numpy": NumPy, "torch": PyTorch, "onnxruntime": OnnxRuntime}


def find(names):
    """lnorm in both arithmetics and the peers of these names that are installed; and why the others are not here."""
    found, missing = [Lnorm(), Lnorm(fast=True)], {}
    for name in names:
        try:
            found.append(PEERS[name]())
        except (ImportError, OSError) as error:  # OSError: a shared library of theirs does not load
            missing[PEERS[name].name] = str(error)
    return found, missing
