"""lnorm bench, and --threads of the other verbs."""

import os
import random
import unittest

from program import Array, ProgramTest, to_f32


class Bench(ProgramTest):
    def rows(self, *arguments, **options):
        lines = self.succeed("bench", *arguments, "--seconds", "0", **options).out.decode().splitlines()
        self.assertRegex(lines[0], r"^f\d\d \[|^bf16 \[")
        return lines, [line for line in lines if line.startswith(("memcpy", "plain", "lnorm"))]

    def test_the_table(self):
        lines, rows = self.rows("6,40", "--threads", "2")
        self.assertIn("f32 [6, 40], 6 statistics of 40 elements", lines[0])
        self.assertEqual([row[:28].split() for row in rows],
                         [["memcpy", "1"], ["plain", "loops", "in", "f32", "1"], ["lnorm", "forward", "1"],
                          ["lnorm", "forward", "2"], ["lnorm", "backward", "1"], ["lnorm", "backward", "2"]])
        for row in rows:
            time, median, rate, ratio = row[28:].replace("(", " ").replace(")", " ").split()
            self.assertGreater(float(time), 0)
            self.assertLessEqual(float(time), float(median) * 1.001)
            self.assertGreaterEqual(float(rate), 0)
            self.assertGreaterEqual(float(ratio), 0)
        self.assertTrue(rows[0].endswith(" 1.00"))

    def test_one_core_has_no_second_line(self):
        one = min(os.sched_getaffinity(0))
        _, rows = self.rows("6,40", preexec_fn=lambda: os.sched_setaffinity(0, {one}))
        self.assertEqual([row[:28].split() for row in rows if row.startswith("lnorm")],
                         [["lnorm", "forward", "1"], ["lnorm", "backward", "1"]])

    def test_operations_and_types(self):
        for arguments, statistics in ((("2,4,3,5", "--op", "group", "--groups", "2"), "4 statistics of 30"),
                                      (("2,4,3,5", "--op", "batch"), "4 statistics of 30"),
                                      (("2,4,3,5", "--op", "instance"), "8 statistics of 15"),
                                      (("5,4", "--axes", "0"), "4 statistics of 5"),
                                      (("4,2,3", "-s", "2,3"), "4 statistics of 6"),
                                      (("7", "--op", "rms"), "1 statistics of 7")):
            for dtype in ("f64", "f32", "f16", "bf16"):
                lines, rows = self.rows(*arguments, "--dtype", dtype, "--threads", "1")
                self.assertIn(f"{dtype} [", lines[0])
                self.assertIn(statistics, lines[0])
                self.assertEqual([row.split()[0] for row in rows if not row.startswith("plain")],
                                 ["memcpy", "lnorm", "lnorm"])
            self.assertEqual("with dweight)" in lines[-1], "rms" in arguments)

    def test_refusals(self):
        self.refuse(2, "'4,x': expected a shape", "bench", "4,x")
        self.refuse(2, "'4,0': expected a shape", "bench", "4,0")
        self.refuse(2, "--threads: expected an integer from 1 on, got '0'", "bench", "4", "--threads", "0")
        self.refuse(2, "--threads: expected at most 4096, got 5000", "bench", "4", "--threads", "5000")
        self.refuse(2, "--seconds: expected a number from 0 on, got '-1'", "bench", "4", "--seconds", "-1")
        self.refuse(1, "too many elements", "bench", "4000000000,4000000000,4")
        self.refuse(1, "not enough memory", "bench", "4000000000,1000000000")
        self.refuse(1, "--normalized-shape 2: Given normalized_shape=[2]", "bench", "4,2,3", "-s", "2")


class Threads(ProgramTest):
    def test_the_same_bits_with_any_number(self):
        draw = random.Random(1)
        x = Array("f32", (300, 257), [to_f32(draw.gauss(1, 2)) for _ in range(300 * 257)])
        self.save("x.npy", x)
        self.save("dy.npy", x._replace(values=x.values[::-1]))
        for threads in ("1", "2", "3"):
            self.succeed("apply", "x.npy", "-o", f"y{threads}.npy", "--threads", threads)
            self.succeed("grad", "x.npy", "dy.npy", "--dx", f"dx{threads}.npy", "--dweight", f"dw{threads}.npy",
                         "--threads", threads)
        for name in ("y", "dx", "dw"):
            results = [open(self.path(f"{name}{threads}.npy"), "rb").read() for threads in "123"]
            self.assertEqual(results[0], results[1])
            self.assertEqual(results[0], results[2])


if __name__ == "__main__":
    unittest.main()
