"""lnorm verify: right and wrong results, planted by hand."""

import json
import math
import os
import random
import shutil
import unittest

import planted
from planted import BATCH, INSTANCE, ROUND, exact, grouped, over, rounded, spacing
from program import Array, ProgramTest

SHAPE = (6, 8)


def draw(dtype, count, scale=1.0, offset=0.0, seed=1):
    numbers = random.Random(seed)
    return [ROUND[dtype](offset + scale * numbers.gauss(0, 1)) for _ in range(count)]


class VerifyTest(ProgramTest):
    def save_all(self, shape, x, y, dtype="f32", y_dtype=None, **others):
        self.save("x.npy", Array(dtype, shape, x))
        self.save("y.npy", Array(y_dtype or dtype, shape, y))
        for name, values in others.items():
            self.save(f"{name}.npy", Array(dtype, (len(values),), values))

    def verify(self, *arguments, status=None):
        result = self.run_lnorm("verify", "x.npy", "y.npy", "--json", *arguments)
        self.assertEqual(result.error, "")
        report = json.loads(result.out)
        self.assertEqual(result.status, 0 if report["within_limit"] else 1)
        if status is not None:
            self.assertEqual(result.status, status, report)
        return report

    def assert_right(self, report, count):
        self.assertEqual(report["measured"], count)
        self.assertLessEqual(report["ulps"]["max"], 0.501)
        self.assertGreaterEqual(report["ulps"]["correctly_rounded"], 0.99 * count)
        self.assertEqual(report["mistakes"], [])


