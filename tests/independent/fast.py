"""Section 22: the fast arithmetic of forward and backward passes."""
import narrow
from formats import divide, f32
from narrow import root
from sums import combine, fold, outer

RUN, ROW, RUNS_IN_BLOCK = 256, 32, 16
FAR = 2.0**100


def plus(a, b):
    """f32 sums of two lists."""
    return f32([p + q for p, q in zip(a, b)])


def times(a, b):
    return f32([p * q for p, q in zip(a, b)])


def minus(a, b):
    return f32([p - q for p, q in zip(a, b)])


def eight(rows):
    pairs = [plus(rows[i], rows[i + 1]) for i in range(0, 8, 2)]
    return plus(plus(pairs[0], pairs[1]), plus(pairs[2], pairs[3]))


def run(terms):
    """Sixteen f32 sums of at most 256 terms."""
    terms = terms + [0.0] * (RUN - len(terms))
    columns = eight([terms[at:at + ROW] for at in range(0, RUN, ROW)])
    return plus(columns[:16], columns[16:])


def runs(terms):
    blocks = []
    for begin in range(0, len(terms), RUN * RUNS_IN_BLOCK):
        lanes = [0.0] * 16
        for at in range(begin, min(begin + RUN * RUNS_IN_BLOCK, len(terms)), RUN):
            lanes = [a + b for a, b in zip(lanes, run(terms[at:at + RUN]))]
        blocks.append(fold(lanes, lambda a, b: a + b))
    return combine(blocks)


def statistics(problem, group, xs):
    if problem.computed:
        most = 1.0 if problem.dtypes["x"] == "f32" else 64.0
        n = float(len(xs))
        m = runs(xs) / n if not problem.rms else 0.0
        v = runs(times(xs, xs)) / n
        if not problem.rms:
            v = v - m * m
        s = v + problem.eps
        if (problem.rms or v * most >= m * m) and 1.0 / FAR <= s <= FAR:
            return f32([m])[0], 0.0, v, root(s)
    return narrow.statistics(problem, group, xs)


class Group:
    def __init__(self, problem, index):
        self.xs = xs = problem.take("x", index)
        self.stats = c, t, _, self.r = statistics(problem, index, xs)
        self.regular = abs(c) <= FAR and (self.r == 0.0 or 1.0 / FAR <= self.r <= FAR)
        if not self.regular:
            self.xhat = f32([((x - c) - t) * self.r for x in xs])
            return
        h, self.rho = f32([c, self.r])
        low = f32([(c - h) + t])[0]
        near = f32([x - h for x in xs])
        self.xhat = f32([d * self.rho for d in f32([n - low for n in near])])

    def times_rstd(self, w):
        return f32([wi * (self.rho if self.regular else self.r) for wi in w])


def times_weight(problem, index, values):
    gammas = problem.take("gamma", index)
    return values if gammas is None else times(values, gammas)


def forward(problem):
    out = problem.outputs("y", "mean", "rstd")
    problem.stats = []
    for index in range(problem.groups):
        group = Group(problem, index)
        y, betas = times_weight(problem, index, group.xhat), problem.take("beta", index)
        problem.put(out["y"], index, y if betas is None else plus(y, betas))
        c, t, _, r = group.stats
        problem.stats.append(group.stats)
        out["mean"][index], out["rstd"][index] = c + t, r
    return out


running = narrow.running


def project(problem, g, xhat):
    n = float(len(g))
    c2 = f32([divide(runs(times(g, xhat)), n)])[0]
    along = f32([xi * c2 for xi in xhat])
    if problem.rms:
        return minus(g, along)
    c1 = f32([divide(runs(g), n)])[0]
    return minus(f32([gi - c1 for gi in g]), along)


def affine(entries, terms):
    totals = []
    for entry in entries.outers:
        if entries.inner != 1:
            totals.append(outer([runs([terms[i] for i in inner]) for inner in entry]))
            continue
        column = [terms[inner[0]] for inner in entry]
        blocks = []
        for begin in range(0, len(column), 64):
            block, taken = 0.0, column[begin:begin + 64]
            for at in range(0, len(taken), 8):
                group = (taken[at:at + 8] + [0.0] * 7)[:8]
                block += eight([[term] for term in group])[0]
            blocks.append(block)
        totals.append(combine(blocks))
    return totals


def backward(problem):
    out = problem.outputs("dx")
    terms = [0.0] * problem.count
    for index in range(problem.groups):
        group = Group(problem, index)
        dy = problem.take("dy", index)
        problem.put(terms, index, times(dy, group.xhat))
        w = times_weight(problem, index, dy)
        if not problem.constant:
            w = project(problem, w, group.xhat)
        problem.put(out["dx"], index, group.times_rstd(w))
    out["dweight"] = affine(problem.weight_entries, terms)
    out["dbias"] = affine(problem.bias_entries, problem.dy)
    return out
