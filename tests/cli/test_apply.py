"""lnorm apply: right answers for every operation, option, element type and order of axes; what it refuses."""

import itertools
import json
import math
import os
import struct
import unittest

from norms import Norm, assert_close, forward, layout, pattern_array, random_array
from program import DESCR, Array, ProgramTest, encode, npy, npy_header

OPERATIONS = [  # name, shape of x, arguments, axes or groups of Norm
    ("layer", (4, 2, 3), [], {}),
    ("layer", (4, 2, 3), ["--normalized-shape", "2,3"], {"axes": [1, 2]}),
    ("layer", (4, 2, 3), ["-a", "0,-1"], {"axes": [0, 2]}),
    ("layer", (3, 2, 2, 3), ["--axes=1"], {"axes": [1]}),
    ("rms", (3, 5), [], {}),
    ("rms", (3, 2, 4), ["--axes", "1,0"], {"axes": [0, 1]}),
    ("group", (2, 6, 2), ["-g", "3"], {"groups": 3}),
    ("group", (2, 4), ["--groups", "1"], {"groups": 1}),
    ("instance", (2, 3, 2, 2), [], {}),
    ("instance", (2, 3), [], {}),
    ("batch", (3, 2, 2), [], {}),
    ("batch", (5, 3), [], {}),
]
LAYOUTS = list(itertools.product((False, True), (False, True)))


