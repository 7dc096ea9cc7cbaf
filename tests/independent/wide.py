"""Section 14: the wide arithmetic, one class of group statistics and the passes over it."""
import math

import sums
from pairs import (NAN, NONE, ZERO, add, at, cross, exponent, factor, flush, flush_number, largest, mul, negative, norm,
                   quo, root, rounded, scale, scaled, shift, sig, sub, total, two_sum)


def mean_of(terms):
    return quo(sums.tree(terms, add, ZERO), float(len(terms)))


class Group:
    """c, t, v, r, k, j, h of a group, and x-hat of its elements as scaled pairs."""

    def __init__(self, problem, index):
        self.problem, self.index = problem, index
        self.xs = problem.take("x", index)
        if problem.computed:
            self.compute()
            d = [norm(sub(two_sum(flush_number(shift(x, -self.k)), -self.c), self.t)) for x in self.xs]
            self.xhat = [scaled(mul(di, self.r), self.k - self.j) for di in d]
        else:
            self.give()
        if not problem.constant:
            self.align()

    def compute(self):
        rms, xs = self.problem.rms, self.xs
        self.c, self.t, self.v, self.r = math.nan, NAN, NAN, NAN
        self.k = self.j = 0
        if not xs or not all(map(math.isfinite, xs)):
            return
        top = max(map(abs, xs))
        self.k = max(exponent(top), -1000) if top else 0
        scaled_xs = [flush_number(shift(x, -self.k)) for x in xs]
        self.c, self.t, self.v = 0.0, ZERO, ZERO
        if not rms and all(x == xs[0] for x in xs):
            self.c = scaled_xs[0]
        else:
            if not rms:
                self.c = flush_number(sums.tree(scaled_xs) / float(len(xs)))
            d = [two_sum(x, -self.c) for x in scaled_xs]
            if not rms:
                self.t = mean_of(d)
            self.v = norm(sub(mean_of([mul(di, di) for di in d]), mul(self.t, self.t)))
        self.r, self.j = root(self.v, self.k, self.problem.eps)

    def give(self):
        """Statistics that are given: every element has a k of its own."""
        problem = self.problem
        mean = 0.0 if problem.rms else problem.mean[self.index]
        if problem.rstd is not None:
            rstd = problem.rstd[self.index]
            self.r, self.j = sig(rstd)[0], -exponent(rstd)
        else:
            variance = problem.variance[self.index]
            z = exponent(variance) // 2 if variance != 0.0 else 0
            self.r, self.j = root((shift(variance, -2 * z), 0.0), z, problem.eps)
        self.xhat = []
        for x in self.xs:
            top = max(abs(x), abs(mean))
            k = max(exponent(top), -1000) if top != 0.0 else 0
            d = norm(sub(two_sum(flush_number(shift(x, -k)), -flush_number(shift(mean, -k))), ZERO))
            self.xhat.append(scaled(mul(d, self.r), k - self.j))

    def align(self):
        """For gradients: one exponent h for the group, x-hat' without it, and f = 2^2h."""
        if self.problem.computed:
            self.h = self.k - self.j if self.v[0] != 0.0 else 0
            self.bare = [p for p, _ in self.xhat]
        else:
            self.h = max([e for _, e in self.xhat if e != NONE], default=0)
            self.bare = [at(x, self.h) for x in self.xhat]
        if self.h > 300:
            self.h, self.r, self.bare = 0, NAN, [NAN] * len(self.xs)
        self.f = 0.0 if 2 * self.h < -1000 else shift(1.0, 2 * self.h)

    def applied(self):
        """x-hat as the affine gradients and tangents use it."""
        return self.xhat if self.problem.constant else [scaled(p, self.h) for p in self.bare]

    def mean_pair(self):
        s, e = two_sum(self.c, self.t[0])
        return s, e + self.t[1]


class Direction:
    """One scaled pair per element, its two means and its projection."""

    def __init__(self, group, w):
        self.group, self.w = group, w
        if group.problem.constant:
            return
        self.k = largest(w)
        self.at = [at(wi, self.k) for wi in w]
        self.n = factor(mean_of([mul(wi, xi) for wi, xi in zip(self.at, group.bare)]))
        self.m = ZERO if group.problem.rms else factor(mean_of(self.at))
        self.p = [factor(sub(sub(wi, self.m), tuple(group.f * part for part in mul(xi, self.n))))
                  for wi, xi in zip(self.at, group.bare)]

    def image(self):
        r, j = self.group.r, self.group.j
        if self.group.problem.constant:
            return [scaled(mul(p, r), e - j) for p, e in self.w]
        return [scaled(mul(p, r), self.k - j) for p in self.p]


def significands(values, size, absent):
    return [sig(value) for value in values] if values is not None else [sig(absent)] * size


