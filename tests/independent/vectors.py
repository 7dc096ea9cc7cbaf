"""tests/vectors: operations by name (same_bits.txt) and in full (vectors.jsonl), and what they must give."""
import json
import os

import lnorm_independent as lnorm
from axes import product
from formats import widen
from inputs import HASH_START, hash_patterns, patterns
from names import Name
from sums import BLOCK, OUTER

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "vectors")
SAME_BITS, VECTORS = os.path.join(FOLDER, "same_bits.txt"), os.path.join(FOLDER, "vectors.jsonl")
SHORT = 16  # groups of more elements are the ones that have two paths and a fast arithmetic


def listed():
    """{name: hash} of same_bits.txt, in its order."""
    with open(SAME_BITS, encoding="ascii") as lines:
        pairs = [line.rstrip("\n").split(" ", 1) for line in lines]
    return {name: digest for digest, name in pairs}


def described(text):
    """An operation of same_bits.txt in full, as in vectors.jsonl, without results."""
    name = Name(text)
    op = {option: value.hex() if isinstance(value, float) else value for option, value in name.op.items()}
    vector = {"name": text, "hash": None, "op": op, "inputs": {}, "outputs": {}}
    for tensor, dtype, shape, fill, seed, how in name.tensors:
        entry = {"dtype": dtype, "shape": shape}
        if how == "read" or tensor.startswith("running") or (op.get("accumulate") and tensor in ("dweight", "dbias")):
            entry["fill"] = fill
            entry["seed"] = "%016x" % (seed & 0xFFFFFFFFFFFFFFFF)
        vector["inputs" if how == "read" else "outputs"][tensor] = entry
    return vector


def compute(vector):
    """{output: patterns} of a vector; needs nothing of it but op, inputs and the description of outputs."""
    op = dict(vector["op"])
    if op.get("eps", lnorm.DEFAULT_EPS) != lnorm.DEFAULT_EPS:
        op["eps"] = float.fromhex(op["eps"])
    columns = vector["inputs"]["x"]["shape"][-1] or 1
    tensors = {}
    for tensor, entry in {**vector["inputs"], **vector["outputs"]}.items():
        values = None
        if "fill" in entry:
            values = patterns(entry["dtype"], product(entry["shape"]), entry["fill"], columns, int(entry["seed"], 16))
        tensors[tensor] = (entry["dtype"], entry["shape"], values)
    return lnorm.compute(op, tensors)


def digest(vector, results):
    state = HASH_START
    for tensor, entry in vector["outputs"].items():
        state = hash_patterns(entry["dtype"], results[tensor], state)
    return "%016x" % state


def add_results(vector, results):
    """Completes a vector: the hash of all outputs, and of each its hash and some elements."""
    vector["hash"] = digest(vector, results)
    for tensor, entry in vector["outputs"].items():
        values = results[tensor]
        entry["hash"] = "%016x" % hash_patterns(entry["dtype"], values)
        ends = sorted({0, len(values) - 1}) if values else []
        entry["samples"] = [[i, widen(entry["dtype"], values[i]).hex()] for i in ends]
    return vector


def chosen(names):
    """Of every combination of operation, mode, options, element types and fill the smallest that has groups of more than
    16 elements, or the smallest. More than 64 rows, and ordinary rows of more than 256 elements with statistics
    of their own, are combinations of their own: their sums have several blocks."""
    best = {}
    for text in names:
        vector, name = described(text), Name(text)
        group = name.shape[-1] if name.kind in ("layer", "rms") and len(name.shape) == 2 else SHORT + 1
        blocks = name.shape[0] > OUTER, group > BLOCK and name.fill == "normal" and not name.given
        key = json.dumps([vector["op"], name.mix, name.fill, list(vector["inputs"]), list(vector["outputs"]), blocks])
        rank = (group <= SHORT, product(name.shape))
        if key not in best or rank < best[key][0]:
            best[key] = (rank, text)
    return [text for _, text in best.values()]


def write(path=VECTORS):
    names = listed()
    with open(path, "w", encoding="ascii", newline="\n") as out:
        for text in chosen(names):
            vector = described(text)
            out.write(json.dumps(add_results(vector, compute(vector)), separators=(",", ":")) + "\n")
