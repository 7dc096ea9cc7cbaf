"""lnorm verify: the usual mistakes, made by a kernel in f32, are named."""

import math
import unittest

import planted
from planted import BATCH, Kernel, grouped, in_order, in_tree, over, to_bf16, to_f16, to_f32
from program import Array
from test_verify import VerifyTest, draw

HALF = {"f16": to_f16, "bf16": to_bf16}


def making(**mistakes):
    """A kernel with these of its functions or numbers replaced."""
    return type("Mistaken", (Kernel,), mistakes)()


def about_zero(kernel, x):
    return kernel.mean(x), to_f32(in_order([to_f32(v * v) for v in x]) / len(x))


RMS = making(statistics=about_zero, removed=lambda k, mean: 0.0)


class MistakeTest(VerifyTest):
    shape, operation = (24, 20), staticmethod(over(-1))
    options = ()
    scale, offset = 2.0, 0.5
    dtype = y_dtype = "f32"
    parameters = True

    def setUp(self):
        super().setUp()
        self.x = draw(self.dtype, math.prod(self.shape), self.scale, self.offset)
        index = planted.groups_of(self.operation, self.shape)[1]
        self.weight = draw("f32", max(index) + 1, 0.3, 1.0, seed=2) if self.parameters else None
        self.bias = draw("f32", max(index) + 1, 0.5, seed=3) if self.parameters else None

    def names(self, y, *options, parameter_shape=None):
        self.save("x.npy", Array(self.dtype, self.shape, self.x))
        self.save("y.npy", Array(self.y_dtype, self.shape, [planted.ROUND[self.y_dtype](v) for v in y]))
        for name, values in (("weight", self.weight), ("bias", self.bias)):
            if values:
                self.save(f"{name}.npy", Array("f32", parameter_shape or (len(values),), values))
                options = (*options, f"--{name}", f"{name}.npy")
        report = self.verify(*self.options, *options, status=1)
        return [(m["name"], m["detail"]) for m in report["mistakes"]]

    def named(self, name, y, *options, detail="", alone=True, **more):
        found = self.names(y, *options, **more)
        self.assertIn((name, detail), found)
        if alone:
            self.assertEqual(len(found), 1, found)

    def run_kernel(self, kernel=Kernel(), operation=None, weight=True, bias=True):
        return kernel.run(self.x, self.shape, operation or self.operation, self.weight if weight else None,
                          self.bias if bias else None)


class Parameters(MistakeTest):
    def test_missing(self):
        self.named("weight is missing", self.run_kernel(weight=False))
        self.named("bias is missing", self.run_kernel(bias=False))
        self.named("weight and bias are missing", self.run_kernel(weight=False, bias=False))

    def test_swapped(self):
        y = self.run_kernel(making(apply=lambda k, xhat, weight, bias: to_f32(xhat * bias + weight)))
        self.named("weight and bias are swapped", y)

    def test_offset(self):
        one_plus = making(apply=lambda k, xhat, weight, bias: to_f32(xhat * to_f32(1 + weight) + bias))
        self.named("1 + weight is used for weight", self.run_kernel(one_plus))
        self.named("weight is used for 1 + weight", self.run_kernel(), "--weight-offset")

    def test_others(self):
        y = self.run_kernel()
        self.weight = [w + 0.25 for w in self.weight]
        self.named("other weights and biases: with those all is right", y)
        self.weight = self.bias = None
        self.named("other weights and biases: with those all is right", y)