def each(operation, *lists):
    return [operation(*items) for items in zip(*lists)]


def groups_of(problem):
    for index in range(problem.groups):
        yield index, Group(problem, index)


def gammas_of(problem, index):
    return significands(problem.take("gamma", index), problem.size, 1.0)


def forward(problem):
    out = problem.outputs("y", "mean", "rstd")
    problem.stats = []
    for index, group in groups_of(problem):
        betas = significands(problem.take("beta", index), problem.size, 0.0)
        problem.put(out["y"], index, each(total, each(cross, group.xhat, gammas_of(problem, index)), betas))
        problem.stats.append(group)
        if problem.computed:
            out["mean"][index] = rounded(group.mean_pair(), group.k)
            out["rstd"][index] = rounded(group.r, -group.j)
    return out


def running(problem):
    q, n = problem.momentum, float(problem.size)
    keep = (two_sum(1.0, -q), 0)
    means, variances = list(problem.running_mean), list(problem.running_var)
    for channel, group in enumerate(problem.stats):
        if problem.size > 0:
            fresh = scaled(group.mean_pair(), group.k)
            means[channel] = total(cross(scaled(*keep), sig(means[channel])), cross(fresh, sig(q)))
        if problem.size > 1:
            fresh = scaled(quo(mul(group.v, (n, 0.0)), n - 1.0), 2 * group.k)
            variances[channel] = total(cross(scaled(*keep), sig(variances[channel])), cross(fresh, sig(q)))
    return {"running_mean": means, "running_var": variances}


def affine(entries, terms):
    totals = []
    for entry in entries.outers:
        k = largest([terms[i] for inner in entry for i in inner])
        partials = [sums.tree([at(terms[i], k) for i in inner], add, ZERO) for inner in entry]
        totals.append(rounded(sums.outer(partials, add, ZERO), k))
    return totals


def backward(problem):
    out = problem.outputs("dx")
    terms = [None] * problem.count
    for index, group in groups_of(problem):
        dy = significands(problem.take("dy", index), problem.size, 0.0)
        g = Direction(group, each(cross, dy, gammas_of(problem, index)))
        problem.put(out["dx"], index, [rounded(*i) for i in g.image()])
        problem.put(terms, index, each(cross, group.applied(), dy))
    out["dweight"] = affine(problem.weight_entries, terms)
    out["dbias"] = affine(problem.bias_entries, [sig(value) for value in problem.dy])
    return out


def second(group, g, v):
    """dx of the double backward."""
    r, f = group.r, group.f
    vg = mean_of(each(mul, v.at, g.at))
    d = factor(sub(sub(vg, mul(v.m, g.m)), tuple(f * part for part in mul(g.n, v.n))))
    s = [add(add(mul(xi, d), mul(vi, g.n)), mul(gi, v.n)) for xi, vi, gi in zip(group.bare, v.p, g.p)]
    rr = mul(r, r)
    return [rounded(mul(rr, negative(si)), v.k + g.k + group.h - 2 * group.j) for si in s]


def double_backward(problem):
    out = problem.outputs("dx", "ddy")
    terms = [None] * problem.count
    for index, group in groups_of(problem):
        dy = significands(problem.take("dy", index), problem.size, 0.0)
        gammas = gammas_of(problem, index)
        v = Direction(group, significands(problem.take("v", index), problem.size, 0.0))
        u = v.image()
        if not problem.constant:
            problem.put(out["dx"], index, second(group, Direction(group, each(cross, dy, gammas)), v))
        problem.put(out["ddy"], index, [rounded(*i) for i in each(cross, u, gammas)])
        problem.put(terms, index, each(cross, u, dy))
    out["dweight"] = affine(problem.weight_entries, terms)
    return out


def forward_mode(problem):
    out = problem.outputs("y_tangent", "mean_tangent", "rstd_tangent")
    for index, group in groups_of(problem):
        terms = []
        if problem.x_tangent is not None:
            w = Direction(group, significands(problem.take("x_tangent", index), problem.size, 0.0))
            terms.append(each(cross, w.image(), gammas_of(problem, index)))
            if not problem.constant:
                out["mean_tangent"][index] = rounded(w.m, w.k)
                out["rstd_tangent"][index] = rounded(negative(mul(mul(group.r, group.r), w.n)),
                                                     w.k + group.h - 2 * group.j)
        if problem.weight_tangent is not None:
            terms.append(each(cross, group.applied(), significands(problem.take("weight_tangent", index), 0, 0.0)))
        if problem.bias_tangent is not None:
            terms.append(significands(problem.take("bias_tangent", index), 0, 0.0))
        problem.put(out["y_tangent"], index, each(total, *terms) if terms else [0.0] * problem.size)
    return out
