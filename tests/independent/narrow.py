"""Sections 4 to 12: the narrow arithmetic. Numbers are f64; each function returns {output: f64 values}."""
from formats import divide, square_root
from sums import outer, tree


def mean_of(terms):
    return divide(tree(terms), float(len(terms)))


def root(s):
    return 0.0 if s == 0.0 else divide(1.0, square_root(s))


def computed(xs, rms, eps):
    """(c, t, v, r) of a group, section 4."""
    c = t = 0.0
    if rms:
        v = mean_of([x * x for x in xs])
    else:
        c = mean_of(xs)
        v = mean_of([x * x for x in xs]) - c * c
        if not (len(xs) > 16 and v * 64.0 >= c * c):
            ds = [x - c for x in xs]
            t = mean_of(ds)
            v = mean_of([d * d for d in ds]) - t * t
            if v < 0.0:
                v = 0.0
    return c, t, v, root(v + eps)


def given(problem, group):
    c = 0.0 if problem.rms else problem.mean[group]
    if problem.rstd is not None:
        return c, 0.0, None, problem.rstd[group]
    return c, 0.0, None, root(problem.variance[group] + problem.eps)


def statistics(problem, group, xs):
    return computed(xs, problem.rms, problem.eps) if problem.computed else given(problem, group)


def normalised(problem, group):
    """The statistics of a group and its x-hat."""
    xs = problem.take("x", group)
    c, t, v, r = stats = statistics(problem, group, xs)
    return stats, [((x - c) - t) * r for x in xs]


def times_weight(problem, group, values):
    gammas = problem.take("gamma", group)
    return values if gammas is None else [value * gamma for value, gamma in zip(values, gammas)]


def times(a, b):
    return [p * q for p, q in zip(a, b)]


def project(problem, w, xhat):
    """w minus its components along 1 and x-hat; with the two means."""
    a2 = mean_of(times(w, xhat))
    if problem.rms:
        return [wi - xi * a2 for wi, xi in zip(w, xhat)], 0.0, a2
    a1 = mean_of(w)
    return [(wi - a1) - xi * a2 for wi, xi in zip(w, xhat)], a1, a2


def affine(entries, terms):
    """The sum of each entry, section 9; terms is indexed by element."""
    return [outer([tree([terms[i] for i in inner]) for inner in entry]) for entry in entries.outers]


def forward(problem):
    out = problem.outputs("y", "mean", "rstd")
    problem.stats = []
    for group in range(problem.groups):
        stats, xhat = normalised(problem, group)
        y, betas = times_weight(problem, group, xhat), problem.take("beta", group)
        problem.put(out["y"], group, y if betas is None else [a + b for a, b in zip(y, betas)])
        problem.stats.append(stats)
        out["mean"][group], out["rstd"][group] = stats[0] + stats[1], stats[3]
    return out


def running(problem):
    """Section 12."""
    q, n = problem.momentum, float(problem.size)
    means, variances = list(problem.running_mean), list(problem.running_var)
    for channel, (c, t, v, _) in enumerate(problem.stats):
        if problem.size > 0:
            means[channel] = (1.0 - q) * means[channel] + q * (c + t)
        if problem.size > 1:
            variances[channel] = (1.0 - q) * variances[channel] + q * ((v * n) / (n - 1.0))
    return {"running_mean": means, "running_var": variances}


def backward(problem):
    out = problem.outputs("dx")
    terms = [0.0] * problem.count
    for group in range(problem.groups):
        (_, _, _, r), xhat = normalised(problem, group)
        dy = problem.take("dy", group)
        problem.put(terms, group, times(dy, xhat))
        w = times_weight(problem, group, dy)
        if not problem.constant:
            w = project(problem, w, xhat)[0]
        problem.put(out["dx"], group, [r * wi for wi in w])
    out["dweight"] = affine(problem.weight_entries, terms)
    out["dbias"] = affine(problem.bias_entries, problem.dy)
    return out


def double_backward(problem):
    out = problem.outputs("dx", "ddy")
    terms = [0.0] * problem.count
    for group in range(problem.groups):
        (_, _, _, r), xhat = normalised(problem, group)
        dy, v = problem.take("dy", group), problem.take("v", group)
        if problem.constant:
            u = [r * vi for vi in v]
        else:
            g = times_weight(problem, group, dy)
            big_a, a1, a2 = project(problem, v, xhat)
            big_c, c1, c2 = project(problem, g, xhat)
            d = mean_of(times(v, g))
            d = d - a2 * c2 if problem.rms else (d - a1 * c1) - a2 * c2
            u = [r * a for a in big_a]
            problem.put(out["dx"], group, [-((r * r) * ((xi * d + ai * c2) + ci * a2))
                                           for xi, ai, ci in zip(xhat, big_a, big_c)])
        problem.put(out["ddy"], group, times_weight(problem, group, u))
        problem.put(terms, group, times(dy, u))
    out["dweight"] = affine(problem.weight_entries, terms)
    return out


def moving(problem, group):
    """x-hat's derivative along x_tangent, and those of mean and rstd."""
    (_, _, _, r), xhat = normalised(problem, group)
    w = problem.take("x_tangent", group)
    if w is None:
        return None, xhat, 0.0, 0.0
    if problem.constant:
        return [r * wi for wi in w], xhat, 0.0, 0.0
    projected, a1, a2 = project(problem, w, xhat)
    return [r * p for p in projected], xhat, a1, -((r * r) * a2)


def forward_mode(problem):
    out = problem.outputs("y_tangent", "mean_tangent", "rstd_tangent")
    for group in range(problem.groups):
        moved, xhat, out["mean_tangent"][group], out["rstd_tangent"][group] = moving(problem, group)
        terms = [] if moved is None else [times_weight(problem, group, moved)]
        gammas, betas = problem.take("weight_tangent", group), problem.take("bias_tangent", group)
        if gammas is not None:
            terms.append(times(xhat, gammas))
        if betas is not None:
            terms.append(betas)
        total = terms[0] if terms else [0.0] * problem.size
        for term in terms[1:]:
            total = [a + b for a, b in zip(total, term)]
        problem.put(out["y_tangent"], group, total)
    return out
