"""Derivatives beyond the first, in differentiable torch operations, so that those after them come by themselves.

All kinds are one here: x is seen as [N, G, D, S], a group is [n, g, :, :], weight and bias are [G, D] and the same for
every n and s. Layer and RMS norm have N = rows, G = 1, D = cols, S = 1; group norm has N samples, D channels in each of
its G groups and S positions. Batch norm has G channels, D = 1, and its groups [:, g, :, :] go over the samples, too.

With M the mean over a group, c = 0 for RMS norm and 1 otherwise, n the elements of a group:

    xhat = (x - c*M(x))*r,   r = (M((x - c*M(x))^2) + eps)^(-1/2),   y = xhat*weight + bias.

P(a) = a - c*M(a) - xhat*M(a*xhat) is linear in a and its own transpose, and from dr/dx = -r^2*xhat/n

    d xhat = r*P(dx),   dr = -r^2*M(xhat*dx),

so that the backward pass, with g = dy*weight, is

    dx = r*P(g),   dweight = sum dy*xhat,   dbias = sum dy        (sums over N and S).

Where mean and variance are given, constants that do not depend on x, P(a) = a and dr = 0."""
import torch

from ._compute import checked_eps


class View:
    """What the derivatives of one norm have in common. Computes in f32 at least: 16 bits are too few in between."""

    def __init__(self, x, weight, kind, extent, eps, mean=None, variance=None):
        self.like, self.weight_like, self.centred, self.constant = x, weight, kind != "rms", mean is not None
        self.dtype = torch.promote_types(x.dtype, torch.float32)
        self.over = (0, 2, 3) if kind == "batch" else (2, 3)
        if kind in ("group", "batch"):
            groups = x.shape[1] if kind == "batch" else extent
            self.shape = (x.shape[0], groups, x.shape[1] // groups, x.shape[2:].numel())
        else:
            cols = x.shape[-extent:].numel()
            self.shape = (x.shape[:-extent].numel(), 1, cols, 1)
        self.w = None if weight is None else self.parameter(weight)
        x = self.wide(x)
        if self.centred:
            x = x - (self.parameter(mean) if self.constant else self.mean(x))
        square = (self.parameter(variance) if self.constant else self.mean(x * x)) + checked_eps(kind, eps, x.dtype)
        # With eps = 0 a constant group has r = 0, as in the library.
        positive = square > 0
        self.r = torch.where(positive, torch.where(positive, square, 1).rsqrt(), 0)
        self.xhat = x * self.r

    def wide(self, x):
        return x.to(self.dtype).reshape(self.shape)

    def parameter(self, weight):
        return weight.to(self.dtype).reshape(1, self.shape[1], self.shape[2], 1)

    def weighted(self, a):
        return a if self.w is None else a * self.w

    def mean(self, a):
        return a.mean(self.over, keepdim=True)

    def project(self, a):
        if self.constant:
            return a
        centred = a - self.mean(a) if self.centred else a
        return centred - self.xhat * self.mean(a * self.xhat)

    def narrow(self, a):
        return a.reshape(self.like.shape).to(self.like.dtype)

    @staticmethod
    def summed(a, like):
        """As a gradient of the parameter `like`."""
        return a.sum((0, 3)).reshape(like.shape).to(like.dtype)


def add(*terms):
    """The sum of the terms that are not None; None where there is none."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def forward_tangent(view, x_t, weight_t, bias_t):
    """The directional derivative of y = xhat*weight + bias."""
    return add(None if x_t is None else view.weighted(view.r * view.project(view.wide(x_t))),
               None if weight_t is None else view.xhat * view.parameter(weight_t),
               None if bias_t is None else view.parameter(bias_t))


def double_backward(view, dy, v, v_weight, v_bias, bias):
    """The gradients of sum(v*dx) + sum(v_weight*dweight) + sum(v_bias*dbias) by dy, x and weight.

    The last two terms are sum(u*xhat) + sum(v_bias*dy) with u = v_weight*dy, and the first, which is linear in dy and
    weight, is per group

        r*(n*M(v*g) - c*n*M(v)*M(g) - n*M(v*xhat)*M(g*xhat)),

    whose derivative by x, through r and xhat, is

        -r^2*(xhat*(M(v*g) - c*M(v)*M(g) - M(v*xhat)*M(g*xhat)) + M(g*xhat)*P(v) + M(v*xhat)*P(g))."""
    dy = view.wide(dy)
    v = None if v is None else view.wide(v)
    v_weight = None if v_weight is None else view.parameter(v_weight)
    v_bias = None if v_bias is None else view.parameter(v_bias)
    through_dx = None if v is None else view.r * view.project(v)
    by_dy = add(None if v is None else view.weighted(through_dx),
                None if v_weight is None else v_weight * view.xhat,
                v_bias)
    by_x = add(None if v is None or view.constant else _by_x(view, view.weighted(dy), v),
               None if v_weight is None else view.r * view.project(v_weight * dy))
    by_weight = None if v is None or view.w is None else view.summed(dy * through_dx, view.weight_like)
    return by_dy, by_x, by_weight


def _by_x(view, g, v):
    mean, xhat = view.mean, view.xhat
    m_g, m_v = mean(g * xhat), mean(v * xhat)
    inner = mean(v * g) - m_v * m_g
    if view.centred:
        inner = inner - mean(v) * mean(g)
    return -view.r * view.r * (xhat * inner + m_g * view.project(v) + m_v * view.project(g))


def backward_tangent(view, dy, dy_t, x_t, weight_t):
    """The directional derivatives of dx, dweight and dbias, each None where it is 0 (dweight and dbias unsummed).

    dx = r*P(g) depends on x through r and, in P, through xhat."""
    dy = view.wide(dy)
    dy_t = None if dy_t is None else view.wide(dy_t)
    g = view.weighted(dy)
    g_t = add(None if dy_t is None else view.weighted(dy_t),
              None if weight_t is None else dy * view.parameter(weight_t))
    dx_t = None if g_t is None else view.r * view.project(g_t)
    dweight_t = None if dy_t is None else dy_t * view.xhat
    if x_t is not None:
        mean, xhat, r = view.mean, view.xhat, view.r
        x_t = view.wide(x_t)
        xhat_t = r * view.project(x_t)
        dweight_t = add(dweight_t, dy * xhat_t)
        if not view.constant:
            r_t = -r * r * mean(xhat * x_t)
            dx_t = add(dx_t, r_t * view.project(g) - r * (xhat_t * mean(g * xhat) + xhat * mean(g * xhat_t)))
    return dx_t, dweight_t, dy_t