class Formula(MistakeTest):
    def test_rms_for_layer(self):
        self.named("RMS norm instead of layer norm", self.run_kernel(RMS))

    def test_layer_for_rms(self):
        self.named("layer norm instead of RMS norm", self.run_kernel(), "--op", "rms", detail="eps 1e-05")
        self.named("layer norm instead of RMS norm", self.run_kernel(), "--op", "rms", "-e", "1e-5")

    def test_mean(self):
        self.named("the mean is not removed (the variance is right)",
                   self.run_kernel(making(removed=lambda k, mean: 0.0)))
        self.named("the mean is removed from x, not in the variance", self.run_kernel(making(statistics=about_zero)))
        y = self.run_kernel(making(statistics=about_zero))
        self.named("the mean is removed from x", y, "--op", "rms", "-e", "1e-5")

    def test_divisor(self):
        self.named("the variance is the unbiased one", self.run_kernel(making(divisor=lambda k, n: n - 1)))
        self.named("the sum of squares is not divided", self.run_kernel(making(divisor=lambda k, n: 1)))

    def test_root(self):
        self.named("the root is missing", self.run_kernel(making(rstd=lambda k, v: to_f32(1 / to_f32(v + 1e-5)))))


class Eps(MistakeTest):
    scale, offset = 4e-3, 1e-3  # so that eps is of the variance's size

    def test_outside(self):
        outside = making(rstd=lambda k, v: to_f32(1 / to_f32(to_f32(math.sqrt(v)) + 1e-5)))
        self.named("eps is outside the root", self.run_kernel(outside))

    def test_omitted(self):
        self.named("eps is omitted", self.run_kernel(making(eps=0.0)), detail="eps 0", alone=False)

    def test_others(self):
        for eps in (1e-6, 1e-12, 1e-3, 1e-8):
            with self.subTest(eps=eps):  # those far below the variance make no difference between them
                self.named("another eps", self.run_kernel(making(eps=eps)), detail=f"eps {eps:.6g}", alone=False)
        self.named("another eps", self.run_kernel(), "-e", "1e-3", detail="eps 1e-05")

    def test_only_the_nearest(self):
        """In f16 no eps at all comes near to eps = 1e-8, and is not named beside it."""
        self.y_dtype = "f16"
        self.named("another eps", self.run_kernel(making(eps=1e-8)), detail="eps 1e-08")

    def test_16_bits(self):
        for eps in (1e-5, 3e-6):
            for name, half in HALF.items():
                with self.subTest(eps=eps, half=name):
                    self.named("eps is rounded to 16 bits", self.run_kernel(making(eps=half(eps))), "-e", str(eps),
                               detail=f"eps {half(eps):.6g}", alone=False)

    def test_underflow(self):
        self.scale = self.offset = 1e-4
        self.setUp()
        y = self.run_kernel(making(eps=0.0))
        self.named("eps is rounded to 16 bits", y, "-e", "1e-8", detail="eps 0", alone=False)


class Axes(MistakeTest):
    shape, operation = (5, 6, 5), staticmethod(over(-1))

    def test_other_axes(self):
        """Statistics over other axes; weight and bias stay on the last one."""
        for axes in ((0,), (1,), (1, 2), (0, 1, 2), (0, 2)):
            with self.subTest(axes=axes):
                y = self.with_statistics_over(axes)
                self.named("normalised over other axes", y, detail="axes " + ",".join(map(str, axes)))

    def test_last_axis_for_two(self):
        self.weight = self.bias = None
        self.named("normalised over other axes", self.run_kernel(), "-s", "6,5", detail="axes 2")

    def test_channels(self):
        self.weight = self.bias = None
        self.named("normalised over other axes", self.run_kernel(operation=BATCH), "--op", "group", "--groups", "2",
                   detail="axes 0,2")
        self.named("normalised over other axes", self.run_kernel(operation=grouped(1)), "--op", "batch",
                   detail="axes 1,2")

    def with_statistics_over(self, axes):
        xhat = Kernel().run(self.x, self.shape, over(*axes))
        index = planted.groups_of(self.operation, self.shape)[1]
        return [to_f32(to_f32(v * self.weight[i]) + self.bias[i]) for v, i in zip(xhat, index)]


