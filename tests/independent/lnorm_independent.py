"""lnorm's arithmetic once more, written from docs/arithmetic.md alone: no line of the C was at hand.

Slow and plain, standard library only, on any machine whose Python floats are IEEE binary64 (all of them). It is meant
to be read beside the document, as a second witness that the document says enough, and compared with the library bit for
bit: check_vectors.py.

    compute(op, tensors) -> {output: bit patterns in logical row-major order}

op is a dictionary of the options of lnorm_op that differ from OP; "kind" is layer, rms, group, instance or batch,
"pass" forward, backward, double_backward or forward_mode. tensors maps a name of lnorm_io to (dtype, shape, patterns);
of an output only the type matters, and with "accumulate" and for running statistics what it holds.
"""
import axes
import fast
import narrow
import wide
from formats import f32, round_to, widen

OP = {"kind": "layer", "pass": "forward", "statistics": "computed", "arithmetic": "accurate", "eps": 1e-5, "axes": None,
      "groups": 0, "affine_broadcast": 0, "weight_offset": 0, "accumulate": 0, "momentum": 0.1, "batches": 0}

READS = {"forward": ["x", "weight", "bias"], "backward": ["x", "weight", "dy"],
         "double_backward": ["x", "weight", "dy", "v"],
         "forward_mode": ["x", "weight", "x_tangent", "weight_tangent", "bias_tangent"]}

DEFAULT_EPS = "default"


class Problem:
    """An operation with its geometry and its inputs as numbers; an absent tensor is None."""

    def __init__(self, op, tensors):
        self.op = op = {**OP, **op}
        self.dtypes = {name: tensor[0] for name, tensor in tensors.items()}
        numbers = {name: [widen(dtype, pattern) for pattern in patterns]
                   for name, (dtype, _, patterns) in tensors.items() if patterns is not None}
        for name in ("x", "dy", "v", "x_tangent", "mean", "rstd", "variance", "running_mean", "running_var"):
            setattr(self, name, numbers.get(name))
        self.rms = op["kind"] == "rms"
        self.computed = op["statistics"] == "computed"
        self.constant = op["statistics"] == "constant"
        self.eps = op["eps"]
        if self.eps == DEFAULT_EPS:
            self.eps = 1e-5 if not self.rms else 2.0**-52 if self.dtypes["x"] == "f64" else 2.0**-23
        self.momentum = 1.0 / op["batches"] if op["batches"] > 0 else op["momentum"]
        self.place(list(tensors["x"][1]))
        self.arithmetic = self.choose()
        self.spread(tensors, numbers)

    def place(self, shape):
        """The groups: for each the flat indices of its elements."""
        self.given_shape = shape
        self.shape, self.r, self.a = axes.reduced(self.op["kind"], shape, self.op["axes"], self.op["groups"])
        starts = axes.numbering(self.shape, set(range(len(self.shape))) - self.r)
        elements = axes.numbering(self.shape, self.r)
        self.groups, self.size, self.count = len(starts), len(elements), axes.product(shape)
        self.members = [[start + element for element in elements] for start in starts]

    def choose(self):
        """Section 13, and section 22's first paragraph."""
        reads = [self.dtypes.get(name) for name in READS[self.op["pass"]]]
        if "f64" in reads:
            return wide
        if self.op["arithmetic"] == "fast" and self.size > 16 and self.op["pass"] in ("forward", "backward"):
            return fast
        return narrow

    def entries(self, affine_shape):
        if self.op["affine_broadcast"]:
            a = axes.broadcast(self.op["kind"], self.given_shape, affine_shape)
        else:
            a = self.a if self.a is not None else self.r
        return axes.Entries(self.shape, self.r, a)

    def spread(self, tensors, numbers):
        """Weight, bias and their tangents, one number per element."""
        for short, names in (("weight", ("weight", "dweight", "weight_tangent")),
                             ("bias", ("bias", "dbias", "bias_tangent"))):
            shapes = [tensors[name][1] for name in names if name in tensors]
            entries = self.entries(shapes[0]) if shapes else None
            setattr(self, short + "_entries", entries)
            for name in (short, short + "_tangent"):
                values = numbers.get(name)
                if name == "weight" and values is not None and self.op["weight_offset"]:
                    values = [1.0 + value for value in values]
                    values = f32(values) if self.arithmetic is fast else values
                setattr(self, name, entries.spread(values) if values is not None else None)
        self.gamma, self.beta = self.weight, self.bias
        self.weight_entries = self.weight_entries or self.entries([])
        self.bias_entries = self.bias_entries or self.entries([])

    def take(self, name, group):
        values = getattr(self, name)
        return values if values is None else [values[i] for i in self.members[group]]

    def put(self, values, group, results):
        for i, result in zip(self.members[group], results):
            values[i] = result

    def outputs(self, *names):
        per_group = ("mean", "rstd", "mean_tangent", "rstd_tangent")
        return {name: [0.0] * (self.groups if name in per_group else self.count) for name in names}


def compute(op, tensors):
    """All outputs of an operation that `tensors` names, as bit patterns."""
    problem = Problem(op, tensors)
    arithmetic, op = problem.arithmetic, problem.op
    results = getattr(arithmetic, op["pass"])(problem)
    if problem.running_mean is not None and op["pass"] == "forward" and problem.computed:
        results.update(arithmetic.running(problem))
    outputs = {}
    for name, values in results.items():
        if name not in tensors or (name in ("mean", "rstd") and not problem.computed):
            continue
        dtype, _, old = tensors[name]
        if op["accumulate"] and name in ("dweight", "dbias"):
            values = [widen(dtype, pattern) + value for pattern, value in zip(old, values)]
        outputs[name] = [round_to(dtype, value) for value in values]
    return outputs
