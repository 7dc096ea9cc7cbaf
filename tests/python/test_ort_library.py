"""liblnorm_ort in ONNX Runtime, against lnorm.onnx, bit for bit. LNORM_ORT_LIBRARY is its path (docs/onnx.md)."""
import concurrent.futures
import os

import numpy as np
import pytest

import lnorm.onnx

LIBRARY = os.environ.get("LNORM_ORT_LIBRARY")
if not LIBRARY:
    pytest.skip("LNORM_ORT_LIBRARY: expected the path of liblnorm_ort, built by cmake -DORT_INCLUDE_DIR=DIRECTORY with "
                "DIRECTORY that of onnxruntime_c_api.h, got nothing: the operators for ONNX Runtime are not tested",
                allow_module_level=True)
onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: no ONNX test runs")
onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
ml_dtypes = pytest.importorskip("ml_dtypes", reason="the package ml_dtypes is not installed")

TYPES = {"float32": 1, "float16": 10, "float64": 11, "bfloat16": 16}
DTYPES = {"float32": np.float32, "float16": np.float16, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16}
EPSILON = float(np.float32(1e-3))


def session_of(model, threads=1):
    options = lnorm.onnx.register(library=LIBRARY)
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # the tests of wrong models provoke errors
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def value(name, dtype, shape):
    return onnx.helper.make_tensor_value_info(name, TYPES[dtype], shape)


def model_of(op_type, inputs, outputs, **attributes):
    """A model of one node. inputs, outputs: {name: (dtype, shape)}, in order."""
    node = onnx.helper.make_node(op_type, list(inputs), list(outputs), domain="lnorm", **attributes)
    graph = onnx.helper.make_graph([node], "norm", [value(name, *rest) for name, rest in inputs.items()],
                                   [value(name, *rest) for name, rest in outputs.items() if name])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18),
                                                        onnx.helper.make_opsetid("lnorm", 1)], ir_version=8)


def run(session, inputs, outputs):
    """inputs: arrays; outputs: their types and shapes; returns arrays. session.run knows no bfloat16: OrtValues do."""
    if "bfloat16" not in {array.dtype.name for array in inputs} | {dtype for dtype, _ in outputs}:
        return session.run(None, dict(zip([value_info.name for value_info in session.get_inputs()], inputs)))
    if not hasattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
        pytest.skip(f"onnxruntime {onnxruntime.__version__} takes no bfloat16 from Python")
    binding = session.io_binding()
    for value_info, array in zip(session.get_inputs(), inputs, strict=True):
        bits = array.view(np.uint16) if array.dtype.name == "bfloat16" else array
        binding.bind_ortvalue_input(value_info.name, onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            bits, TYPES[array.dtype.name]))
    results = []
    for value_info, (dtype, shape) in zip(session.get_outputs(), outputs, strict=True):
        results.append(np.zeros(shape, DTYPES[dtype]))
        binding.bind_output(value_info.name, "cpu", 0, TYPES[dtype], shape, results[-1].ctypes.data)
    session.run_with_iobinding(binding)
    return results


