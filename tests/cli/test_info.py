"""lnorm info."""

import os
import pathlib
import re
import unittest

from program import ProgramTest


class Info(ProgramTest):
    def info(self, **options):
        out = self.succeed("info", **options).out.decode()
        return dict(re.match(r"(\S+) +(.*)", line).groups() for line in out.splitlines())

    def test_rows(self):
        rows = self.info(environment={"LNORM_ISA": ""})
        self.assertEqual(list(rows)[:6], ["version", "arithmetic", "compiled", "available", "chosen", "cores"])
        self.assertEqual("lnorm " + rows["version"], self.succeed("--version").out.decode().split("\n")[0])
        self.assertTrue(rows["arithmetic"].startswith("1: "))
        compiled, available = rows["compiled"].split(", "), rows["available"].split(", ")
        self.assertTrue(set(compiled) <= {"scalar", "neon", "sse2", "avx2", "avx512"}, compiled)
        self.assertEqual(available, [name for name in compiled if name in available])
        self.assertEqual(rows["chosen"], available[-1] + ", the widest that is available")
        self.assertEqual(rows["licence"], "MIT")
        self.assertIn("man lnorm", rows["documentation"])

    def test_every_available_set_can_be_chosen(self):
        for name in self.info()["available"].split(", "):
            self.assertEqual(self.info(environment={"LNORM_ISA": name})["chosen"], name + ", by LNORM_ISA")

    def test_a_set_that_is_not_there(self):
        result = self.run_lnorm("info", environment={"LNORM_ISA": "nonsense"})
        self.assertEqual((result.status, result.error), (1, "lnorm info: LNORM_ISA: expected an instruction set that "
                                                            "is available, got 'nonsense'\n"))
        self.assertRegex(result.out.decode(), r"(?m)^chosen +none, by LNORM_ISA$")

    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "no affinity here")
    def test_cores_are_those_that_the_process_may_use(self):
        all_of_them = os.sched_getaffinity(0)
        self.assertEqual(self.info()["cores"], str(len(all_of_them)))
        self.assertEqual(self.info(preexec_fn=lambda: os.sched_setaffinity(0, {min(all_of_them)}))["cores"], "1")

    def test_caches_are_those_of_one_core(self):
        def caches():
            for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu%d/cache" % core).glob("index*")):
                kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
                if kind != "Instruction":
                    yield f"L{level} {size.removesuffix('K')} KiB"

        core = min(os.sched_getaffinity(0))
        row = self.info(preexec_fn=lambda: os.sched_setaffinity(0, {core})).get("caches", "")
        self.assertEqual(row, ", ".join(caches()))

    def test_refusals(self):
        self.refuse(2, "x: one argument too many", "info", "x")
        self.refuse(2, "--all: no such option", "info", "--all")


if __name__ == "__main__":
    unittest.main()
