"""lnorm grad: right answers for every operation, option, element type and order of axes; what it refuses."""

import itertools
import unittest

from norms import Norm, assert_close, backward, layout, random_array
from program import DESCR, Array, ProgramTest, npy

OPERATIONS = [  # name, shape of x, arguments, axes or groups of Norm
    ("layer", (4, 2, 3), [], {}),
    ("layer", (4, 2, 3), ["-s", "2,3"], {"axes": [1, 2]}),
    ("layer", (4, 2, 3), ["--axes=-1,0"], {"axes": [0, 2]}),
    ("rms", (3, 5), [], {}),
    ("rms", (3, 2, 4), ["-a", "1"], {"axes": [1]}),
    ("group", (2, 6, 2), ["-g", "3"], {"groups": 3}),
    ("instance", (2, 3, 2, 2), [], {}),
    ("batch", (3, 2, 2), [], {}),
]
RESULTS = ["--dx", "dx.npy", "--dweight", "dweight.npy", "--dbias", "dbias.npy"]


class Grad(ProgramTest):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def check(self, norm, x, dy, arguments, dtypes, **parameters):
        """Runs and compares all three gradients; dtypes are theirs."""
        result = self.succeed("grad", "x.npy", "dy.npy", "--op", norm.op, *arguments, *RESULTS)
        self.assertEqual((result.out, result.error), (b"", ""))
        weight = parameters.get("weight")
        wide = "f64" in (x.dtype, dy.dtype, weight and weight.dtype)
        shapes = norm.shape, norm.parameter_shape, norm.parameter_shape
        for name, dtype, shape, wanted in zip(RESULTS[1::2], dtypes, shapes, backward(norm, x, dy, **parameters)):
            got = self.load(name)
            self.assertEqual((got.dtype, got.shape), (dtype, shape))
            assert_close(self, got, wanted, wide, f"{name} {norm.op} {arguments}")

    def test_by_hand(self):
        """x = [1, 3], eps = 0: xhat = [-1, 1]. dy = [1, 0]: M(dy) = 1/2, M(dy*xhat) = -1/2, dx = 0."""
        self.save("x.npy", Array("f32", (1, 2), [1.0, 3.0]))
        self.save("dy.npy", Array("f32", (1, 2), [1.0, 0.0]))
        self.succeed("grad", "x.npy", "dy.npy", "-e0", *RESULTS)
        self.assertEqual(self.load("dx.npy"), Array("f32", (1, 2), [0.0, 0.0]))
        self.assertEqual(self.load("dweight.npy"), Array("f32", (2,), [-1.0, 0.0]))
        self.assertEqual(self.load("dbias.npy"), Array("f32", (2,), [1.0, 0.0]))

    def test_operations(self):
        for number, (op, shape, arguments, form) in enumerate(OPERATIONS):
            norm = Norm(op, shape, **form)
            x, dy = random_array("f32", shape, number), random_array("f32", shape, "dy")
            weight = random_array("f32", norm.parameter_shape, "w")
            self.save("w.npy", weight)
            for fortran in False, True:
                self.write("x.npy", layout(x, fortran))
                self.write("dy.npy", layout(dy, not fortran, fortran))
                self.check(norm, x, dy, [*arguments, "-w", "w.npy"], ["f32"] * 3, weight=weight)
            self.check(norm, x, dy, arguments, ["f32"] * 3)

    def test_types(self):
        """dx has the type of X, the others that of weight, or all that of --dtype."""
        norm = Norm("layer", (3, 5))
        for first, second in itertools.product(DESCR, DESCR):
            x, dy = random_array(first, norm.shape, "x"), random_array(second, norm.shape, "dy")
            weight = random_array(second, norm.parameter_shape, "w")
            self.save("x.npy", x)
            self.save("dy.npy", dy)
            self.save("w.npy", weight)
            self.check(norm, x, dy, ["-w", "w.npy"], [first, second, second], weight=weight)
            self.check(norm, x, dy, ["-t", second], [second] * 3)

    def test_options(self):
        norm = Norm("rms", (4, 3))
        x, dy, weight = (random_array("f32", s, k) for s, k in (((4, 3), "x"), ((4, 3), "dy"), ((3,), "w")))
        self.save("x.npy", x)
        self.save("dy.npy", dy)
        self.save("w.npy", weight)
        self.check(norm, x, dy, ["-w", "w.npy", "--weight-offset", "-e", "0.5"], ["f32"] * 3, weight=weight, offset=1,
                   eps=0.5)
        given = random_array("f32", (3,), "m"), Array("f32", (3,), [0.5, 1.0, 2.0])
        for name, array in zip(("m.npy", "v.npy"), given):
            self.save(name, array)
        self.check(Norm("batch", (4, 3)), x, dy, ["--running-mean", "m.npy", "--running-var", "v.npy", "-w", "w.npy"],
                   ["f32"] * 3, weight=weight, given=given)

    def test_one_result(self):
        """Each alone, with the same bits; standard input and output."""
        x, dy = random_array("f16", (70, 6), "x"), random_array("f16", (70, 6), "dy")
        self.save("x.npy", x)
        self.save("dy.npy", dy)
        self.succeed("grad", "x.npy", "dy.npy", *RESULTS)
        for option, name in zip(RESULTS[::2], RESULTS[1::2]):
            wanted = npy(self.load(name))
            self.assertEqual(self.succeed("grad", "-", "dy.npy", option, "-", stdin=npy(x)).out, wanted)
            self.assertEqual(self.succeed("grad", "x.npy", "-", option, "-", stdin=npy(dy)).out, wanted)
        self.succeed("grad", "x.npy", "dy.npy", "--dx", "x.npy")
        self.assertEqual(self.load("x.npy"), self.load("dx.npy"))

    def test_empty(self):
        for shape in (0, 3), (2, 0):
            self.save("x.npy", Array("f32", shape, []))
            self.succeed("grad", "x.npy", "x.npy", *RESULTS)
            self.assertEqual(self.load("dx.npy").shape, shape)
            self.assertEqual(self.load("dweight.npy"), Array("f32", shape[1:], [0.0] * shape[1]))

    def test_refused(self):
        self.save("x.npy", random_array("f32", (2, 3), 0))
        self.save("v2.npy", Array("f32", (2,), [1.0, 1.0]))
        for message, arguments in {
            "an argument is missing; expected X DY": "x.npy --dx dx.npy",
            "nothing to write: expected at least one of --dx, --dweight, --dbias": "x.npy x.npy",
            "--bias=v2.npy: no such option": "x.npy x.npy --dx dx.npy --bias=v2.npy",
            "-: is standard input, which is read already": "- - --dx dx.npy",
            "--dbias d.npy: is what --dweight writes, too": "x.npy x.npy --dweight d.npy --dbias d.npy",
            "--dtype: expected f64, f32, f16 or bf16, got ''": "x.npy x.npy --dx dx.npy --dtype=",
        }.items():
            self.refuse(2, f"lnorm grad: {message}", "grad", *arguments.split())
        for message, arguments in {
            "'v2.npy': expected the shape of x, [2, 3], got [2]": "x.npy v2.npy",
            "--weight v2.npy: Expected weight to be of same shape": "x.npy x.npy -w v2.npy",
            "--axes 2: expected axes from -2 to 1, got 2": "x.npy x.npy -a 2",
            "'absent.npy': cannot be opened": "x.npy absent.npy",
            "--dweight: 'no/d.npy': ": "x.npy x.npy --dweight no/d.npy",
            "--dweight: '/dev/full': cannot be written: No space left": "x.npy x.npy --dweight /dev/full",
        }.items():
            self.refuse(1, f"lnorm grad: {message}", "grad", *arguments.split(), "--dx", "dx.npy")

    def test_help(self):
        out = self.succeed("grad", "--help").out.decode()
        for option in "dx", "dweight", "dbias", "weight", "dtype":
            self.assertIn(f"--{option}=", out)


if __name__ == "__main__":
    unittest.main()