def arrays(dtype, *shapes):
    random = np.random.default_rng(5)
    return [random.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("inputs", [2, 3])
@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_layer_normalization(dtype, inputs, outputs):
    given = {"x": (dtype, ["N", 5, 8]), "scale": (dtype, [8]), "b": (dtype, [8])}
    due = {"y": (dtype, ["N", 5, 8]), "mean": ("float32", ["N", 5, 1]), "rstd": ("float32", ["N", 5, 1])}
    session = session_of(model_of("LayerNormalization", dict(list(given.items())[:inputs]),
                                  dict(list(due.items())[:outputs]), epsilon=1e-3))
    feed = arrays(dtype, (2, 5, 8), (8,), (8,))[:inputs]
    expected = lnorm.onnx.layer_normalization(*feed, epsilon=EPSILON)[:outputs]
    got = run(session, feed, [(array.dtype.name, array.shape) for array in expected])
    assert all(map(same_bits, got, expected))


def test_outputs_may_be_left_out():
    model = model_of("LayerNormalization", {"x": ("float16", [4, 8]), "scale": ("float16", [8])},
                     {"y": ("float16", [4, 8]), "": None, "rstd": ("float32", [4, 1])})
    feed = arrays("float16", (4, 8), (8,))
    y, _, rstd = lnorm.onnx.layer_normalization(*feed)
    got = run(session_of(model), feed, [("float16", y.shape), ("float32", rstd.shape)])
    assert same_bits(got[0], y) and same_bits(got[1], rstd)


def test_types_and_shapes_within_a_graph():
    """What is no output of the graph has no declared type: ONNX Runtime must find out itself, and guess no shape."""
    model = model_of("LayerNormalization", {"x": ("float16", None), "scale": ("float16", [4])},
                     {"y": ("float16", None), "mean": ("float32", None)}, axis=-1)
    make, nodes = onnx.helper.make_node, model.graph.node
    nodes.extend([make("Cast", ["mean"], ["mean64"], to=TYPES["float64"]), make("Shape", ["y"], ["extents"])])
    del model.graph.output[:]
    model.graph.output.extend([value("mean64", "float64", None),
                               onnx.helper.make_tensor_value_info("extents", onnx.TensorProto.INT64, None)])
    x = arrays("float16", (2, 3, 4))[0] + np.float16(1000 / 3)
    scale = np.ones(4, np.float16)
    mean64, extents = session_of(model).run(None, {"x": x, "scale": scale})
    mean = lnorm.onnx.layer_normalization(x, scale)[1]
    assert np.array_equal(mean64, mean.astype(np.float64)) and not np.array_equal(mean, mean.astype(np.float16))
    assert extents.tolist() == [2, 3, 4]


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_axis(axis):
    model = model_of("LayerNormalization", {"x": ("float32", [2, 3, 4]), "scale": ("float32", [1, 4])},
                     {"y": ("float32", [2, 3, 4])}, axis=axis)
    feed = arrays("float32", (2, 3, 4), (1, 4))
    got, = session_of(model).run(None, dict(zip(["x", "scale"], feed)))
    assert same_bits(got, lnorm.onnx.layer_normalization(*feed, axis=axis)[0])


@pytest.mark.parametrize("x_type", TYPES)
@pytest.mark.parametrize("scale_type", TYPES)
def test_rms_normalization(x_type, scale_type):
    model = model_of("RMSNormalization", {"x": (x_type, ["N", 8]), "scale": (scale_type, [8])},
                     {"y": (scale_type, ["N", 8])}, epsilon=1e-3)
    x, scale = arrays(x_type, (3, 8))[0], arrays(scale_type, (8,))[0]
    got, = run(session_of(model), [x, scale], [(scale_type, (3, 8))])
    assert same_bits(got, lnorm.onnx.rms_normalization(x, scale, epsilon=EPSILON))


def test_unknown_rank_is_settled_when_it_runs():
    model = model_of("LayerNormalization", {"x": ("float32", None), "scale": ("float32", [4])},
                     {"y": ("float32", None), "mean": ("float32", None)})
    session = session_of(model)
    for shape in (4,), (3, 4), (2, 3, 4):
        feed = arrays("float32", shape, (4,))
        got = session.run(None, dict(zip(["x", "scale"], feed)))
        assert all(map(same_bits, got, lnorm.onnx.layer_normalization(*feed)[:2]))


def test_no_elements():
    model = model_of("LayerNormalization", {"x": ("float32", ["N", 4]), "scale": ("float32", [4])},
                     {"y": ("float32", ["N", 4])})
    got, = session_of(model).run(None, {"x": np.zeros((0, 4), np.float32), "scale": np.ones(4, np.float32)})
    assert got.shape == (0, 4)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(700, 384), (1, 300000)])
def test_bits_do_not_depend_on_threads(shape, threads):
    model = model_of("LayerNormalization", {"x": ("float32", list(shape)), "scale": ("float32", [1])},
                     {"y": ("float32", list(shape)), "mean": ("float32", [shape[0], 1])})
    session = session_of(model, threads)
    feed = arrays("float32", shape, (1,))
    due = lnorm.onnx.layer_normalization(*feed)[:2]

    def run_once(_):
        return all(map(same_bits, session.run(None, dict(zip(["x", "scale"], feed))), due))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run_once, range(8)))


def test_many_sessions_share_the_operators():
    model = model_of("RMSNormalization", {"x": ("float32", [2, 4]), "scale": ("float32", [4])},
                     {"y": ("float32", [2, 4])})
    feed = arrays("float32", (2, 4), (4,))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(lambda _: session_of(model), range(8)))
    results = [session.run(None, dict(zip(["x", "scale"], feed)))[0] for session in sessions]
    assert all(same_bits(result, lnorm.onnx.rms_normalization(*feed)) for result in results)


