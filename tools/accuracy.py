#!/usr/bin/env python3
"""Errors of several implementations of layer norm on the same rows: a table, and histograms as a picture.

    build/check/tests/accuracy --export FOLDER
    tools/accuracy.py FOLDER docs/measured/accuracy.svg

Needs numpy and matplotlib; PyTorch and ONNX Runtime are compared where they are installed. An error is counted in units
in the last place (ulp) of f32 at the scale max(|y|, |weight|, |weight*xhat|, |bias|) of its element."""
import argparse
import pathlib
import sys

import numpy as np

EPS = 1e-5
SETS = ("normal", "heavy-tails", "outlier-pair", "mean-is-100-spreads", "mean-is-4096-spreads")


def numpy_norm(x, weight, bias):
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(EPS)) * weight + bias


def torch_norm():
    import torch
    return lambda x, weight, bias: torch.nn.functional.layer_norm(
        torch.from_numpy(x), x.shape[1:], torch.from_numpy(weight), torch.from_numpy(bias), EPS).numpy()


def onnxruntime_norm():
    import onnxruntime
    from onnx import TensorProto, helper
    names = ["x", "weight", "bias"]
    node = helper.make_node("LayerNormalization", names, ["y"], axis=-1, epsilon=EPS)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "norm", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda x, weight, bias: session.run(None, {"x": x, "weight": weight, "bias": bias})[0]


def peers():
    found = {"NumPy": numpy_norm}
    for name, make in (("PyTorch", torch_norm), ("ONNX Runtime", onnxruntime_norm)):
        try:
            found[name] = make()
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def ulps(y, exact, scale):
    spacing = np.exp2(np.maximum(np.floor(np.log2(scale)) - 23, -149))
    return np.abs(y.astype(np.float64) - exact) / spacing


def errors_of(folder, name, implementations):
    array = {part: np.load(folder / f"{name}.{part}.npy")
             for part in ("x", "weight", "bias", "exact", "scale", "lnorm", "lnorm-fast")}
    results = {"lnorm": array["lnorm"], "lnorm, fast": array["lnorm-fast"]}
    for peer, norm in implementations.items():
        results[peer] = norm(array["x"], array["weight"], array["bias"])
    return {who: ulps(y, array["exact"], array["scale"]) for who, y in results.items()}


def print_table(errors):
    print("| rows | implementation | half of all | 99 % | worst | correctly rounded |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, by_who in errors.items():
        for who, error in by_who.items():
            print(f"| {name} | {who} | {np.median(error):.3g} | {np.quantile(error, 0.99):.3g} | {error.max():.4g} "
                  f"| {np.mean(error <= 0.5):.2%} |")


def draw(errors, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "lnorm"
    from matplotlib import pyplot
    edges = np.exp2(np.arange(-8, 15, 0.5))
    figure, axes = pyplot.subplots(len(errors), 1, figsize=(8, 2.1 * len(errors)), sharex=True, layout="constrained")
    for axis, (name, by_who) in zip(axes, errors.items()):
        for who, error in by_who.items():
            count, _ = np.histogram(np.maximum(error, edges[0]), edges)
            axis.step(edges[:-1], count / error.size, where="post", label=who)
        axis.axvline(0.5, color="grey", linewidth=0.7, linestyle=":")
        axis.set(xscale="log", yscale="log", ylim=(1e-6, 1), title=name.replace("-", " "))
    axes[0].legend(fontsize="small", ncols=3)
    axes[-1].set_xlabel("error in ulp of f32, at the element's scale (dotted: half an ulp)")
    figure.supylabel("share of the elements")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="what accuracy --export wrote")
    parser.add_argument("picture", nargs="?", help="write histograms to this SVG file")
    arguments = parser.parse_args()
    names = [name for name in SETS if (arguments.folder / f"{name}.x.npy").exists()]
    if not names:
        parser.error(f"folder: no file like {SETS[0]}.x.npy in '{arguments.folder}'; run accuracy --export first")
    implementations = peers()
    errors = {name: errors_of(arguments.folder, name, implementations) for name in names}
    print_table(errors)
    if arguments.picture:
        draw(errors, arguments.picture)


if __name__ == "__main__":
    main()
