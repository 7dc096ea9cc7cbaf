"""Training with lnorm's norms: the loss of PyTorch's, and the same bits again, whatever the norms' threads."""
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))
import train_transformer

STEPS = 6


def test_a_small_transformer():
    text = (ROOT / "docs/arithmetic.md").read_bytes()
    torch_losses, torch_weights = train_transformer.train(text, STEPS, "torch")
    once = train_transformer.train(text, STEPS)
    assert once == train_transformer.train(text, STEPS, norm_threads=2)
    fast = train_transformer.train(text, STEPS, fast=True)
    assert fast == train_transformer.train(text, STEPS, norm_threads=2, fast=True)
    # The norms were lnorm's: in other arithmetic the weights differ, if in their last bits only.
    assert len({torch_weights, once[1], fast[1]}) == 3
    # Rounding differs by some 1e-7 of an activation; six steps of Adam have not amplified it beyond 1e-4 of the loss.
    for losses in (once[0], fast[0]):
        assert losses == pytest.approx(torch_losses, rel=1e-4) and losses[-1] < losses[0] - 0.5