class Order(MistakeTest):
    shape = (20, 20)

    def transposed(self, values):
        rows, cols = self.shape[-2:]
        return [values[first + i * cols + j] for first in range(0, len(values), rows * cols)
                for j in range(cols) for i in range(rows)]

    def test_y(self):
        self.named("Y is stored in another order of axes", self.transposed(self.run_kernel()), detail="column-major")

    def test_x(self):
        x, self.x = self.x, self.transposed(self.x)
        y = self.run_kernel()
        self.x = x
        self.named("X is read in another order of axes", y, detail="column-major")

    def test_last_two(self):
        self.shape = (3, 8, 5)
        self.setUp()
        self.named("Y is stored in another order of axes", self.transposed(self.run_kernel()),
                   detail="the last two swapped")


class Sums(MistakeTest):
    offset = 300.0
    parameters = False

    def squares(self, total):
        def statistics(kernel, x):
            mean = to_f32(total(x) / len(x))
            return mean, to_f32(to_f32(total([to_f32(v * v) for v in x]) / len(x)) - to_f32(mean * mean))
        return making(statistics=statistics)

    def test_squares(self):
        name = "the variance is E[x^2] - E[x]^2 in f32"
        self.named(name, self.run_kernel(self.squares(in_order)), detail="summed in order")
        self.named(name, self.run_kernel(self.squares(in_tree)), detail="summed in a tree")

    def test_squares_in_any_order(self):
        lanes = lambda values: in_order([in_order(values[lane::4]) for lane in range(4)])
        (name, detail), = self.names(self.run_kernel(self.squares(lanes)))
        self.assertEqual(name, "mean or variance are computed badly: with others all is right")
        self.assertRegex(detail, r"variance off by up to [0-9.e-]+, mean by [0-9.e-]+ deviations")


class Halves(MistakeTest):
    def test_result(self):
        for name, half in HALF.items():
            self.named("the result went through a narrower type", [half(v) for v in self.run_kernel()], detail=name)

    def test_xhat(self):
        for name, half in HALF.items():
            y = self.run_kernel(making(xhat=lambda k, v: half(v)))
            self.named("xhat is rounded to 16 bits", y, detail=name)

    def test_statistics(self):
        for name, half in HALF.items():
            y = self.run_kernel(making(statistics=lambda k, x: tuple(map(half, Kernel.statistics(k, x)))))
            self.named("mean and variance are rounded to 16 bits", y, detail=name)

    def test_sums(self):
        for name, half in HALF.items():
            self.dtype = self.y_dtype = name
            self.parameters = False
            self.setUp()

            def statistics(kernel, x):
                mean = half(in_order(x, half) / len(x))
                return mean, half(in_order([half(half(v - mean) ** 2) for v in x], half) / len(x))
            self.named("sums are kept in 16 bits", self.run_kernel(making(statistics=statistics)), detail=name)

    def test_f32_for_f64(self):
        self.dtype = self.y_dtype = "f64"
        self.parameters = False
        self.setUp()
        y = [to_f32(float(v)) for v in planted.exact(self.x, self.shape, self.operation)]
        self.named("the result went through a narrower type", y, detail="f32")


class GivenStatistics(MistakeTest):
    shape, operation, options = (6, 4, 5), staticmethod(BATCH), ("--op", "batch")

    def test_own_statistics(self):
        self.save("m.npy", Array("f32", (4,), draw("f32", 4, seed=7)))
        self.save("v.npy", Array("f32", (4,), [1.0, 2.0, 3.0, 4.0]))
        self.named("statistics of x instead of the given ones", self.run_kernel(), "--running-mean", "m.npy",
                   "--running-var", "v.npy")


class Narrow(MistakeTest):
    """In bf16, where an ulp is 2^-8 and a mistake shows in a few elements only."""
    dtype = y_dtype = "bf16"

    def test_unbiased(self):
        self.named("the variance is the unbiased one", self.run_kernel(making(divisor=lambda k, n: n - 1)))


class Right(MistakeTest):
    def test_f32_arithmetic_is_no_mistake(self):
        self.assertEqual(self.names(self.run_kernel(), "-u", "0.6"), [])


if __name__ == "__main__":
    unittest.main()
