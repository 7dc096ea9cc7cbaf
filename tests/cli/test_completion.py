"""completions/lnorm.bash, run in bash."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from program import PROGRAM, ProgramTest
from test_list import MODEL, safetensors

SCRIPT = Path(__file__).resolve().parents[2] / "completions" / "lnorm.bash"

# What readline does with the words of a command line, "=" being one of its own.
ASK = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_lnorm
printf '%s\\n' "${COMPREPLY[@]}"
"""


@unittest.skipUnless(shutil.which("bash"), "no bash here")
class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ("x.npy", "y.npy", "notes.txt", "p.svg"):
            Path(self.path(name)).touch()
        os.mkdir(self.path("data"))
        with open(self.path("m.safetensors"), "wb") as file:
            file.write(safetensors(MODEL))

    def complete(self, *words):
        done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", str(SCRIPT), PROGRAM, *words], capture_output=True,
                              cwd=self.directory, env={**os.environ, "LC_ALL": "C"}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return sorted(done.stdout.decode().split())

    def test_it_is_registered(self):
        done = subprocess.run(["bash", "--norc", "-c", 'source "$1"; complete -p lnorm', "bash", str(SCRIPT)],
                              capture_output=True, check=True)
        self.assertIn(b"-F _lnorm lnorm", done.stdout)

    def test_verbs(self):
        verbs = ["apply", "bench", "explain", "grad", "info", "list", "verify"]
        self.assertEqual(self.complete(""), ["--help", "--version", *verbs])
        self.assertEqual(self.complete("ex"), ["explain"])

    def test_options_are_the_verb_s_own(self):
        self.assertEqual(self.complete("list", "--"), ["--all", "--help"])
        self.assertEqual(self.complete("info", "-"), ["--help", "-h"])
        self.assertIn("--normalized-shape", self.complete("explain", "4,2", "--no"))
        self.assertNotIn("--output", self.complete("explain", "--"))
        self.assertIn("--output", self.complete("apply", "--"))

    def test_values(self):
        self.assertEqual(self.complete("apply", "--op", ""), ["batch", "group", "instance", "layer", "rms"])
        self.assertEqual(self.complete("apply", "--op", "=", "ba"), ["batch"])
        self.assertEqual(self.complete("apply", "--op", "="), ["batch", "group", "instance", "layer", "rms"])
        self.assertEqual(self.complete("grad", "-t", ""), ["bf16", "f16", "f32", "f64"])
        self.assertEqual(self.complete("explain", "--axes", ""), [])

    def test_files_by_extension(self):
        self.assertEqual(self.complete("apply", ""), ["data", "m.safetensors", "x.npy", "y.npy"])
        self.assertEqual(self.complete("apply", "--weight", "x"), ["x.npy"])
        self.assertEqual(self.complete("apply", "--mean", ""), ["data", "x.npy", "y.npy"])
        self.assertEqual(self.complete("list", ""), ["data", "m.safetensors"])
        self.assertEqual(self.complete("apply", "-m", ""), ["data", "m.safetensors"])
        self.assertEqual(self.complete("explain", "--svg", ""), ["data", "p.svg"])
        self.assertEqual(self.complete("info", ""), [])

    def test_names_of_norms(self):
        names = ["encoder.0.LayerNorm", "final_norm"]
        self.assertEqual(self.complete("apply", "--model", "m.safetensors", "--name", ""), names)
        self.assertEqual(self.complete("apply", "--model", "=", "m.safetensors", "--name", "=", "f"), names[1:])
        self.assertEqual(self.complete("apply", "--name", ""), [])


if __name__ == "__main__":
    unittest.main()