def safetensors(tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        body = encode(array)
        header[name] = {"dtype": array.dtype.upper(), "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Apply(ProgramTest):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def check(self, norm, x, arguments, dtype=None, statistics=True, **parameters):
        """Runs and compares y, and mean and rstd, with the exact values."""
        arguments = [*arguments, "-o", "y.npy"]
        if statistics:
            arguments += ["--rstd", "rstd.npy"] + (["--mean", "mean.npy"] if norm.op != "rms" else [])
        self.assertEqual(self.succeed("apply", "x.npy", "--op", norm.op, *arguments), (0, b"", ""))
        y, mean, rstd = forward(norm, x, **parameters)
        wide = "f64" in [x.dtype, *(p.dtype for p in (parameters.get("weight"), parameters.get("bias")) if p)]
        got = self.load("y.npy")
        self.assertEqual((got.dtype, got.shape), (dtype or x.dtype, norm.shape))
        assert_close(self, got, y, wide, f"y {arguments}")
        narrow = "f64" if x.dtype == "f64" else "f32"
        for name, wanted in ("rstd", rstd), ("mean", mean):
            if statistics and (name == "rstd" or norm.op != "rms"):
                got = self.load(f"{name}.npy")
                self.assertEqual((got.dtype, got.shape), (narrow, norm.statistic_shape))
                assert_close(self, got, wanted, wide, f"{name} {arguments}")

    def test_by_hand(self):
        """[1, 3] has mean 2 and variance 1; [0, 0] variance 0."""
        self.save("x.npy", Array("f32", (2, 2), [1.0, 3.0, 0.0, 0.0]))
        self.succeed("apply", "x.npy", "-o", "y.npy", "--eps", "0", "--mean", "m.npy", "--rstd", "r.npy")
        self.assertEqual(self.load("y.npy"), Array("f32", (2, 2), [-1.0, 1.0, 0.0, 0.0]))
        self.assertEqual(self.load("m.npy"), Array("f32", (2,), [2.0, 0.0]))
        self.assertEqual(self.load("r.npy"), Array("f32", (2,), [1.0, 0.0]))

    def test_operations(self):
        """Every operation, with weight, bias, mean and rstd, on every order of axes and bytes, in f32."""
        for number, (op, shape, arguments, form) in enumerate(OPERATIONS):
            norm = Norm(op, shape, **form)
            x = random_array("f32", shape, number)
            weight, bias = (random_array("f32", norm.parameter_shape, k) for k in "wb")
            for fortran, big_endian in LAYOUTS:
                self.write("x.npy", layout(x, fortran, big_endian))
                self.write("w.npy", layout(weight, not fortran, big_endian))
                self.save("b.npy", bias)
                self.check(norm, x, [*arguments, "-w", "w.npy", "-b", "b.npy"], weight=weight, bias=bias)

    def test_types(self):
        """Every type of x with every type of y; weight and bias of other types."""
        norm = Norm("layer", (3, 7))
        for number, (given, wanted) in enumerate(itertools.product(DESCR, DESCR)):
            x = random_array(given, norm.shape, 0, 3.0, 1.0)
            weight = random_array(list(DESCR)[number // 2 % 4], norm.parameter_shape, 1)
            bias = random_array(list(DESCR)[number // 3 % 4], norm.parameter_shape, 2)
            self.save("x.npy", x)
            self.save("w.npy", weight)
            self.save("b.npy", bias)
            self.check(norm, x, ["--weight", "w.npy", "--bias", "b.npy", "--dtype", wanted], wanted, weight=weight,
                       bias=bias)
            self.check(norm, x, ["-t", {"f64": "float64", "f32": "float32", "f16": "float16"}.get(wanted, "bfloat16")],
                       wanted)

    def test_parameters(self):
        """None, one, or both; 1 + weight; eps."""
        for op in "layer", "rms", "batch":
            norm = Norm(op, (4, 3))
            x = random_array("f32", norm.shape, 5)
            weight, bias = (random_array("f32", norm.parameter_shape, k) for k in "wb")
            self.save("x.npy", x)
            self.save("w.npy", weight)
            self.save("b.npy", bias)
            self.check(norm, x, [])
            self.check(norm, x, ["-b", "b.npy"], bias=bias)
            self.check(norm, x, ["-w", "w.npy", "--eps", "0.25"], weight=weight, eps=0.25)
            self.check(norm, x, ["-w", "w.npy", "--weight-offset", "-e0"], weight=weight, offset=1, eps=0)

    def test_running_statistics(self):
        norm = Norm("batch", (3, 2, 4))
        mean, variance = random_array("f32", (2,), "m"), Array("f64", (2,), [0.5, 3.0])
        self.save("m.npy", mean)
        self.save("v.npy", variance)
        for dtype in "f32", "f64":
            x, weight = random_array(dtype, norm.shape, 1), random_array(dtype, (2,), "w")
            self.save("w.npy", weight)
            for fortran in False, True:
                self.write("x.npy", layout(x, fortran))
                self.check(norm, x, ["--running-mean", "m.npy", "--running-var", "v.npy", "-w", "w.npy"],
                           statistics=False, weight=weight, given=(mean, variance))

    def test_model(self):
        """Weight and bias by name; of a model with one norm without; X from a model, too."""
        norm = Norm("layer", (2, 4))
        x = random_array("f16", norm.shape, 1)
        weight, bias = random_array("f16", (4,), "w"), random_array("bf16", (4,), "b")
        self.save("x.npy", x)
        self.write("one.safetensors", safetensors({"a.norm.weight": weight, "a.norm.bias": bias, "x": x}))
        self.write("two.safetensors", safetensors({"a.norm.weight": weight, "a.norm.bias": bias,
                                                   "b.norm.weight": random_array("f16", (4,), "other")}))
        self.check(norm, x, ["--model", "one.safetensors"], weight=weight, bias=bias)
        self.check(norm, x, ["-m", "two.safetensors", "-n", "a.norm"], weight=weight, bias=bias)
        self.check(norm, x, ["-w", "one.safetensors:a.norm.weight"], weight=weight)
        wanted = self.succeed("apply", "x.npy", "-o", "-").out
        self.assertEqual(self.succeed("apply", "one.safetensors:x", "-o", "-").out, wanted)
        self.refuse(2, "--name: expected the name of one of the 2 norms of 'two.safetensors'", "apply", "x.npy", "-o",
                    "y", "-m", "two.safetensors")
        self.refuse(1, "--name: 'two.safetensors' has no norm 'c'; 'lnorm list' shows those it has; any tensor: "
                    "--weight 'two.safetensors:TENSOR'", "apply", "x.npy", "-o", "y", "-m",
                    "two.safetensors", "-n", "c")
        self.save("wide.npy", random_array("f16", (2, 5), 0))
        self.refuse(1, "--model one.safetensors: Expected weight to be of same shape as normalized_shape, but got "
                    "weight of shape [4] and normalized_shape = [5]", "apply", "wide.npy", "-o", "y", "-m",
                    "one.safetensors")

    def test_bfloat16_without_byte_order(self):
        x = random_array("bf16", (2, 4), 1)
        self.write("x.npy", npy_header("|V2", (2, 4)) + encode(x))
        self.refuse(1, "'x.npy'", "apply", "x.npy", "-o", "y.npy")
        self.check(Norm("layer", (2, 4)), x, ["--bf16"])

    def test_statistics_alone(self):
        self.save("x.npy", Array("f64", (2, 2), [1.0, 3.0, 5.0, 5.0]))
        self.succeed("apply", "x.npy", "--mean", "m.npy")
        self.assertEqual(self.load("m.npy"), Array("f64", (2,), [2.0, 5.0]))
        self.assertEqual(self.files(), ["m.npy", "x.npy"])

    def test_not_finite(self):
        """A NaN and an infinity make their own group NaN."""
        self.save("x.npy", Array("f32", (3, 2), [1.0, math.nan, -1.0, 1.0, math.inf, 2.0]))
        self.succeed("apply", "x.npy", "-o", "y.npy", "-e", "0")
        values = self.load("y.npy").values
        self.assertEqual(values[2:4], [-1.0, 1.0])
        self.assertTrue(all(map(math.isnan, values[:2] + values[4:])), values)

    def test_empty(self):
        """No elements; groups of no elements have NaN for statistics; one group of one element; one of all."""
        for shape, axes, statistics in ((0, 3), "1", (0,)), ((2, 0), "1", (2,)), ((0, 2, 3), "0", (2, 3)), \
                ((1,), "0", ()), ((1, 1), "0,1", ()), ((2, 3), "0,1", ()):
            x = random_array("f32", shape, 0)
            for fortran in False, True:
                self.write("x.npy", layout(x, fortran))
                self.succeed("apply", "x.npy", "-o", "y.npy", "--rstd", "r.npy", "--axes", axes)
                self.assertEqual(self.load("y.npy").shape, shape)
                self.assertEqual(self.load("r.npy").shape, statistics)
                if 0 in shape:
                    self.assertTrue(all(map(math.isnan, self.load("r.npy").values)))

    def test_empty_with_endless_axes(self):
        """A few bytes on the disk, and no work: not a group of nothing after the other, nor memory for one."""
        for shape in (0, 1 << 40), (1 << 40, 0), (1 << 40, 0, 2):
            self.write("x.npy", npy_header("<f4", shape))
            self.succeed("apply", "x.npy", "-o", "y.npy")
            self.assertEqual(self.load("y.npy"), Array("f32", shape, []))
        self.write("x.npy", npy_header("<f4", (0, 1 << 40)))
        self.succeed("apply", "x.npy", "-o", "y.npy", "--mean", "mean.npy")
        self.assertEqual(self.load("mean.npy"), Array("f32", (0,), []))

    def test_many_axes(self):
        """16 axes, of which group norm makes 17, in both orders."""
        x = pattern_array("f32", (2, 4) + (2,) * 14)
        arguments = "-o", "-", "--op", "group", "-g", "2"
        self.write("x.npy", layout(x))
        wanted = self.succeed("apply", "x.npy", *arguments).out
        self.write("x.npy", layout(x, fortran=True))
        for budget in "", "1000":
            environment = {"LNORM_CLI_BUDGET": budget}
            self.assertEqual(self.succeed("apply", "x.npy", *arguments, environment=environment).out, wanted)

    def test_help(self):
        out = self.succeed("apply", "--help").out.decode()
        for option in "output", "op", "weight", "mean", "rstd", "dtype", "running-mean":
            self.assertIn(f"--{option}=", out)
        self.assertTrue(all(len(line) < 120 for line in out.splitlines()))


class Refusals(ProgramTest):
    def setUp(self):
        super().setUp()
        self.save("x.npy", random_array("f32", (4, 2, 3), 0))
        for count in 2, 3:
            self.save(f"v{count}.npy", Array("f32", (count,), [1.0] * count))

    def test_usage(self):
        for message, arguments in {
            "an argument is missing; expected X -o Y.npy": "-o y.npy",
            "nothing to write: expected at least one of --output, --mean, --rstd": "x.npy",
            "v2.npy: one argument too many": "x.npy v2.npy -o y.npy",
            "-o: expected a value": "x.npy -o",
            "--max-ulp=1: no such option": "x.npy -o y.npy --max-ulp=1",
            "--op: expected layer, rms, group, instance or batch, got 'norm'": "x.npy -o y.npy --op norm",
            "--op group: expected --groups G, too": "x.npy -o y.npy --op group",
            "--groups: for --op group only": "x.npy -o y.npy --groups 2",
            "--groups: expected an integer from 1 on, got '0'": "x.npy -o y.npy --op group --groups 0",
            "--axes: for --op layer and rms only": "x.npy -o y.npy --op batch --axes 1",
            "--normalized-shape and --axes: expected one of the two": "x.npy -o y.npy -s 3 -a 2",
            "--eps: expected a number from 0 on, got 'nan'": "x.npy -o y.npy --eps nan",
            "--dtype: expected f64, f32, f16 or bf16, got 'i8'": "x.npy -o y.npy --dtype i8",
            "--output: given twice": "x.npy -o y.npy -o z.npy",
            "--mean: --op rms removes no mean": "x.npy --op rms --mean m.npy",
            "--rstd: is computed from X": "x.npy -o y --op batch --running-mean v2.npy --running-var v2.npy --rstd r",
            "--running-mean: expected --running-var, too": "x.npy -o y.npy --op batch --running-mean v2.npy",
            "--running-var: for --op batch only": "x.npy -o y.npy --running-var v2.npy",
            "--name: expected --model, too": "x.npy -o y.npy --name a",
            "--model: has weight and bias": "x.npy -o y.npy --model m.safetensors -w v3.npy",
            "--mean y.npy: is what --output writes, too": "x.npy -o y.npy --mean y.npy",
            "--rstd -: is what --mean writes, too": "x.npy --mean - --rstd -",
            "--weight: is standard input, which is read already": "- -o y.npy --weight -",
            "--running-var: is standard input": "x.npy -o y.npy --op batch --running-mean - --running-var -",
        }.items():
            result = self.refuse(2, f"lnorm apply: {message}", "apply", *arguments.split())
            self.assertTrue(result.error.endswith("\nTry 'lnorm apply --help'.\n"), result.error)

    def test_shapes(self):
        self.save("s.npy", Array("f32", (), [1.0]))
        for message, arguments in {
            "--normalized-shape 2: Given normalized_shape=[2], expected input with shape [*, 2], but got input of "
            "size[4, 2, 3]": "x.npy -s 2",
            "--axes 3: expected axes from -3 to 2, got 3": "x.npy -a 3",
            "--axes 1,-2: expected each axis once, got -2 again": "x.npy -a 1,-2",
            "--weight v2.npy: Expected weight to be of same shape as normalized_shape, but got weight of shape [2] and "
            "normalized_shape = [3]": "x.npy -w v2.npy",
            "--bias v2.npy: Expected bias to have the extents of the normalised axes in ascending order, [4, 2], but "
            "got [2]": "x.npy -a 0,1 -b v2.npy",
            "--weight v3.npy: Expected weight to be a vector of size equal to the number of channels in input, but got "
            "weight of shape [3] and input of shape [4, 2, 3]": "x.npy --op instance -w v3.npy",
            "--groups 3: Expected number of channels in input to be divisible by num_groups, but got input of shape "
            "[4, 2, 3] and num_groups=3": "x.npy --op group -g 3",
            "'v3.npy': Expected at least 2 dimensions for input tensor ([N, C, *]) but received 1": "v3.npy --op batch",
            "'s.npy': expected at least 1 dimension to normalise over, got 0": "s.npy",
            "--running-var v3.npy: expected one element for each of the 2 groups":
                "x.npy --op batch --running-mean v2.npy --running-var v3.npy",
        }.items():
            self.refuse(1, f"lnorm apply: {message}", "apply", *arguments.split(), "-o", "y.npy")

    def test_files(self):
        good = npy(random_array("f32", (4, 2, 3), 0))
        for name, data in {"short.npy": good[:-3], "long.npy": good + b"x", "magic.npy": b"PK" + good[2:],
                           "int.npy": npy_header("<i8", (1,)) + bytes(8), "none.npy": b"",
                           "big.npy": npy_header("<f4", (2**40, 2**40))}.items():
            with open(self.path(name), "wb") as file:
                file.write(data)
        for name, message in {"short.npy": "truncated: ", "long.npy": "", "magic.npy": "", "int.npy": "int64",
                              "none.npy": "", "big.npy": "", "absent.npy": "No such file or directory",
                              ".": "Is a directory", "x.npy/y": "Not a directory"}.items():
            for arguments in ([name], ["x.npy", "-w", name], ["x.npy", "--bias", name]):
                result = self.refuse(1, message, "apply", *arguments, "-o", "y.npy")
                self.assertIn(f"lnorm apply: '{name}'", result.error)

    def test_outputs(self):
        for target, message in {"no/y.npy": "No such file or directory", ".": "Is a directory",
                                "x.npy/y": "Not a directory", "": "expected a file name"}.items():
            result = self.refuse(1, message, "apply", "x.npy", "-o", target)
            self.assertIn("lnorm apply: --output: ", result.error)
        self.refuse(1, "lnorm apply: --rstd: ", "apply", "x.npy", "-o", "y.npy", "--rstd", "no/r.npy")

    def test_one_file_by_two_names(self):
        """Of which the second would replace the first; whether it is there already or not."""
        self.save("x.npy", Array("f32", (1, 2), [0.0, 1.0]))
        os.mkdir(self.path("d"))
        os.symlink("d/y.npy", self.path("link.npy"))
        for first, second in [("y.npy", "./y.npy"), ("d/../y.npy", self.path("y.npy")), ("link.npy", "d/y.npy")]:
            for _ in range(2):
                self.refuse(2, f"--mean {second}: is what --output writes, too", "apply", "x.npy", "-o", first,
                            "--mean", second)
                with open(self.path(first), "ab"):
                    pass
            os.remove(os.path.realpath(self.path(first)))
        self.succeed("apply", "x.npy", "-o", "y.npy", "--mean", "d/y.npy")
        self.assertEqual(self.load("d/y.npy").values, [0.5])

    def test_a_result_is_not_a_model(self):
        """Its name would be read as one, and a model that is there would be lost."""
        self.save("x.npy", Array("f32", (1, 2), [0.0, 1.0]))
        for option in "--output", "--mean":
            for name in "y.safetensors", "m.safetensors:y":
                self.refuse(2, f"{option} {name}: results are .npy files; expected a name without .safetensors",
                            "apply", "x.npy", option, name)
        self.succeed("apply", "x.npy", "-o", "y.safetensors.npy")

    @unittest.skipIf(os.geteuid() == 0, "root may read and write everything")
    def test_permissions(self):
        for name in "x.npy", "v3.npy":
            os.chmod(self.path(name), 0)
        self.refuse(1, "Permission denied", "apply", "x.npy", "-o", "y.npy")
        self.refuse(1, "exists and may not be written", "apply", "v2.npy", "-o", "v3.npy")


if __name__ == "__main__":
    unittest.main()
