"""PyTorch: the functions that its users call. Outputs are allocated by every call, as its users have it.

A backward pass is given mean and rstd of a forward pass that is not timed; lnorm computes them anew."""
import torch
import torch.nn.functional as F

from .data import BIAS, DY, EPS, WEIGHT, X, Unsupported

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def tensor(array, dtype):
    """A view of the same memory."""
    made = torch.from_numpy(array.view("int16") if dtype == "bf16" else array)
    return made.view(torch.bfloat16) if dtype == "bf16" else made


def to_numpy(result):
    result = result.contiguous()
    return (result.view(torch.int16) if result.dtype == torch.bfloat16 else result).numpy()


class TorchPeer:
    def __init__(self, threads, mixed):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.mixed = mixed
        self.remark = ""

    def close(self):
        self.problem = None

    def open(self, problem, data):
        narrow = problem.dtype in ("f16", "bf16")
        if self.mixed and not narrow:
            raise Unsupported("differs from torch-kept for f16 and bf16 only")
        if problem.backward and problem.op != "layer":
            raise Unsupported("gradients: of layer norm only")
        self.problem = problem
        parameters = "f32" if self.mixed else problem.dtype
        self.remark = "weight and bias in f32" if self.mixed else ""
        weight, bias = (tensor(data.array(role, parameters, problem.parameters), parameters)
                        for role in (WEIGHT, BIAS))
        x = [self.logical(array) for array in data.large(problem, X)]
        if problem.backward:
            return self.open_backward(x, [self.logical(array) for array in data.large(problem, DY)], weight, bias)
        size = (problem.parameters,)
        if problem.op == "rms":
            return lambda i: F.rms_norm(x[i], size, weight, EPS)
        if problem.op == "group":
            return lambda i: F.group_norm(x[i], problem.groups, weight, bias, EPS)
        return lambda i: F.layer_norm(x[i], size, weight, bias, EPS)

    def logical(self, array):
        """x as PyTorch wants it: [N, C, H, W] whatever the layout, normalised over the last axis otherwise."""
        x = tensor(array, self.problem.dtype)
        if self.problem.op == "group":
            return x.permute(0, 3, 1, 2) if self.problem.channels_last else x
        if self.problem.op == "columns":
            return x.t()
        return x[:, :self.problem.shape[1]]

    def open_backward(self, x, dy, weight, bias):
        size = [self.problem.parameters]
        saved = [torch.ops.aten.native_layer_norm(one, size, weight, bias, EPS)[1:] for one in x]
        backward = torch.ops.aten.native_layer_norm_backward
        self.remark = "; ".join(filter(None, [self.remark, "given mean and rstd"]))
        return lambda i: backward(dy[i], x[i], size, *saved[i], weight, bias, [True, True, True])

    def results(self, raw):
        if self.problem.backward:
            return {name: (to_numpy(one), NAMES[one.dtype]) for name, one in zip(("dx", "dweight", "dbias"), raw)}
        if self.problem.op == "columns":
            raw = raw.t()
        elif self.problem.channels_last:
            raw = raw.permute(0, 2, 3, 1)
        return {"y": (to_numpy(raw), self.problem.dtype)}
