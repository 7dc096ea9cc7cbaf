"""ONNX Runtime, through bound memory: nothing is allocated or copied by a call. The model of one node is written here,
byte by byte, so that the package onnx is not needed."""
import struct

import numpy as np
import onnxruntime

from .data import BIAS, EPS, OUTPUT, WEIGHT, X, Unsupported

ELEMENT = {"f32": 1, "f16": 10, "f64": 11, "bf16": 16}    # TensorProto.DataType
OPERATORS = {"layer": ("LayerNormalization", 17), "rms": ("RMSNormalization", 23), "group": ("GroupNormalization", 21)}


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """One protobuf field: an integer, or text, or an encoded message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def float_attribute(name, value):
    return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)


def int_attribute(name, value):
    return field(1, name) + field(3, value) + field(20, 2)


def value_info(name, element, shape):
    dimensions = b"".join(field(1, field(1, extent)) for extent in shape)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, dimensions)))


def model(problem):
    """A serialized ModelProto: y = operator(x, weight[, bias])."""
    operator, opset = OPERATORS[problem.op]
    element = ELEMENT[problem.dtype]
    inputs = [("x", problem.shape), ("weight", (problem.parameters,)), ("bias", (problem.parameters,))]
    if problem.op == "rms":
        inputs.pop()
    attributes = [float_attribute("epsilon", EPS)]
    if problem.op == "group":
        attributes.append(int_attribute("num_groups", problem.groups))
    node = b"".join([*(field(1, name) for name, _ in inputs), field(2, "y"), field(4, operator),
                     *(field(5, attribute) for attribute in attributes)])
    graph = b"".join([field(1, node), field(2, "norm"),
                      *(field(11, value_info(name, element, shape)) for name, shape in inputs),
                      field(12, value_info("y", element, problem.shape))])
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, opset))


class OnnxRuntimePeer:
    def __init__(self, threads):
        self.threads = threads
        self.remark = ""

    def close(self):
        self.session = self.bindings = self.y = None

    def open(self, problem, data):
        if problem.backward or problem.op == "columns" or problem.channels_last or problem.stride != problem.shape[-1]:
            raise Unsupported("forward passes over dense trailing axes only")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 4
        self.problem = problem
        try:
            self.session = onnxruntime.InferenceSession(model(problem), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its own exception types are not public
            raise Unsupported(str(error)[:200]) from error
        self.y = data.large(problem, OUTPUT)
        weight, bias = (data.array(role, problem.dtype, problem.parameters) for role in (WEIGHT, BIAS))
        self.bindings = [self.bind(x, y, weight, bias) for x, y in zip(data.large(problem, X), self.y)]
        return self.run

    def bind(self, x, y, weight, bias):
        binding = self.session.io_binding()
        element = ELEMENT["bf16"] if self.problem.dtype == "bf16" else np.dtype(x.dtype)
        arrays = [("x", x), ("weight", weight), ("bias", bias)]
        for name, array in arrays[:2 if self.problem.op == "rms" else 3]:
            binding.bind_input(name, "cpu", 0, element, array.shape, array.ctypes.data)
        binding.bind_output("y", "cpu", 0, element, y.shape, y.ctypes.data)
        return binding

    def run(self, index):
        self.session.run_with_iobinding(self.bindings[index])

    def results(self, raw):
        return {"y": (self.y[0], self.problem.dtype)}
