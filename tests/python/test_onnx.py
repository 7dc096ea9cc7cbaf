"""lnorm.onnx against ONNX's own node tests, and in ONNX Runtime."""
import re
import warnings

import numpy as np
import pytest

import lnorm.onnx

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: no ONNX test runs")

OPERATORS = {"LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization",
             "BatchNormalization"}


def node_tests():
    """ONNX's node tests of the five operators. An expanded one has the arrays of the one that it is named after."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {case.name: case for case in load_model_tests(kind="node")}
    for name, case in cases.items():
        plain = cases.get(re.sub("_expanded.*", "", name))
        nodes = plain.model.graph.node if plain else ()
        if len(nodes) == 1 and nodes[0].op_type in OPERATORS:
            yield pytest.param(nodes[0], case, id=name)


CASES = list(node_tests())


def test_every_operator_has_cases():
    count = dict.fromkeys(OPERATORS, 0)
    for case in CASES:
        if "expanded" not in case.id:
            count[case.values[0].op_type] += 1
    assert count == {"LayerNormalization": 19, "RMSNormalization": 19, "GroupNormalization": 2,
                     "InstanceNormalization": 2, "BatchNormalization": 4}


@pytest.mark.parametrize("node, case", CASES)
def test_node(node, case):
    names = [value.name for value in case.model.graph.input]
    for inputs, expected in case.data_sets:
        named = dict(zip(names, inputs))
        results = lnorm.onnx.run_node(node, [named[name] for name in node.input])
        assert len(results) == len(expected)
        for result, due in zip(results, expected):
            assert result.dtype == due.dtype and result.shape == due.shape
            np.testing.assert_allclose(result, due, rtol=case.rtol, atol=case.atol)


# ---- Semantics ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_layer_normalization_is_layer_norm_of_the_trailing_axes(axis):
    X = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    Y, Mean, InvStdDev = lnorm.onnx.layer_normalization(X, axis=axis, epsilon=0.25)
    shape = X.shape[axis % 3:]
    y, mean, rstd = lnorm.layer_norm(X, shape, eps=0.25, return_stats=True)
    assert Mean.shape == X.shape[: axis % 3] + (1,) * len(shape)
    assert np.array_equal(Y, y) and np.array_equal(Mean, mean) and np.array_equal(InvStdDev, rstd)


def test_scale_broadcasts():
    X = np.random.default_rng(2).standard_normal((2, 3, 4))
    Scale, B = np.arange(3.0).reshape(3, 1) + 1, np.array([5.0])
    Y, _, _ = lnorm.onnx.layer_normalization(X, Scale, B)
    plain, _, _ = lnorm.onnx.layer_normalization(X)
    np.testing.assert_allclose(Y, plain * Scale + B, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("stash_type, dtype", [(1, "float32"), (10, "float16"), (11, "float64"), (16, "bfloat16")])
def test_stash_type_is_that_of_the_statistics(stash_type, dtype):
    _, Mean, InvStdDev = lnorm.onnx.layer_normalization(np.ones((2, 3), np.float16), stash_type=stash_type)
    assert Mean.dtype.name == dtype and InvStdDev.dtype.name == dtype


def test_rms_result_has_the_type_of_scale():
    X = np.array([[3.0, 4.0]], np.float32)
    assert lnorm.onnx.rms_normalization(X, np.ones(2)).dtype == np.float64


def test_group_scale_of_opset_18_is_per_group():
    X = np.random.default_rng(3).standard_normal((2, 6, 5))
    scale, bias = np.array([2.0, 3.0]), np.array([0.5, -1.0])
    each = lnorm.onnx.group_normalization(X, scale, bias, num_groups=2)
    assert np.array_equal(each, lnorm.onnx.group_normalization(X, scale.repeat(3), bias.repeat(3), num_groups=2))


def test_batch_statistics_of_one_element_keep_a_variance_of_0():
    X = np.array([[7.0]])
    _, mean, var = lnorm.onnx.batch_normalization(X, [1.0], [0.0], [0.0], [1.0], momentum=0.5, training_mode=1)
    assert mean == 3.5 and var == 0.5


def batch_in_training(X, statistics):
    return lnorm.onnx.batch_normalization(X, np.ones(3), np.ones(3), statistics, statistics, training_mode=1)


def test_batch_statistics_of_nothing_stay_as_they_are():
    X, C = np.empty((0, 2, 3), np.float32), np.float32([2.0, 3.0])
    Y, mean, var = lnorm.onnx.batch_normalization(X, C, C, C, C, momentum=0.5, training_mode=1)
    assert Y.shape == X.shape and np.array_equal(mean, C) and np.array_equal(var, C)


@pytest.mark.parametrize("call, message", [
    (lambda: lnorm.onnx.layer_normalization(np.ones((2, 3)), axis=2), "axis: expected -2 to 1 .*got 2"),
    (lambda: lnorm.onnx.layer_normalization(np.ones((2, 3)), stash_type=7), "stash_type: .*got 7"),
    (lambda: lnorm.onnx.group_normalization(np.ones(3), np.ones(3), np.ones(3), num_groups=3), r"X: .*got shape \[3\]"),
    (lambda: lnorm.onnx.group_normalization(np.ones((2, 3)), np.ones(0), np.ones(0), num_groups=0), "greater than 0"),
    (lambda: batch_in_training(np.ones(3), np.ones(3)), r"X: .*got shape \[3\]"),
    (lambda: batch_in_training(np.ones((2, 3)), np.ones(())), r"input_mean: expected shape \[3\], got \[\]"),
    (lambda: batch_in_training(np.ones((2, 3)), np.ones(2)), r"input_mean: expected shape \[3\], got \[2\]"),
    (lambda: lnorm.onnx.run_node(onnx.helper.make_node("Relu", ["x"], ["y"]), [np.ones(2)]), "node: .*ai.onnx.Relu"),
])
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- In ONNX Runtime ------------------------------------------------------------------------------------------------------


def model_of(inputs, outputs, axis=-1, **attributes):
    names = ["x", "scale", "b"][:inputs]
    results = ["y", "mean", "rstd"][:outputs]
    node = onnx.helper.make_node("LayerNormalization", names, results, axis=axis, epsilon=1e-3, **attributes)
    shapes = {"x": ["N", 5, 8], "scale": [8], "b": [8], "y": ["N", 5, 8], "mean": ["N", 5, 1], "rstd": ["N", 5, 1]}
    value = {name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
             for name, shape in shapes.items()}
    graph = onnx.helper.make_graph([node], "norm", [value[name] for name in names], [value[name] for name in results])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("inputs", [2, 3])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_runtime_runs_a_replaced_model(inputs, outputs):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime_extensions")
    model = model_of(inputs, outputs)
    plain = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert lnorm.onnx.replace(model) == 1
    assert lnorm.onnx.replace(model) == 0
    ours = onnxruntime.InferenceSession(model.SerializeToString(), lnorm.onnx.register(),
                                        providers=["CPUExecutionProvider"])
    random = np.random.default_rng(4)
    shapes = {"x": (2, 5, 8), "scale": (8,), "b": (8,)}
    feed = {value.name: random.standard_normal(shapes[value.name]).astype(np.float32) for value in model.graph.input}
    got, usual = ours.run(None, feed), plain.run(None, feed)
    due = lnorm.onnx.layer_normalization(*feed.values(), epsilon=float(np.float32(1e-3)))
    for result, exact, near in zip(got, due, usual, strict=False):
        assert np.array_equal(result, exact.reshape(result.shape))
        np.testing.assert_allclose(result, near, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("library", [False, True])
def test_stash_type_matters_where_there_are_statistics(library):
    for outputs in (1, 2, 3):
        model = model_of(3, outputs, stash_type=onnx.TensorProto.BFLOAT16)
        assert lnorm.onnx.replace(model, library=library) == (outputs == 1)
        node = model.graph.node[0]
        assert (node.domain == "") == (outputs > 1)
        assert [a.name for a in node.attribute if a.name == "stash_type"] == ["stash_type"] * (outputs > 1)
    if not library:
        onnxruntime = pytest.importorskip("onnxruntime")
        model = model_of(2, 1, stash_type=onnx.TensorProto.BFLOAT16)
        lnorm.onnx.replace(model)
        x = np.random.default_rng(5).standard_normal((1, 5, 8)).astype(np.float32)
        scale = np.full(8, 2, np.float32)
        got, = onnxruntime.InferenceSession(model.SerializeToString(), lnorm.onnx.register(),
                                            providers=["CPUExecutionProvider"]).run(None, {"x": x, "scale": scale})
        assert np.array_equal(got, lnorm.onnx.layer_normalization(x, scale, epsilon=float(np.float32(1e-3)))[0])


def test_other_types_stay():
    model = model_of(3, 1)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    assert lnorm.onnx.replace(model) == 0
    assert model.graph.node[0].op_type == "LayerNormalization"
