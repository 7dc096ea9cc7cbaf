"""Trains a small Transformer on a text, once with PyTorch's layer norms and with lnorm's, and compares the losses.

    python examples/train_transformer.py [--steps 300] [--picture losses.svg] [TEXT]

The model predicts the next byte of TEXT (docs/arithmetic.md where none is named): two blocks of width 64, 16 sequences
of 64 bytes a step. The runs differ in nothing but the norms. PyTorch's other operators run on one thread, so that a run
is reproducible at all; lnorm's norms run on one and on two, which must not change a bit of the loss or the weights."""
import argparse
import hashlib
import pathlib

import torch
from torch import nn

import lnorm.torch

WIDTH, HEADS, CONTEXT, BATCH, BLOCKS = 64, 4, 64, 16, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        a = self.norm1(x)
        x = x + self.attention(a, a, a, attn_mask=mask, need_weights=False)[0]
        return x + self.feed(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1))

    def forward(self, x):
        x = self.bytes(x) + self.places.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


def train(text, steps, norms="lnorm", norm_threads=1, fast=False):
    """(the loss of every step, a digest of the final weights). norms: "lnorm" or "torch"."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    lnorm.torch._compute.threads = lambda: norm_threads
    lnorm.torch.set_arithmetic("fast" if fast else "accurate")
    try:
        return _train(text, steps, norms)
    finally:
        torch.set_num_threads(before)
        lnorm.torch._compute.threads = torch.get_num_threads
        lnorm.torch.set_arithmetic("accurate")


def _train(text, steps, norms):
    torch.manual_seed(0)
    model = Model()
    if norms == "lnorm":
        assert lnorm.torch.replace(model) == 2 * BLOCKS + 1
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    draw, losses = torch.Generator().manual_seed(1), []
    for _ in range(steps):
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH, 1), generator=draw)
        window = data[starts + torch.arange(CONTEXT + 1)]
        loss = nn.functional.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return losses, hashlib.sha256(weights).hexdigest()


def draw(path, curves):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "lnorm"
    from matplotlib import pyplot
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 5), sharex=True, height_ratios=(3, 1),
                                             layout="constrained")
    for (name, losses), style, colour in zip(curves.items(), ("-", "--", ":"), ("C0", "C1", "C2")):
        above.plot(losses, style, color=colour, label=name, linewidth=1.2)
        if losses is not curves["torch"]:
            difference = [abs(a - b) for a, b in zip(losses, curves["torch"])]
            below.semilogy(range(len(losses)), [max(d, 1e-8) for d in difference], style, color=colour,
                           linewidth=1)
    above.set_ylabel("loss")
    above.legend()
    below.set_ylabel("difference\nfrom torch")
    below.set_xlabel("step")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("text", nargs="?", default=root / "docs/arithmetic.md", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--picture", type=pathlib.Path, help="an SVG file of the curves (needs matplotlib)")
    options = parser.parse_args()
    text = options.text.read_bytes()
    if len(text) < CONTEXT + 2:
        parser.error(f"{options.text}: expected at least {CONTEXT + 2} bytes, got {len(text)}")
    runs = {"torch": train(text, options.steps, "torch"), "lnorm": train(text, options.steps),
            "lnorm, fast": train(text, options.steps, fast=True)}
    for name, (losses, digest) in runs.items():
        print(f"{name:12} first {losses[0]:.6f}, last {losses[-1]:.6f}, weights {digest[:16]}")
    again = train(text, options.steps, norm_threads=2)
    print("lnorm again, norms on 2 threads:", "the same bits" if again == runs["lnorm"] else "OTHER BITS")
    if options.picture:
        draw(options.picture, {name: losses for name, (losses, _) in runs.items()})


if __name__ == "__main__":
    main()
