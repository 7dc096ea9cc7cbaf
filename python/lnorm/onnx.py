"""ONNX's normalisation operators, with ONNX's names, defaults and semantics, on arrays; and models rewritten to them.

The functions need NumPy only. run_node and replace need the package onnx, register the package onnxruntime and, without
a library, onnxruntime-extensions. Each result is rounded once: where ONNX's own definition rounds the normalised values
to the input's type before they are scaled, a 16-bit result here is the nearer one.
"""
import functools
import os

import numpy as np

from . import _core
from ._arrays import as_array, convert, empty
from ._call import execute

# ONNX keeps epsilon and momentum in attributes of type float: f32.
_EPSILON = float(np.float32(1e-5))
_MOMENTUM = float(np.float32(0.9))
# onnx.TensorProto's numbers of the types that stash_type may name.
_STASH = {1: _core.F32, 10: _core.F16, 11: _core.F64, 16: _core.BF16}


def _stash(stash_type):
    if stash_type not in _STASH:
        raise ValueError("stash_type: expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16), got "
                         f"{stash_type}")
    return _STASH[stash_type]


def _axes_from(axis, ndim):
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis: expected {-ndim} to {ndim - 1} for an input of {ndim} dimensions, got {axis}")
    return tuple(range(axis % ndim, ndim))


def layer_normalization(X, Scale=None, B=None, *, axis=-1, epsilon=_EPSILON, stash_type=1):
    """LayerNormalization: (Y, Mean, InvStdDev).

    X is normalised over the axes from `axis` to the last. Scale and B broadcast to X. Mean and InvStdDev have X's shape
    with 1 for those axes, and the type that stash_type names.

    >>> Y, Mean, InvStdDev = lnorm.onnx.layer_normalization(np.array([[1.0, 2.0, 3.0]], np.float32))
    >>> Mean, InvStdDev.round(4)
    (array([[2.]], dtype=float32), array([[1.2247]], dtype=float32))
    """
    X = as_array(X, "X")
    shape, element = _core.describe(X)
    axes = _axes_from(axis, len(shape))
    statistic = shape[: axes[0]] + (1,) * len(axes)
    Y, Mean, InvStdDev = empty(X, shape, element), *(empty(X, statistic, _stash(stash_type)) for _ in range(2))
    execute(_core.LAYER_NORM, _core.FORWARD, x=X, weight=as_array(Scale, "Scale"), bias=as_array(B, "B"), y=Y,
            mean=Mean, rstd=InvStdDev, axes=axes, affine_broadcast=True, eps=epsilon, threads=None, fast=False)
    return Y, Mean, InvStdDev


def rms_normalization(X, scale=None, *, axis=-1, epsilon=_EPSILON, stash_type=1):
    """RMSNormalization: Y, of scale's type where that differs from X's.

    >>> lnorm.onnx.rms_normalization(np.array([[3.0, 4.0]], np.float32), epsilon=0.0).round(4)
    array([[0.8485, 1.1314]], dtype=float32)
    """
    X, scale = as_array(X, "X"), as_array(scale, "scale")
    _stash(stash_type)
    shape, element = _core.describe(X)
    Y = empty(X, shape, element if scale is None else _core.describe(scale)[1])
    execute(_core.RMS_NORM, _core.FORWARD, x=X, weight=scale, y=Y, axes=_axes_from(axis, len(shape)),
            affine_broadcast=True, eps=epsilon, threads=None, fast=False)
    return Y


def _channels(shape):
    if len(shape) < 2:
        raise ValueError(f"X: expected [N, C, ...], got shape {list(shape)}")
    return shape[1]


