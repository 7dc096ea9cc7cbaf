"""NumPy: the formulas as a textbook has them, on one thread. f16 is computed in f32; there is no bf16."""
import numpy as np

from .data import BIAS, DY, EPS, WEIGHT, X, Unsupported


def normalise(x, axes):
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + x.dtype.type(EPS))
    return (x - mean) * rstd, rstd


class NumpyPeer:
    def __init__(self, threads):
        self.remark = ""

    def close(self):
        self.problem = None

    def open(self, problem, data):
        if problem.dtype == "bf16":
            raise Unsupported("NumPy has no bf16")
        if problem.backward and problem.op != "layer":
            raise Unsupported("gradients: of layer norm only")
        self.problem = problem
        self.remark = "computed in f32" if problem.dtype == "f16" else ""
        real = np.float64 if problem.dtype == "f64" else np.float32
        x = [array[..., :problem.shape[-1]] if problem.op != "group" else array for array in data.large(problem, X)]
        weight = data.array(WEIGHT, problem.dtype, problem.parameters).astype(real)
        bias = data.array(BIAS, problem.dtype, problem.parameters).astype(real)
        if problem.backward:
            dy = data.large(problem, DY)
            return lambda i: self.backward(x[i].astype(real, copy=False), dy[i].astype(real, copy=False), weight)
        forward = getattr(self, problem.op)
        return lambda i: forward(x[i].astype(real, copy=False), weight, bias).astype(x[i].dtype, copy=False)

    def layer(self, x, weight, bias):
        return normalise(x, -1)[0] * weight + bias

    def rms(self, x, weight, bias):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + x.dtype.type(EPS)) * weight

    def columns(self, x, weight, bias):
        return normalise(x, 0)[0] * weight[:, None] + bias[:, None]

    def group(self, x, weight, bias):
        n, c, h, w = self.problem.shape
        groups = self.problem.groups
        if self.problem.channels_last:
            xhat = normalise(x.reshape(n, h * w, groups, c // groups), (1, 3))[0]
            return xhat.reshape(n, h, w, c) * weight + bias
        xhat = normalise(x.reshape(n, groups, -1), -1)[0]
        return xhat.reshape(n, c, h, w) * weight[:, None, None] + bias[:, None, None]

    def backward(self, x, dy, weight):
        xhat, rstd = normalise(x, -1)
        g = dy * weight
        dx = rstd * (g - g.mean(-1, keepdims=True) - xhat * (g * xhat).mean(-1, keepdims=True))
        return dx, (dy * xhat).sum(0), dy.sum(0)

    def results(self, raw):
        if not self.problem.backward:
            return {"y": (raw, self.problem.dtype)}
        dtype = "f64" if self.problem.dtype == "f64" else "f32"
        return {name: (array, dtype) for name, array in zip(("dx", "dweight", "dbias"), raw)}
