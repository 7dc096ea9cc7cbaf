"""lnorm explain: pictures, words, values, SVG."""

import itertools
import math
import os
import random
import re
import statistics
import subprocess
import unittest
import xml.dom.minidom

from program import PROGRAM, Array, ProgramTest, encode, npy, npy_header
from terminal import run_in_terminal

ASCII = {"LC_ALL": "C", "NO_COLOR": ""}
UTF8 = {"LC_ALL": "C.UTF-8", "NO_COLOR": ""}

ROWS = """\
 [0]            [1]            [2]            [3]
+-----------+  +-----------+  +-----------+  +-----------+
| 0   0   0 |  | 2   2   2 |  | 4   4   4 |  | 6   6   6 |
+-----------+  +-----------+  +-----------+  +-----------+
| 1   1   1 |  | 3   3   3 |  | 5   5   5 |  | 7   7   7 |
+-----------+  +-----------+  +-----------+  +-----------+
"""
MATRICES = """\
 [0]            [1]            [2]            [3]
┌───────────┐  ┌───────────┐  ┌───────────┐  ┌───────────┐
│ 0   0   0 │  │ 1   1   1 │  │ 2   2   2 │  │ 3   3   3 │
│ 0   0   0 │  │ 1   1   1 │  │ 2   2   2 │  │ 3   3   3 │
└───────────┘  └───────────┘  └───────────┘  └───────────┘
"""
ALL = """\
 [0]            [1]            [2]            [3]
┌────────────────────────────────────────────────────────┐
│ 0   0   0      0   0   0      0   0   0      0   0   0 │
│ 0   0   0      0   0   0      0   0   0      0   0   0 │
└────────────────────────────────────────────────────────┘
"""
COLUMNS = """\
┌───┬───┐
│ 0 │ 1 │
│ 0 │ 1 │
└───┴───┘
"""
BATCH = """\
 [0,0]      [0,1]
┌───────┐  ┌───────┐
│ 0   0 │  │ 1   1 │
│[1,0]  │  │[1,1]  │
│ 0   0 │  │ 1   1 │
└───────┘  └───────┘
"""