def group_normalization(X, scale, bias, *, num_groups, epsilon=_EPSILON, stash_type=1):
    """GroupNormalization: Y. scale and bias: [C], as from opset 21 on; or [num_groups], as in opset 18.

    >>> X = np.arange(8.0).reshape(1, 4, 2)
    >>> lnorm.onnx.group_normalization(X, np.ones(4), np.zeros(4), num_groups=2, epsilon=0.0)[0, 0].round(4)
    array([-1.3416, -0.4472])
    """
    X = as_array(X, "X")
    _stash(stash_type)
    shape, element = _core.describe(X)
    channels = _channels(shape)

    def per_channel(parameter):
        parameter = np.asarray(parameter)
        if parameter.shape == (num_groups,) and num_groups not in (0, channels):
            return parameter.repeat(channels // num_groups)
        return parameter

    Y = empty(X, shape, element)
    execute(_core.GROUP_NORM, _core.FORWARD, x=X, weight=per_channel(scale), bias=per_channel(bias), y=Y,
            groups=num_groups, eps=epsilon, threads=None, fast=False)
    return Y


def instance_normalization(input, scale, B, *, epsilon=_EPSILON):
    """InstanceNormalization: output. scale, B: [C].

    >>> lnorm.onnx.instance_normalization(np.array([[[1.0, 3.0]]]), np.ones(1), np.zeros(1), epsilon=0.0)
    array([[[-1.,  1.]]])
    """
    input = as_array(input, "input")
    output = empty(input, *_core.describe(input))
    execute(_core.INSTANCE_NORM, _core.FORWARD, x=input, weight=as_array(scale, "scale"),
            bias=as_array(B, "B"), y=output, eps=epsilon, threads=None, fast=False)
    return output


def batch_normalization(X, scale, B, input_mean, input_var, *, epsilon=_EPSILON, momentum=_MOMENTUM, training_mode=0):
    """BatchNormalization: Y, or (Y, running_mean, running_var) with training_mode=1.

    scale, B, input_mean, input_var: [C]. momentum is the share that the old statistics keep; running_var takes the
    population variance (divided by the number of elements): both other than in PyTorch.

    >>> X = np.array([[1.0, 4.0], [3.0, 4.0]])
    >>> Y, mean, var = lnorm.onnx.batch_normalization(
    ...     X, np.ones(2), np.zeros(2), np.zeros(2), np.ones(2), epsilon=0.0, momentum=0.5, training_mode=1)
    >>> mean, var
    (array([1., 2.]), array([1. , 0.5]))
    """
    X, input_mean, input_var = as_array(X, "X"), as_array(input_mean, "input_mean"), as_array(input_var, "input_var")
    shape, element = _core.describe(X)
    Y = empty(X, shape, element)
    run = functools.partial(execute, _core.BATCH_NORM, _core.FORWARD, x=X, weight=as_array(scale, "scale"),
                            bias=as_array(B, "B"), y=Y, eps=epsilon, threads=None, fast=False)
    if not training_mode:
        run(statistics=_core.CONSTANT, mean=input_mean, variance=input_var)
        return Y
    channels = _channels(shape)
    for name, statistic in ("input_mean", input_mean), ("input_var", input_var):
        if np.shape(statistic) != (channels,):
            raise ValueError(f"{name}: expected shape [{channels}], got {list(np.shape(statistic))}")
    mean, variance = np.zeros(channels), np.zeros(channels)
    count = int(np.prod(shape)) // max(1, channels)
    if count == 0:
        momentum = 1.0  # nothing is new
    run(running_mean=mean, running_var=variance, momentum=1.0)
    # What the library keeps is divided by count - 1.
    variance = variance * ((count - 1) / count) if count > 1 else np.zeros_like(variance)
    return Y, _mixed(input_mean, mean, momentum), _mixed(input_var, variance, momentum)


def _mixed(old, new, momentum):
    old = np.asarray(old)
    return convert(old.astype(np.float64) * momentum + new * (1.0 - momentum), old.dtype)


# ---- Nodes and models ------------------------------------------------------------------------------------------------

_FUNCTIONS = {
    "LayerNormalization": layer_normalization,
    "RMSNormalization": rms_normalization,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "BatchNormalization": batch_normalization,
}


def run_node(node, inputs):
    """The outputs, a tuple as long as node.output, of a NodeProto of one of the five operators.

    inputs: arrays, None for those that are left out.
    """
    if node.op_type not in _FUNCTIONS or node.domain not in ("", "ai.onnx"):
        raise ValueError(f"node: expected one of {', '.join(_FUNCTIONS)}, got {node.domain or 'ai.onnx'}."
                         f"{node.op_type}")
    outputs = _FUNCTIONS[node.op_type](*inputs, **_attributes(node))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return outputs[: len(node.output)]


_PYTHON_DOMAIN = "ai.onnx.contrib"  # the only one where onnxruntime-extensions looks for operators written in Python
_LIBRARY_DOMAIN = "lnorm"  # that of liblnorm_ort


def _graphs(graph):
    """The graph and those in its nodes: bodies of loops, branches of conditions."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _graphs(inner)


def _is_norm(node, *names):
    return node.op_type in names and node.domain in ("", "ai.onnx")


def _float_types(graph):
    """The element type, a number of TensorProto, of every value whose type is known."""
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
    return types


def _attributes(node):
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _has_f32_statistics(node):
    """stash_type is the type of Mean and InvStdDev and no more here, so that it matters only where they are there."""
    return _attributes(node).get("stash_type", 1) == 1 or not any(node.output[1:])


def _to_library(node, types):
    if not _is_norm(node, "LayerNormalization", "RMSNormalization") or not _has_f32_statistics(node):
        return False
    kept = [attribute for attribute in node.attribute if attribute.name != "stash_type"]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.domain = _LIBRARY_DOMAIN
    return True


def _to_python(node, types):
    import onnx

    if (not _is_norm(node, "LayerNormalization") or any(types.get(name) != 1 for name in node.input)
            or not _has_f32_statistics(node)):
        return False
    attributes = _attributes(node)
    given = {"axis": attributes.get("axis", -1), "epsilon": attributes.get("epsilon", _EPSILON)}
    node.CopyFrom(onnx.helper.make_node(_operator_name(len(node.input), len(node.output)), node.input, node.output,
                                        name=node.name, domain=_PYTHON_DOMAIN, **given))
    return True


def replace(model, *, library=False):
    """Makes normalisation nodes of a ModelProto lnorm's, in place; returns how many.

    library=True: every LayerNormalization and RMSNormalization, of any element type, for liblnorm_ort. library=False:
    every LayerNormalization of float32 whose types shape inference tells, for operators written in Python. Nodes that
    give a Mean or InvStdDev of another type than float32 (stash_type) stay. The model then runs in ONNX Runtime
    sessions made with register()'s options; register needs the same choice.
    """
    import onnx

    types = {} if library else _float_types(onnx.shape_inference.infer_shapes(model).graph)
    change, domain = (_to_library, _LIBRARY_DOMAIN) if library else (_to_python, _PYTHON_DOMAIN)
    count = sum(change(node, types) for graph in _graphs(model.graph) for node in graph.node)
    if count and not any(opset.domain == domain for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    return count


def _operator_name(inputs, outputs):
    return f"LnormLayerNormalization{inputs}to{outputs}"


@functools.cache
def _declare_operators():
    """One operator for each number of inputs and outputs: those of onnxruntime-extensions have fixed ones."""
    from onnxruntime_extensions import PyCustomOpDef, onnx_op

    for inputs in (2, 3):
        for outputs in (1, 2, 3):

            def operator(*arrays, axis, epsilon, outputs=outputs):
                results = layer_normalization(*arrays, axis=axis, epsilon=epsilon)
                return results[0] if outputs == 1 else results[:outputs]

            onnx_op(op_type=_operator_name(inputs, outputs), inputs=[PyCustomOpDef.dt_float] * inputs,
                    outputs=[PyCustomOpDef.dt_float] * outputs,
                    attrs={"axis": PyCustomOpDef.dt_int64, "epsilon": PyCustomOpDef.dt_float})(operator)


def register(options=None, *, library=None):
    """onnxruntime.SessionOptions, the given ones or new ones, that know the operators of replace().

    library: the path of liblnorm_ort, for replace(model, library=True). None: the operators written in Python, for
    comparing and checking a model, not for their speed.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions() if options is None else options
    if library is None:
        import onnxruntime_extensions

        _declare_operators()
        library = onnxruntime_extensions.get_library_path()
    options.register_custom_ops_library(os.fspath(library))
    return options