class Right(VerifyTest):
    def check(self, dtype, y_dtype, shape, operation, arguments, rms=False, parameters=True, eps=None, given=None):
        count = math.prod(shape)
        index = planted.groups_of(operation, shape)[1]
        x = draw(dtype, count, scale=3, offset=1)
        weight = draw(dtype, max(index) + 1, seed=2) if parameters else None
        bias = draw(dtype, max(index) + 1, seed=3) if parameters and not rms else None
        y = exact(x, shape, operation, weight, bias, eps or (2.0**-23 if rms else 1e-5), rms, given)
        self.save_all(shape, x, rounded(y_dtype, y), dtype, y_dtype)
        names = [("weight", weight), ("bias", bias)] + list(zip(("running-mean", "running-var"), given or ()))
        for name, values in names:
            if values:
                self.save(f"{name}.npy", Array(dtype if name in ("weight", "bias") else "f32", arguments[0], values))
                arguments = (*arguments, f"--{name}", f"{name}.npy")
        self.assert_right(self.verify(*arguments[1:], status=0), count)

    def test_types(self):
        for dtype in ROUND:
            for y_dtype in ROUND:
                with self.subTest(x=dtype, y=y_dtype):
                    self.check(dtype, y_dtype, SHAPE, over(-1), ((8,),))

    def test_operations(self):
        given = [draw("f32", 4), [abs(v) for v in draw("f32", 4)]]
        for operation, arguments, options in [
                (over(1, 2), ((4, 5), "--normalized-shape", "4,5"), {}),
                (over(0, 2), ((3, 5), "--axes", "0,-1"), {}),
                (over(-1), ((5,), "--op", "rms"), {"rms": True}),
                (over(-1), ((5,), "--op", "rms", "--eps", "0.25"), {"rms": True, "eps": 0.25}),
                (over(-1), ((5,), "--eps", "1e-3"), {"eps": 1e-3}),
                (over(-1), (None,), {"parameters": False}),
                (grouped(2), ((4,), "--op", "group", "--groups", "2"), {}),
                (INSTANCE, ((4,), "--op", "instance"), {}),
                (BATCH, ((4,), "--op", "batch"), {}),
                (BATCH, ((4,), "--op", "batch"), {"given": given})]:
            with self.subTest(arguments=arguments, **options):
                self.check("f32", "f32", (3, 4, 5), operation, arguments, **options)

    def test_one_plus_weight(self):
        x, weight = draw("f32", 48), draw("f32", 8, seed=2)
        y = exact(x, SHAPE, over(-1), [1 + w for w in weight])
        self.save_all(SHAPE, x, rounded("f32", y), weight=weight)
        self.assert_right(self.verify("-w", "weight.npy", "--weight-offset", status=0), 48)

    def test_apply_is_right(self):
        x = draw("bf16", 700, offset=100)
        self.save_all((10, 70), x, x, "bf16")
        self.succeed("apply", "x.npy", "-o", "y.npy")
        self.assert_right(self.verify(status=0), 700)

    def test_f64_hard_cases(self):
        numbers = random.Random(5)
        cases = {
            "large mean": [1e15 + numbers.randrange(64) / 8 for _ in range(48)],
            "mean larger by 2^52": [2.0**52 + numbers.randrange(2) for _ in range(48)],
            "near overflow": [numbers.uniform(-1, 1) * 1e308 for _ in range(48)],
            "subnormal": [numbers.randrange(-999, 999) * 5e-324 for _ in range(48)],
            "small": [numbers.gauss(0, 1) * 1e-200 for _ in range(48)],
            "every size": [numbers.gauss(0, 1) * 10.0 ** numbers.uniform(-300, 300) for _ in range(48)],
        }
        for name, x in cases.items():
            for eps in (0.0, 1e-5, 1e-300):
                with self.subTest(name=name, eps=eps):
                    y = rounded("f64", exact(x, SHAPE, over(-1), eps=eps))
                    self.save_all(SHAPE, x, y, "f64")
                    self.assert_right(self.verify("--eps", str(eps), status=0), 48)
                    at = max(range(48), key=lambda i: abs(y[i]))
                    y[at] += 2 * spacing("f64", max(1, abs(y[at])))
                    self.save_all(SHAPE, x, y, "f64")
                    report = self.verify("--eps", str(eps), status=1)
                    self.assertEqual(report["worst"]["index"], [at // 8, at % 8])
                    self.assertAlmostEqual(report["worst"]["error"], 2, delta=0.5)

    def test_few_elements(self):
        for shape, measured in [((0, 4), 0), ((4, 0), 0), ((3, 1), 3), ((1,), 1)]:
            with self.subTest(shape=shape):
                x = draw("f32", math.prod(shape))
                self.save_all(shape, x, [0.0] * len(x))
                report = self.verify(status=0)
                self.assertEqual((report["elements"], report["measured"]), (len(x), measured))
        self.save_all((0, 4), [], [])
        self.assertIn("no element to measure\n", self.succeed("verify", "x.npy", "y.npy").out.decode())

    def test_zero_variance_and_eps_0(self):
        self.save_all((2, 3), [7.0] * 6, [0.5, 1.5, 2.5] * 2, bias=[0.5, 1.5, 2.5])
        report = self.verify("--eps", "0", "-b", "bias.npy", "--max-ulp", "0", status=0)
        self.assertEqual(report["ulps"]["max"], 0)
        self.assertEqual(report["worst"]["group"]["rstd"], "0")


class Wrong(VerifyTest):
    """Single errors: found where they are, as large as they are."""

    def test_planted_ulps(self):
        for dtype in ROUND:
            x = draw(dtype, 48)
            true = exact(x, SHAPE, over(-1))
            at = next(i for i, y in enumerate(true) if 1.1 < abs(y) < 1.9)
            for ulps in (1, 2, 3, -2):
                y = rounded(dtype, true)
                y[at] += ulps * spacing(dtype, 1.5)
                error = abs(float(planted.Decimal(y[at]) - true[at])) / spacing(dtype, 1.5)
                self.save_all(SHAPE, x, y, dtype)
                with self.subTest(dtype=dtype, ulps=ulps):
                    report = self.verify("--max-ulp", "0.501", status=1)
                    self.assertEqual(report["worst"]["index"], [at // 8, at % 8])
                    self.assertAlmostEqual(report["worst"]["error"], error, delta=1e-6)
                    self.assertEqual(float(report["worst"]["y"]), y[at])
                    self.assertAlmostEqual(float(report["worst"]["exact"]), float(true[at]), delta=1e-6)
                    self.assertEqual(report["ulps"]["beyond_limit"], 1)
                    self.assertEqual(report["ulps"]["correctly_rounded"], 47)
                    self.assertEqual(report["places"]["groups"]["first"], at // 8)
                    self.assertEqual(report["places"]["positions"]["first"], at % 8)

    def test_limit(self):
        """y = bias, and y = +-1: exact numbers, so that the error is one, too."""
        ulp = 2.0**-23
        for x, y, options, error in [([3.0, 3.0], [1.0 + ulp, 1.0], ("-b", "bias.npy"), 1),
                                     ([3.0, 3.0], [1.0, 1.0 - ulp / 2], ("-b", "bias.npy"), 0.5),
                                     ([-5.0, 5.0], [-1.0, 1.0 + 2 * ulp], ("-e", "0"), 2),
                                     ([2.0, 5.0], [-1.0 - 3 * ulp, 1.0], ("-e", "0"), 3)]:
            self.save_all((1, 2), x, y, bias=[1.0, 1.0])
            with self.subTest(x=x, y=y):
                self.assertEqual(self.verify(*options, "-u", str(error), status=0)["ulps"]["max"], error)
                self.verify(*options, "-u", str(error * (1 - 1e-9)), status=1)

    def test_scale(self):
        """Near x = mean y is tiny; the error counts in ulps of 1, and those of y are shown beside it."""
        self.save_all((1, 3), [-1.0, 0.0, 1.0], [-1.5**0.5, 2.0**-24, 1.5**0.5])
        report = self.verify("-e", "0", status=0)
        self.assertLessEqual(report["ulps"]["max"], 0.501)
        self.assertGreater(report["ulps"]["max_of_y"], 1e30)
        self.save_all((1, 3), [-1.0, 0.0, 1.0], [-1.5**0.5, 2.0**-22, 1.5**0.5])
        self.assertEqual(self.verify("-e", "0", status=1)["ulps"]["max"], 2)

    def test_scale_is_the_weight(self):
        x, weight = draw("f32", 48), [8.0] * 8
        y = rounded("f32", exact(x, SHAPE, over(-1), weight))
        at = next(i for i, v in enumerate(y) if abs(v) < 2)
        y[at] += 3 * spacing("f32", 8)
        self.save_all(SHAPE, x, y, weight=weight)
        report = self.verify("-w", "weight.npy", status=1)
        self.assertEqual(report["worst"]["index"], [at // 8, at % 8])
        self.assertAlmostEqual(report["worst"]["error"], 3, delta=0.25)

    def test_short_results_of_long_computations(self):
        """32/23*23, which in MPFR's 320 bits comes out just below 32, where ulps are half as large; less 32 it is 0."""
        ulp = 2.0**-18
        statistics = ("--op", "batch", "--running-mean", "mean.npy", "--running-var", "var.npy", "-e", "0")
        parameters = {"mean": [0.0], "var": [23.0**2], "weight": [23.0], "bias": [-32.0]}
        self.save_all((1, 1, 2), [32.0, 64.0], [32.0 + ulp, 64.0], **parameters)
        self.assertEqual(self.verify(*statistics, "-w", "weight.npy")["ulps"]["max"], 1)
        self.save_all((1, 1, 2), [32.0, 64.0], [0.0, 32.0], **parameters)
        report = self.verify(*statistics, "-w", "weight.npy", "-b", "bias.npy", "-u", "0", status=0)
        self.assertEqual((report["ulps"]["max"], report["ulps"]["max_of_y"]), (0, 0))

    def test_powers_of_two(self):
        """y is 1 less 3/4 of the spacing below 1: 1 is nearer than 1/2 of the spacing above it, and not nearest."""
        for x in (2.0, 1e-300):
            self.save("x.npy", Array("f64", (1, 2), [x, x]))
            self.save("bias.npy", Array("f64", (2,), [1 - 0.75 * 2.0**-11] * 2))
            self.save("y.npy", Array("f16", (1, 2), [1.0, 1 - 2.0**-11]))
            self.assertEqual(self.verify("-b", "bias.npy", status=0)["ulps"]["correctly_rounded"], 1)

    def test_ties(self):
        """y = 1 + 2^-24, a midpoint: the even neighbour, 1, is the rounded one."""
        ulp = 2.0**-23
        for y, correct in [(1.0, 2), (1.0 + ulp, 1)]:
            self.save_all((1, 2), [-1.0, 1.0], [-1.0, y], weight=[1.0, 1.0 + ulp], bias=[0.0, -ulp / 2])
            report = self.verify("-e", "0", "-w", "weight.npy", "-b", "bias.npy")
            self.assertEqual((report["ulps"]["correctly_rounded"], report["ulps"]["max"]), (correct, 0.5))

    def test_overflow(self):
        """65520 is the midpoint from which f16 rounds to infinity."""
        for bias, y, unexpected, correct in [
                (65520.0, math.inf, 0, 1), (65519.9, math.inf, 0, 0), (65519.9, 65504.0, 0, 1),
                (65500.0, math.inf, 1, 0), (65520.0, -math.inf, 1, 0), (7e4, 65504.0, 0, 0)]:
            self.save("x.npy", Array("f32", (1, 1), [2.0]))
            self.save("bias.npy", Array("f32", (1,), [planted.to_f32(bias)]))
            self.save("y.npy", Array("f16", (1, 1), [y]))
            report = self.verify("-b", "bias.npy")
            with self.subTest(bias=bias, y=y):
                self.assertEqual(report["nan"]["unexpected"]["count"], unexpected)
                self.assertEqual(report["ulps"]["correctly_rounded"] if report["ulps"] else 0, correct)

    def test_places(self):
        x = draw("f32", 6 * 70)
        right = rounded("f32", exact(x, (6, 70), over(-1)))
        many, tail = "positions in a group, from", "the tail beyond a multiple of"
        for where, groups, positions in [
                (lambda g, i: i >= 64, "all 6 groups", f"6 of 70 {many} 64 to 69, {tail} 32"),
                (lambda g, i: i >= 68, "all 6 groups", f"2 of 70 {many} 68 to 69, {tail} 4"),
                (lambda g, i: g == 4, f"group 4 of 6, {tail} 4", "all 70 positions in a group"),
                (lambda g, i: i == 3, "all 6 groups", "position 3 of 70"),
                (lambda g, i: (g, i) in [(1, 5), (2, 60)], "2 of 6 groups, from 1 to 2", f"2 of 70 {many} 5 to 60")]:
            y = [abs(v) + 1 if where(k // 70, k % 70) else v for k, v in enumerate(right)]
            self.save_all((6, 70), x, y)
            result = self.run_lnorm("verify", "x.npy", "y.npy")
            self.assertEqual(result.status, 1)
            self.assertIn(f"Where: {groups};\n       {positions}.\n", result.out.decode())
            self.assertIn("None of the usual mistakes gives this Y.", result.out.decode())


class NotANumber(VerifyTest):
    def report(self, x, y, *arguments):
        self.save_all((2, 3), x, y)
        report = self.verify(*arguments)
        nan = report["nan"]
        return report, nan["due"], nan["missing"], nan["unexpected"]

    def setUp(self):
        super().setUp()
        self.x = draw("f32", 6)
        self.y = rounded("f32", exact(self.x, (2, 3), over(-1)))

    def test_due(self):
        for bad in (math.nan, math.inf, -math.inf):
            report, due, missing, unexpected = self.report([bad, *self.x[1:]],
                                                           [math.nan, math.inf, math.nan, *self.y[3:]])
            self.assertEqual((due, missing["count"], unexpected["count"]), (3, 0, 0))
            self.assertTrue(report["within_limit"])
            self.assertEqual(report["measured"], 3)

    def test_missing(self):
        report, due, missing, _ = self.report([math.nan, *self.x[1:]], [math.nan, 1.0, 2.0, *self.y[3:]])
        self.assertEqual((due, missing), (1, {"count": 2, "first": [0, 1]}))
        self.assertFalse(report["within_limit"])

    def test_unexpected(self):
        for bad in (math.nan, math.inf):
            report, due, _, unexpected = self.report(self.x, [*self.y[:4], bad, self.y[5]], "-u", "1e9")
            self.assertEqual((due, unexpected), (0, {"count": 1, "first": [1, 1]}))
            self.assertFalse(report["within_limit"])
        text = self.run_lnorm("verify", "x.npy", "y.npy").out.decode()
        self.assertIn("NaN or infinity where Y should have a number: 1 element, the first [1, 1]", text)

    def test_rms(self):
        """An infinity makes its own element NaN and the others 0, which may be NaN as well."""
        x, options = [math.inf, 1.0, 2.0, 1.0, 1.0, 1.0], ("--op", "rms", "-e", "0")
        for other, due in [(0.0, 1), (math.nan, 2)]:
            report, *found = self.report(x, [math.nan, other, 0.0, 1.0, 1.0, 1.0], *options)
            self.assertEqual((found[0], found[1]["count"], found[2]["count"]), (due, 0, 0))
            self.assertTrue(report["within_limit"])
        report, *_ = self.report(x, [math.nan, 0.5, 0.0, 1.0, 1.0, 1.0], *options)
        self.assertFalse(report["within_limit"])
        self.assertEqual((report["worst"]["index"], report["worst"]["exact"]), ([0, 1], "0"))

    def test_given_statistics(self):
        """An element's own, with given statistics; a whole channel where those are undefined."""
        self.save_all((2, 3), [math.inf, 1.0, 1.0, 1.0, 1.0, 1.0], [math.nan, 1.0, math.nan, 1.0, 1.0, math.nan])
        self.save("m.npy", Array("f32", (3,), [0.0, 0.0, 0.0]))
        self.save("v.npy", Array("f32", (3,), [1.0, 1.0, -2.0]))
        report = self.verify("--op", "batch", "--running-mean", "m.npy", "--running-var", "v.npy", "-e", "0", status=0)
        self.assertEqual((report["nan"]["due"], report["measured"]), (3, 3))

    def test_parameter(self):
        y = [self.y[0], math.nan, self.y[2], self.y[3], 1.0, self.y[5]]
        self.save_all((2, 3), self.x, y, w=[1.0, math.nan, 1.0])
        report = self.verify("-w", "w.npy", status=1)
        self.assertEqual((report["nan"]["due"], report["nan"]["missing"]), (1, {"count": 1, "first": [1, 1]}))


class Program(VerifyTest):
    def setUp(self):
        super().setUp()
        x = draw("f32", 48)
        self.save_all(SHAPE, x, rounded("f32", exact(x, SHAPE, over(-1))))

    def test_text(self):
        text = self.succeed("verify", "x.npy", "y.npy").out.decode()
        self.assertIn("X            'x.npy', [6, 8] f32\n", text)
        self.assertIn("operation    layer norm over the last axis, eps 1e-05\n", text)
        self.assertIn("groups       6, of 8 elements each\n", text)
        self.assertRegex(text, r"largest error +0\.4\d+ ulp \(0\.\d+ ulp of y itself\)\n")
        self.assertIn("correctly rounded    100 % (48 of 48)\n", text)
        self.assertRegex(text, r"worst element \[\d, \d\]: 0\.4\d+ ulp\n  Y +\S+\n  exact +\S+\n")
        self.assertIn("Within the limit of 1 ulp.\n", text)

    def test_quiet(self):
        self.assertEqual(self.succeed("verify", "x.npy", "y.npy", "-q").out, b"")
        self.assertEqual(self.run_lnorm("verify", "x.npy", "y.npy", "-q", "-e", "1").status, 1)

    def test_standard_input(self):
        with open(self.path("y.npy"), "rb") as file:
            self.succeed("verify", "x.npy", "-", stdin=file.read())
        self.refuse(2, "-: is standard input, which is read already", "verify", "-", "-")

    def test_names_of_files(self):
        """Any bytes: none reach the terminal that would move its cursor, and JSON is UTF-8."""
        x, y = b"x\xff.npy", "y\x1b[2J\n\u00e9.npy".encode()
        for name in x, y:
            shutil.copy(self.path("x.npy"), os.path.join(os.fsencode(self.directory), name))
        report = self.run_lnorm("verify", x, y)
        self.assertTrue(report.out.startswith(b"X            'x\xff.npy', [6, 8] "), report.out)
        self.assertIn(b"\nY            'y\\x1b[2J\\x0a\xc3\xa9.npy', [6, 8] ", report.out)
        report = json.loads(self.run_lnorm("verify", x, y, "--json").out)
        self.assertEqual([report[name]["file"] for name in "xy"], ["x\ufffd.npy", y.decode()])
        self.refuse(1, "has no norm 'a\\x1b[2J\\x0ab'", "verify", "x.npy", "x.npy", "-m", self.model(), "-n",
                    "a\x1b[2J\nb")

    def model(self):
        header = b'{"norm.weight": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}'
        with open(self.path("one.safetensors"), "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + bytes(32))
        return "one.safetensors"

    def test_tensors_of_a_model(self):
        header = b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
        with open(self.path("m.safetensors"), "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + bytes(8))
        self.refuse(1, "'m.safetensors:a': expected the shape of 'x.npy', [6, 8], got [2]", "verify", "x.npy",
                    "m.safetensors:a")

    def test_refusals(self):
        self.save("other.npy", Array("f32", (6, 7), [0.0] * 42))
        self.save("transposed.npy", Array("f32", (8, 6), [0.0] * 48))
        with open(self.path("text.npy"), "w") as file:
            file.write("not an array")
        for status, message, *arguments in [
                (1, "'other.npy': expected the shape of 'x.npy', [6, 8], got [6, 7]", "x.npy", "other.npy"),
                (1, "'transposed.npy': expected the shape of 'x.npy', [6, 8], got [8, 6]", "x.npy", "transposed.npy"),
                (1, "'text.npy'", "x.npy", "text.npy"),
                (1, "'missing.npy'", "x.npy", "missing.npy"),
                (1, "'missing.npy'", "missing.npy", "y.npy"),
                (1, "--weight other.npy: Expected weight to be of same shape", "x.npy", "y.npy", "-w", "other.npy"),
                (2, "an argument is missing", "x.npy"),
                (2, "--max-ulp: expected a number from 0 on, got '-1'", "x.npy", "y.npy", "-u", "-1"),
                (2, "--max-ulp: expected a number from 0 on, got 'one'", "x.npy", "y.npy", "--max-ulp", "one")]:
            with self.subTest(arguments=arguments):
                self.refuse(status, message, "verify", *arguments)

    def test_help(self):
        text = self.succeed("verify", "--help").out.decode()
        self.assertIn("max(|y|, |weight|, |weight*xhat|, |bias|)", text)


if __name__ == "__main__":
    unittest.main()