def group_numbers(shape, kind, axes=(), groups=1):
    """The group of each element, in row-major order, by the definitions."""
    key = {"layer": lambda index: tuple(i for a, i in enumerate(index) if a not in axes),
           "batch": lambda index: index[1],
           "instance": lambda index: index[:2],
           "group": lambda index: (index[0], index[1] * groups // shape[1])}[kind]
    keys = [key(index) for index in itertools.product(*map(range, shape))]
    order = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [order[key] for key in keys]


def picture(out):
    """The lines of the picture, labels removed."""
    lines = out.split("\n\n")[1].split("\n")
    first = next(i for i, line in enumerate(lines) if re.match(r"[+┌ ] ?[-─\[]", line))
    return [re.sub(r"\[[\d,]+\]", lambda match: " " * len(match[0]), line) for line in lines[first:]]


class Explain(ProgramTest):
    def explain(self, *arguments, environment=None, **options):
        result = self.succeed("explain", *arguments, environment=environment or ASCII, **options)
        self.assertEqual(result.error, "")
        return result.out.decode()

    def said(self, out):
        return re.sub(r"\s+", " ", out)

    # -- Pictures

    def test_pictures(self):
        for expected, environment, arguments in [
                (ROWS, ASCII, ("4,2,3", "--normalized-shape", "3")), (ROWS, ASCII, ("4,2,3",)),
                (MATRICES, UTF8, ("4,2,3", "-s", "2,3")), (ALL, UTF8, ("4,2,3", "-s", "4,2,3")),
                (COLUMNS, UTF8, ("2,2", "--axes", "0")), (BATCH, UTF8, ("2,2,1,2", "--op", "batch"))]:
            self.assertIn("\n" + expected + "\n", self.explain(*arguments, environment=environment))

    def test_utf8_where_the_first_variable_that_is_set_says_so(self):
        for utf8, values in [(True, ("", "", "en_GB.UTF-8")), (True, ("", "de_DE.utf8", "C")),
                             (False, ("C", "", "C.UTF-8")), (False, ("", "", "")),
                             (False, ("POSIX", "C.UTF-8", "C.UTF-8"))]:
            out = self.explain("2,2", environment=dict(zip(("LC_ALL", "LC_CTYPE", "LANG"), values)))
            self.assertEqual("┌" in out, utf8, values)
            self.assertEqual(out.isascii(), not utf8)

    def check_picture(self, shape, arguments, numbers):
        out = self.explain(",".join(map(str, shape)), *arguments)
        lines = [line for line in picture(out) if re.search(r"\d", line)]
        padded = (1,) * (4 - len(shape)) + shape
        right, rows, columns = padded[1:] if len(shape) < 5 else shape[-3:]
        down = math.prod(shape) // (right * rows * columns)
        at = lambda d, r, i, j: numbers[((d * right + r) * rows + i) * columns + j]
        for line, (d, i) in zip(lines, itertools.product(range(down), range(rows)), strict=True):
            found = list(re.finditer(r"\d+", line))
            expected = [at(d, r, i, j) for r in range(right) for j in range(columns)]
            self.assertEqual([int(number[0]) for number in found], expected, out)
            for left, next_one in itertools.pairwise(found):
                self.assertEqual("|" in line[left.end():next_one.start()], left[0] != next_one[0], out)

    def test_numbers_and_outlines_are_those_of_the_definition(self):
        draw = random.Random(4)
        for _ in range(60):
            ndim = draw.randint(1, 5)
            shape = tuple(draw.randint(1, 2 if ndim == 5 else 3) for _ in range(ndim))  # all of it is shown
            axes = draw.sample(range(len(shape)), draw.randint(1, len(shape)))
            self.check_picture(shape, ("--axes", ",".join(map(str, axes))), group_numbers(shape, "layer", axes))
        for kind, options in [("batch", ()), ("instance", ()), ("group", ("--groups", "2"))]:
            for shape in [(2, 4), (2, 4, 3), (2, 4, 2, 3)]:
                self.check_picture(shape, ("--op", kind, *options), group_numbers(shape, kind, groups=2))

    def test_large_arrays_fit_the_width(self):
        draw = random.Random(5)
        for _ in range(40):
            shape = [draw.choice([1, 2, 5, 64, 1000, 10**6]) for _ in range(draw.randint(1, 6))]
            axis = draw.randrange(len(shape))
            if math.prod(shape) >= 2**60:
                continue
            out = self.explain(",".join(map(str, shape)), "--axes", str(axis))
            self.assertLessEqual(max(map(len, picture(out))), 80, out)
            self.assertLessEqual(len(picture(out)), 46, out)
            self.assertEqual("Only a part is shown" in out, bool(re.search(r"\.\.|:", "".join(picture(out)))))
        out = self.explain("12", "-a", "-1")
        self.assertNotIn("..", out)
        self.assertIn("| 0   0   0   0   0   0   0   0   0   0   0   0 |", out)
        self.assertRegex(self.explain("1000,2", "-a", "0"), r"\n\| 0 \| 1 \|\n\| : \| : \|\n\| 0 \| 1 \|\n")

    def test_width_of_the_terminal(self):
        for columns in (40, 80, 132):
            out = run_in_terminal("explain", "8,64,768", columns=columns, environment={**UTF8, "NO_COLOR": "1"})
            widest = max(map(len, out.split("\n")))
            self.assertTrue(columns - 24 < widest <= columns, out)

    def test_what_is_left_out_at_the_edge_belongs_where_it_lies(self):
        narrow = {"columns": 40, "environment": {"LC_ALL": "C", "NO_COLOR": "1"}}
        for expected, arguments in [
                ("\n+------------------+\n|      0        ...|   ...\n", ("1000000,1000000,1000",)),
                ("\n+--------------------------+\n|   0    ...    0       ...|\n",
                 ("10000,100000,1000000", "-a", "0,2")),
                ("\n+----------+   +----------+\n|    0     |...|   999    |   ...\n|    0     |...|   999",
                 ("100000,100000,1000", "-a", "1"))]:
            self.assertIn(expected, run_in_terminal("explain", *arguments, **narrow))

    def test_colour_on_a_terminal_only(self):
        arguments = ("explain", "4,2,3")
        self.assertNotIn("\033", self.explain(*arguments[1:]))
        coloured = run_in_terminal(*arguments, environment=ASCII)
        self.assertEqual(len(set(re.findall(r"\033\[30;48;5;\d+m", coloured))), 8)
        self.assertEqual(re.sub(r"\033\[[\d;]*m", "", coloured), self.explain(*arguments[1:]))
        for line in coloured.split("\n"):
            self.assertTrue("\033" not in line or line.rindex("\033[0m") > line.rindex("\033[30"), repr(line))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", run_in_terminal(*arguments, environment=environment))

    # -- Words

    def test_counts(self):
        for shape, groups, elements, parameters in [("3", 8, 3, 6), ("2,3", 4, 6, 12), ("4,2,3", 1, 24, 48)]:
            out = self.said(self.explain("4,2,3", "-s", shape))
            plural = "" if groups == 1 else "s"
            self.assertIn(f"statistics {groups} mean{plural} and {groups} variance{plural} ", out)
            self.assertIn(f"groups {groups} of {elements} elements each; " if groups > 1 else
                          f"groups 1: all {elements} elements share a mean and a variance", out)
            listed = f"[{shape.replace(',', ', ')}]"
            self.assertIn(f"parameters {parameters}: weight {listed} and bias {listed}", out)
            self.assertIn(f"mean = sum(x)/{elements}, variance = sum((x - mean)^2)/{elements}", out)
            self.assertIn(f"normalized_shape = {listed}", out)

    def test_members(self):
        for text, arguments in [("x[i, j, :]", ("4,2,3",)), ("x[:, i, :]", ("4,2,3", "-a", "0,2")),
                                ("x[n, 2g:2g+2, :]", ("4,6,3", "--op", "group", "-g", "3")),
                                ("x[n, g:g+1]", ("4,6", "--op", "group", "-g", "6")),
                                ("x[n, c, :]", ("4,6,3", "--op", "instance")),
                                ("x[:, c, :]", ("4,6,3", "--op", "batch"))]:
            self.assertIn(f" each; {text} share", self.explain(*arguments))

    def test_title_and_layout(self):
        for text, arguments in [
                ("Layer norm of [4, 2, 3] over axes 0 and 2 Blocks to the right: axis 0; in a block, rows: axis 1,",
                 ("4,2,3", "-a", "0,2")),
                ("RMS norm of [2] over axis 0: normalized_shape = [2] Columns: axis 0.", ("2", "--op", "rms")),
                ("Group norm of [2, 4, 3]: each sample's 4 channels (axis 1) in groups of 2",
                 ("2,4,3", "--op", "group", "-g", "2")),
                ("Instance norm of [2, 4, 3] over axis 2", ("2,4,3", "--op", "instance")),
                ("Instance norm of [2, 4]: every element alone Rows: axis 0, columns: axis 1.",
                 ("2,4", "--op", "instance")),
                ("Batch norm of [2, 4, 3, 3] over axes 0, 2 and 3 Blocks downwards: axis 0; to the right: axis 1; in a",
                 ("2,4,3,3", "--op", "batch")),
                ("Blocks downwards: axes 0, 1 and 2; to the right: axis 3; in a block, rows: axis 4, columns: axis 5.",
                 ("1,2,1,2,1,2",))]:
            self.assertIn(text, self.said(self.explain(*arguments)))

    def test_what_depends_on_the_batch(self):
        for shape, arguments, expected in [
                ("4,2,3", (), "each sample (index of axis 0) has statistics of its own"),
                ("4,2,3", ("-a", "0"), "axis 0 is normalised over. If it is the batch, a sample's result changes"),
                ("4,2,3", ("--op", "instance"), "its result is the same in any batch, in training and at inference."),
                ("4,2,3", ("--op", "group", "-g", "1"), "its result is the same in any batch, in training and at")]:
            out = self.said(self.explain(shape, *arguments))
            self.assertIn(expected, out)
            self.assertNotIn("running", out)
        out = self.said(self.explain("2,4,3,3", "--op", "batch", "--eps", "0.001"))
        for part in ["a sample's result changes with the others in its batch. Kept for inference, each of shape [4]:",
                     "running_mean <- (1 - q)*running_mean + q*mean", "(1 - q)*running_var + q*variance*18/17,",
                     "y = (x - running_mean)/sqrt(running_var + 0.001)*weight + bias",
                     "parameters 8: weight [4] and bias [4], one of each per channel"]:
            self.assertIn(part, out)
        self.assertIn("running_var stays: 1 element has no unbiased variance", self.explain("1,4", "--op", "batch"))

    def test_kinds(self):
        rms = self.explain("4,3", "--op", "rms")
        self.assertIn("statistics   4 mean squares", rms)
        self.assertIn("sqrt(sum(x^2)/3 + 1.19209e-07)*weight; no mean is removed", rms)
        self.assertIn("parameters   3: weight [3], the same in every group; no bias", rms)
        self.assertIn("the same as  --op group --groups 4", self.explain("2,4,3", "--op", "instance"))
        self.assertIn("the same as  --op instance", self.explain("2,4,3", "--op", "group", "-g", "4"))
        self.assertIn("compare      layer norm over axes 1 and 2", self.explain("2,4,3", "--op", "group", "-g", "1"))
        self.assertIn("every variance is 0, every result is the bias", self.explain("2,4", "--op", "instance"))

    def test_no_elements(self):
        for shape, words in [("0", "of no elements: NaN"), ("5,0", "statistics   5 means and 5 variances"),
                             ("0,3", "statistics   0 means and 0 variances")]:
            out = self.explain(shape, "--svg", "empty.svg")
            self.assertIn("The array has no elements.\n", out)
            self.assertIn(words, out)
            xml.dom.minidom.parse(self.path("empty.svg"))

    # -- Values

    def test_values(self):
        self.save("x.npy", Array("f32", (2, 3), [1, 2, 3, 4, 5, 6.5]))
        expected = ("\nGroup 0: x[0, :], mean 2, variance 0.666667\n"
                    "  x         1         2         3\n  y  -1.22474         0   1.22474\n"
                    "\nGroup 1: x[1, :], mean 5.16667, variance 1.05556\n"
                    "  x          4          5        6.5\n  y   -1.13554  -0.162221    1.29777\n")
        self.assertTrue(self.explain("x.npy").endswith(expected))
        self.assertTrue(self.explain("-", stdin=npy(self.load("x.npy"))).endswith(expected))
        with open(self.path("f.npy"), "wb") as file:
            file.write(npy_header("<f4", (2, 3), True) + encode(Array("f32", (6,), [1, 4, 2, 5, 3, 6.5])))
        self.assertTrue(self.explain("f.npy").endswith(expected))

    def test_values_of_every_kind(self):
        draw = random.Random(6)
        shape = (2, 4, 3)
        values = [round(draw.gauss(1, 3), 3) for _ in range(24)]
        self.save("x.npy", Array("f64", shape, values))
        for kind, arguments in [("layer", ("-a", "0,2")), ("batch", ("--op", "batch")),
                                ("instance", ("--op", "instance")), ("group", ("--op", "group", "-g", "2"))]:
            numbers = group_numbers(shape, kind, (0, 2), 2)
            blocks = self.explain("x.npy", "--eps", "0.5", *arguments).split("\nGroup ")[1:]
            self.assertEqual(len(blocks), max(numbers) + 1)
            for group, block in enumerate(blocks):
                x = [value for value, number in zip(values, numbers) if number == group]
                mean, variance = statistics.fmean(x), statistics.pvariance(x)
                self.assertIn(f"mean {mean:.6g}, variance {variance:.6g}\n", block)
                for letter, row in (("x", x), ("y", [(value - mean) / math.sqrt(variance + 0.5) for value in x])):
                    shown = " ".join(re.findall(rf"(?m)^  {letter} +(.*)$", block)).split()
                    self.assertEqual(shown, [f"{value:.6g}" for value in row])

    def test_rms_values(self):
        self.save("x.npy", Array("f32", (1, 2), [3, 4]))
        out = self.explain("x.npy", "--op", "rms", "--eps", "0")
        self.assertIn("mean square 12.5\n  x         3         4\n  y  0.848528   1.13137\n", out)

    def test_large_files_show_the_first_and_the_last_group(self):
        self.save("x.npy", Array("f16", (50, 40), [i % 40 for i in range(2000)]))
        out = self.explain("x.npy")
        self.assertEqual(re.findall(r"Group (\d+): (x\[\d+, :\]), mean ([\d.]+)", out),
                         [("0", "x[0, :]", "19.5"), ("49", "x[49, :]", "19.5")])
        self.assertIn("\n...\n", out)
        self.assertRegex(out, r"  x .* \.\.\. +39\n")

    def test_too_large_to_read(self):
        path = self.path("x.npy")
        with open(path, "wb") as file:
            file.write(npy_header("<f4", (1 << 23,)))
            file.truncate(file.tell() + (4 << 23))
        self.assertIn("8388608 elements: too many to read here", self.explain("x.npy"))

    def test_tensor_of_a_model(self):
        header = b'{"a.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
        with open(self.path("m.safetensors"), "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + encode(Array("f32", (2,), [1, 3])))
        self.assertIn("mean 2, variance 1\n", self.explain("m.safetensors:a.weight"))

    def test_raw_bfloat16(self):
        with open(self.path("x.npy"), "wb") as file:
            file.write(npy_header("|V2", (2,)) + encode(Array("bf16", (2,), [1, 3])))
        self.assertIn("mean 2, variance 1\n", self.explain("x.npy", "--bf16"))
        self.refuse(1, "x.npy", "explain", "x.npy")

    # -- SVG

    def svg(self, *arguments):
        self.explain(*arguments, "--svg", "p.svg")
        self.assertEqual(self.files(), ["p.svg"])
        return xml.dom.minidom.parse(self.path("p.svg"))

    def box(self, node):
        """left, top, right, bottom"""
        x, y, width, height = (float(node.getAttribute(name) or 0) for name in ("x", "y", "width", "height"))
        return x, y, x + width, y + height

    def test_svg(self):
        for arguments in [("4,2,3", "-s", "2,3"), ("2,4,2,3", "--op", "group", "-g", "2"), ("3", "--op", "rms")]:
            document = self.svg(*arguments)
            texts = [node.firstChild.data for node in document.getElementsByTagName("text")]
            numbers = [text for node, text in zip(document.getElementsByTagName("text"), texts)
                       if "number" in node.getAttribute("class")]
            drawn = re.findall(r"\d+", "\n".join(picture(self.explain(*arguments))))
            self.assertEqual(numbers, drawn)
            self.assertIn("formula", texts)
            cells = [self.box(node) for node in document.getElementsByTagName("rect")
                     if node.getAttribute("class") == "element"]
            for left, other in itertools.combinations(cells, 2):
                apart = any(left[i] >= other[i + 2] or other[i] >= left[i + 2] for i in (0, 1))
                self.assertTrue(apart, "cells overlap")
            fills = {node.getAttribute("fill") for node in document.getElementsByTagName("rect")}
            self.assertEqual(len(fills - {""}), len(set(numbers)))
            for node in document.getElementsByTagName("text"):
                x, y = float(node.getAttribute("x")), float(node.getAttribute("y"))
                if "number" in node.getAttribute("class"):
                    self.assertTrue(any(c[0] < x < c[2] and c[1] < y < c[3] for c in cells), "a number beside its cell")
            root = document.documentElement
            width, height = (float(root.getAttribute(name)) for name in ("width", "height"))
            for node in document.getElementsByTagName("rect"):
                self.assertLessEqual(self.box(node)[2], width)
                self.assertLessEqual(self.box(node)[3], height)

    def test_svg_escapes_and_knows_both_colour_schemes(self):
        self.svg("2,4,3", "--op", "batch")
        with open(self.path("p.svg"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("running_mean &lt;- (1 - q)", text)
        self.assertIn("prefers-color-scheme: dark", text)

    def test_svg_does_not_depend_on_the_terminal(self):
        run_in_terminal("explain", "8,64,768", "--svg", self.path("a.svg"), columns=200)
        self.explain("8,64,768", "--svg", "b.svg", environment=UTF8)
        with open(self.path("a.svg"), "rb") as a, open(self.path("b.svg"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_svg_on_standard_output_is_alone(self):
        out = self.explain("4,2,3", "--svg=-")
        xml.dom.minidom.parseString(out)
        self.assertEqual(self.files(), [])

    def test_svg_that_cannot_be_written(self):
        result = self.run_lnorm("explain", "2,2", "--svg", "no/p.svg")
        self.assertEqual(result.status, 1)
        self.assertIn("lnorm explain: --svg: 'no/p.svg'", result.error)
        self.assertEqual(self.run_lnorm("explain", "2,2", "--svg", "/dev/full").status, 1)
        os.mkdir(self.path("directory"))
        self.assertEqual(self.run_lnorm("explain", "2,2", "--svg", "directory").status, 1)
        self.assertEqual(self.files(), ["directory"])

    def test_a_file_that_was_there_stays_after_a_mistake(self):
        with open(self.path("p.svg"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.refuse(1, "Given normalized_shape=[5]", "explain", "2,2", "-s", "5", "--svg", "p.svg")
        with open(self.path("p.svg"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    # -- Refusals

    def test_refusals(self):
        result = self.refuse(1, "", "explain", "4,2,3", "--normalized-shape", "2")
        self.assertEqual(result.error, "lnorm explain: --normalized-shape 2: Given normalized_shape=[2], expected "
                                       "input with shape [*, 2], but got input of size[4, 2, 3]\n")
        for status, message, arguments in [
                (2, "an argument is missing; expected SHAPE|FILE", ()),
                (2, "3: one argument too many", ("4,2", "3")),
                (2, "SHAPE: expected at most 16 integers, as 4,2,3, got '4,,2'; a file of that name is ./4,,2",
                 ("4,,2",)),
                (2, "SHAPE: expected at most 16 integers", (",".join("1" * 17),)),
                (2, "SHAPE: expected at most 16 integers", ("99999999999999999999",)),
                (2, "'4,a,3': expected a shape of digits and commas, as 4,2,3, or a file; no file has that name",
                 ("4,a,3",)),
                (2, "'[4, 2]': expected a shape", ("[4, 2]",)),
                (1, "'4.npy': cannot be opened for reading", ("4.npy",)),
                (2, "--op: expected layer, rms, group, instance or batch, got 'none'", ("2,2", "--op", "none")),
                (2, "--op group: expected --groups G, too", ("2,2", "--op", "group")),
                (2, "--axes: for --op layer and rms only", ("2,2", "--op", "batch", "-a", "1")),
                (2, "--normalized-shape and --axes: expected one of the two", ("2,2", "-a", "1", "-s", "2")),
                (2, "--weight: no such option", ("2,2", "--weight", "w.npy")),
                (1, "lnorm explain: --axes 2: expected axes from -2 to 1, got 2\n", ("2,2", "-a", "2")),
                (1, "lnorm explain: --axes 1,-1: expected each axis once, got -1 again\n", ("2,2", "-a", "1,-1")),
                (1, "--groups 2: Expected number of channels in input to be divisible by num_groups",
                 ("2,3", "--op", "group", "-g", "2")),
                (1, "'2': Expected at least 2 dimensions", ("2", "--op", "batch")),
                (1, "'missing.npy'", ("missing.npy",)),
                (1, "''", ("",)),
                (1, "2^", ("4000000000,4000000000",))]:
            self.refuse(status, message, "explain", *arguments)

    def test_damaged_file(self):
        with open(self.path("x.npy"), "wb") as file:
            file.write(npy(Array("f32", (2, 3), [0] * 6))[:-1])
        self.refuse(1, "truncated", "explain", "x.npy")
        self.save("s.npy", Array("f32", (), [0]))
        self.refuse(1, "expected at least 1 dimension", "explain", "s.npy")

    def test_unwritable_output(self):
        for arguments in [("4,2,3",), ("4,2,3", "--svg", "p.svg")]:
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, "explain", *arguments], stdout=full, stderr=subprocess.PIPE,
                                      cwd=self.directory, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, b"lnorm explain: cannot write to standard output: "
                                                                 b"No space left on device\n"))
            self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
