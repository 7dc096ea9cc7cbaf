"""bench/lnorm-bench: that it runs, that its JSON and its judgement are right, and what it refuses. No timing.

bench_smoke.py WORKERS: the directory with the benchmark's workers."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONT = ROOT / "bench" / "lnorm-bench"
CASES = Path(__file__).resolve().parent / "data" / "bench_smoke.toml"
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else ""

if sys.version_info < (3, 11):
    print("MISSING: Python 3.11, which lnorm-bench needs")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
from front import agree, cases, plot, verdict, workers  # noqa: E402


def front(*arguments):
    return subprocess.run([sys.executable, str(FRONT), "--build", BUILD, *arguments], capture_output=True, text=True,
                          timeout=600)


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.json = str(Path(cls.directory.name) / "run.json")
        cls.done = front("--case-file", str(CASES), "--peers", "loop,onednn", "--threads", "1,2", "--rounds", "1",
                         "--seconds", "0.001", "--json", cls.json)
        if cls.done.returncode == 0:
            cls.run_data = json.loads(Path(cls.json).read_text())

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def result(self, key, threads=1):
        found = [one for one in self.run_data["results"] if one["key"] == key and one["threads"] == threads]
        self.assertEqual(len(found), 1, key)
        return found[0]

    def test_every_case_and_thread_count_is_there(self):
        self.assertEqual(len(self.run_data["results"]), 9 + 8)  # rows with a stride: one thread only
        self.assertIn("| 9x70 rms stride 100 |", self.done.stdout.replace("  ", ""))

    def test_every_c_implementation_has_a_time(self):
        result = self.result("9x70 f32 forward")
        for name in ("lnorm", "plan", "memcpy", "loop"):
            self.assertGreater(result["times"][name]["best"], 0, name)
            self.assertLessEqual(result["times"][name]["best"], result["times"][name]["median"], name)

    def test_given_statistics_are_timed_where_peers_have_them(self):
        for name in ("saved", "fast-saved"):
            self.assertIn(name, self.result("9x70 f32 backward")["times"])
            self.assertNotIn(name, self.result("9x70 f32 forward")["names"])

    def test_results_agree(self):
        for result in self.run_data["results"]:
            for name, entry in result["times"].items():
                self.assertEqual(entry["mark"], "", f"{name}: {result['key']}: {entry['deviation']}")
            if "loop" in result["times"] and result["dtype"] == "f32":
                self.assertIsNotNone(result["times"]["loop"]["deviation"])

    def test_nothing_failed(self):
        for result in self.run_data["results"]:
            for name, reason in result["absent"].items():
                self.assertFalse(reason.startswith("FAILED"), f"{name}: {result['key']}: {reason}")

    def test_targets_are_judged(self):
        met = [target["met"] for target in self.result("9x70 f32 forward")["targets"]]
        self.assertEqual(met[:2], [True, True])
        self.assertEqual(len(met), 3)
        self.assertEqual(len(self.result("9x70 f32 forward", 2)["targets"]), 4)
        self.assertEqual([target["met"] for target in self.result("9x70 f32 backward")["targets"]], [False])

    def test_a_run_can_be_read_and_compared_again(self):
        again = front("--read", self.json, "--compare", self.json)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(self.done.stdout.strip(), again.stdout)
        self.assertIn("| 1.00 ", again.stdout)


@unittest.skipUnless(os.uname().machine == "x86_64", "only x86-64 has instruction sets to be held to")
class Held(unittest.TestCase):
    """--isa avx2, where the machine has it; the environment of those that are held."""

    def test_all_are_held(self):
        done = front("--case-file", str(CASES), "--peers", "loop", "--threads", "1", "--rounds", "1", "--seconds",
                     "0.001", "--cases", "9x70", "--isa", "avx2")
        if done.returncode:
            self.assertIn("this machine or build does not have it", done.stderr)
            return
        self.assertIn("All are held to avx2", done.stdout)
        self.assertRegex(done.stdout, "- lnorm: .* avx2,")
        self.assertIn("- loop: -O3 -ffast-math -march=x86-64-v3", done.stdout)
        self.assertNotIn("is not here", done.stderr)

    def test_variables(self):
        for name in ("lnorm", "onednn", "torch-kept"):
            made = workers.environment(name, 1, "avx2")
            self.assertEqual([made[key] for key in ("LNORM_ISA", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")],
                             ["avx2", "AVX2", "avx2"])

    def test_refusal(self):
        done = front("--isa", "avx2", "--peers", "numpy")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("numpy cannot be held to avx2", done.stderr)


class Judgement(unittest.TestCase):
    case = cases.Case("tiny", (8, 64), "f32")
    right = {"y": {"count": 3, "not_finite": 0, "magnitude": 6.0, "samples": [1.0, -2.0, 3.0]}}

    def mark(self, **changes):
        theirs = copy.deepcopy(self.right)
        theirs["y"].update(changes)
        return agree.judge(self.case, agree.deviation(self.right, theirs)[0])

    def test_marks(self):
        self.assertEqual(self.mark(), "")
        self.assertEqual(self.mark(samples=[1.0, -2.0, 3.000001]), "")
        self.assertEqual(self.mark(samples=[1.0, -2.001, 3.0]), "~")
        self.assertEqual(self.mark(samples=[1.0, 2.0, 3.0]), "!")
        self.assertEqual(self.mark(magnitude=3.0), "!")
        self.assertEqual(self.mark(not_finite=1), "!")
        self.assertEqual(self.mark(count=2), "!")
        self.assertEqual(agree.judge(self.case, agree.deviation(self.right, {})[0]), "!")

    def test_wrong_results_are_no_peer(self):
        entry = {"best": 1.0, "mark": "", "comparable": True}
        result = {"times": {"lnorm": dict(entry, best=2.0), "loop": dict(entry, best=0.5, comparable=False),
                            "onednn": entry}}
        self.assertEqual(verdict.best_peer(result), (1.0, "onednn"))

    def test_factor_of_an_instruction_set(self):
        entry = {"mark": "", "comparable": True}
        result = {"threads": 1, "times": {"lnorm": dict(entry, best=1.0), "loop": dict(entry, best=0.96)}}
        for isa, met in (("avx512", False), ("avx2", True)):
            target = verdict.judge_target("lnorm >= 1.0 x peer (avx2: 0.95)", result, None, isa)
            self.assertEqual(target["met"], met)


class Files(unittest.TestCase):
    def test_the_table_of_cases_is_understood(self):
        self.assertGreater(len(cases.read(ROOT / "bench" / "cases.toml")), 35)

    def test_a_plot_is_well_formed(self):
        import xml.etree.ElementTree as xml
        results = [{"columns": n, "traffic": 8 << 20, "times": {"lnorm": {"best": 1e-3 * n, "comparable": True}}}
                   for n in (1, 2, 4, 1 << 20)]
        root = xml.fromstring(plot.draw(results, "a < b", {1: 32768, 2: 1 << 19}))
        texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
        for expected in ("a < b", "row of L1", "row of L2", "lnorm"):
            self.assertIn(expected, texts)


class Refusals(unittest.TestCase):
    def check(self, message, *arguments):
        done = front(*arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_arguments(self):
        self.check("--cases: expected regimes", "--cases", "nonsense")
        self.check("--peers: expected some of", "--peers", "nonsense")
        self.check("expected numbers of threads", "--threads", "0")
        self.check("expected a number above 0", "--seconds", "-1")
        self.check("Expecting value", "--compare", os.devnull)
        self.check("--build: expected a directory", "--build", "/nonexistent")

    def test_another_format(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"format": 0}')
            file.flush()
            self.check("expected what --json of this version writes", "--read", file.name)

    def test_case_files(self):
        for text, message in (('[[case]]\nregime="a"\nshape="2x2"\ndtypes=["f32"]\nspeed=1', "unknown key 'speed'"),
                              ('[[case]]\nregime="a"\nshape="2x"\ndtypes=["f32"]', "expected extents"),
                              ('[[case]]\nregime="a"\nshape="2x2"\ndtypes=["f8"]', "dtypes: expected some of"),
                              ('[[case]]\nregime="a"\nshape="2x2"\ndtypes=["f32"]\ntargets=["fast"]', "not understood"),
                              ("[[case", "Expected")):
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                with self.assertRaisesRegex(SystemExit, message):
                    cases.read(file.name)


if __name__ == "__main__":
    unittest.main()