def test_replaced_model_runs():
    model = model_of("LayerNormalization", {"x": ("float16", [2, 4]), "scale": ("float16", [4])},
                     {"y": ("float16", [2, 4])})
    model.graph.node[0].domain = ""
    del model.opset_import[1]
    assert lnorm.onnx.replace(model, library=True) == 1
    assert lnorm.onnx.replace(model, library=True) == 0
    feed = arrays("float16", (2, 4), (4,))
    got, = session_of(model).run(None, dict(zip(["x", "scale"], feed)))
    assert same_bits(got, lnorm.onnx.layer_normalization(*feed)[0])


def test_other_statistics_and_nodes_stay():
    model = model_of("LayerNormalization", {"x": ("float16", [2, 4]), "scale": ("float16", [4])},
                     {"y": ("float16", [2, 4]), "mean": ("bfloat16", [2, 1])}, stash_type=16)
    model.graph.node[0].domain = ""
    model.graph.node.append(onnx.helper.make_node("Relu", ["y"], ["z"]))
    assert lnorm.onnx.replace(model, library=True) == 0


def test_stash_type_without_statistics_is_left_out():
    model = model_of("LayerNormalization", {"x": ("float16", [2, 4]), "scale": ("float16", [4])},
                     {"y": ("float16", [2, 4])}, stash_type=16)
    model.graph.node[0].domain = ""
    assert lnorm.onnx.replace(model, library=True) == 1
    feed = arrays("float16", (2, 4), (4,))
    got, = session_of(model).run(None, dict(zip(["x", "scale"], feed)))
    assert same_bits(got, lnorm.onnx.layer_normalization(*feed)[0])


def test_branches_are_replaced():
    inner = model_of("RMSNormalization", {"x": ("float32", [2, 4]), "scale": ("float32", [4])},
                     {"y": ("float32", [2, 4])}).graph
    inner.node[0].domain = ""
    del inner.input[:]
    node = onnx.helper.make_node("If", ["condition"], ["y"], then_branch=inner, else_branch=inner)
    graph = onnx.helper.make_graph([node], "g", [], [])
    model = onnx.helper.make_model(graph)
    assert lnorm.onnx.replace(model, library=True) == 2
    assert model.graph.node[0].attribute[0].g.node[0].domain == "lnorm"


# ---- Refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes, message", [
    ({"epsilon": -1.0}, "lnorm.LayerNormalization: epsilon: expected a finite number of at least 0, got -1"),
    ({"epsilon": float("nan")}, "epsilon: expected a finite number of at least 0, got nan"),
    ({"stash_type": 16}, "stash_type: expected 1 .float., got 16"),
    ({"epsilon": 1}, "epsilon: expected an attribute of type float, got an integer"),
    ({"axis": 1.0}, "axis: expected an attribute of type integer, got a float"),
    ({"axis": "last"}, "axis: expected an attribute of type integer, got a string"),
])
def test_wrong_attribute_is_refused_when_the_model_is_loaded(attributes, message):
    model = model_of("LayerNormalization", {"x": ("float32", [2, 4]), "scale": ("float32", [4])},
                     {"y": ("float32", [2, 4])}, **attributes)
    with pytest.raises(Exception, match=message):
        session_of(model)


@pytest.mark.parametrize("attributes, shape, message", [
    ({"axis": 2}, (4,), "lnorm.LayerNormalization: axis: expected -2 to 1 for an X of 2 dimensions, got 2"),
    ({}, (3,), r"lnorm.LayerNormalization: weight.*\[3\]"),
])
def test_wrong_input_is_refused_when_it_runs(attributes, shape, message):
    model = model_of("LayerNormalization", {"x": ("float32", [2, 4]), "scale": ("float32", ["K"])},
                     {"y": ("float32", [2, 4])}, **attributes)
    with pytest.raises(Exception, match=message):
        session_of(model).run(None, dict(zip(["x", "scale"], arrays("float32", (2, 4), shape))))


def test_integers_are_refused():
    model = model_of("LayerNormalization", {"x": ("float32", [2, 4]), "scale": ("float32", [4])},
                     {"y": ("float32", [2, 4])})
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.elem_type = onnx.TensorProto.INT32
    with pytest.raises(Exception, match="Type 'tensor.int32.' of input parameter .x. .* is invalid"):
        session_of(model)
