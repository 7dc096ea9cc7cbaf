"""The program while calls of the C library fail on purpose (tests/faults): every allocation once, every read, write,
flush and rename, threads that cannot be started, signals in the middle. Whatever happens, a message of one line, the
right status, no file left over, the inputs untouched, and under the output's name the old file or the whole new one.

LNORM_FAULTS is the path of the library that makes them fail; it is built where the C library is glibc and nothing is
sanitized."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from norms import pattern_array
from program import PROGRAM, ProgramTest, encode

FAULTS = os.environ.get("LNORM_FAULTS")
TEMPORARY = os.environ.get("TMPDIR") or "/tmp"
SHORT = 0
DETOUR = {"LNORM_CLI_BUDGET": "4000"}
APPLY = ["apply", "x.npy", "-o", "y.npy", "--mean", "m.npy", "--model", "model.safetensors", "--name", "a.norm",
         "--threads", "3"]
RUNS = {  # arguments, environment
    "apply": (APPLY, {}),
    "apply by a detour": (["apply", "x.npy", "-o", "y.npy", "--axes", "0", "--threads", "1"], DETOUR),
    "apply to a stream": (["apply", "x.npy", "-o", "-", "--axes", "0", "--threads", "1"], DETOUR),
    "grad": (["grad", "x.npy", "x.npy", "--dx", "y.npy", "--dweight", "m.npy", "--threads", "2"], {}),
    "verify": (["verify", "x.npy", "n.npy"], {}),
    "verify --json": (["verify", "x.npy", "n.npy", "--json"], {}),
    "explain": (["explain", "40,600,7", "--axes", "0,2", "--svg", "y.npy"], {}),
    "list": (["list", "model.safetensors", "--all"], {}),
    "info": (["info"], {}),
}
OPTIONAL = rb"(?m)^caches .*\n"  # what is left out, without a word, where it cannot be read


def safetensors(names, row):
    """The bytes of a file of several tensors with the same content."""
    data = encode(row)
    header = {name: {"dtype": "F32", "shape": row.shape, "data_offsets": [i * len(data), (i + 1) * len(data)]}
              for i, name in enumerate(names)}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data * len(names)


class Outcome:
    """What a run with this fault in it did, and whether it came to the fault."""

    def __init__(self, test, arguments, environment, fault):
        reading, writing = os.pipe()
        environment = {**os.environ, **environment, "LD_PRELOAD": os.path.relpath(test.faults, test.directory),
                       "LNORM_FAULT": fault, "LNORM_FAULT_FD": str(writing)}
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, cwd=test.directory, env=environment,
                              pass_fds=[writing], stdin=subprocess.DEVNULL, timeout=120)
        os.close(writing)
        self.fired = os.read(reading, 1) != b""
        os.close(reading)
        self.status, self.out, self.error = done.returncode, done.stdout, done.stderr.decode()
        self.files = {name: test.content(name) for name in test.files()}


@unittest.skipUnless(FAULTS, "LNORM_FAULTS is not set")
class Faults(ProgramTest):
    def setUp(self):
        super().setUp()
        beside = tempfile.mkdtemp(prefix="lnorm-faults-")  # LD_PRELOAD takes no path with a blank or a colon in it
        self.addCleanup(shutil.rmtree, beside)
        self.faults = os.path.join(beside, "faults.so")
        os.symlink(os.path.abspath(FAULTS), self.faults)
        x = self.save("x.npy", pattern_array("f32", (30, 50)))
        with open(self.path("model.safetensors"), "wb") as file:
            file.write(safetensors(["a.norm.weight", "a.norm.bias", "other"], pattern_array("f32", (50,))))
        self.succeed("apply", x, "-o", "n.npy")
        self.inputs = {name: self.content(name) for name in self.files()}

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def restore(self):
        """The inputs, and old files under the outputs' names."""
        for name in self.files():
            if name not in self.inputs:
                os.remove(self.path(name))
        for name in "y.npy", "m.npy":
            with open(self.path(name), "wb") as file:
                file.write(b"before")

    def attempt(self, run, fault):
        self.restore()
        return Outcome(self, *RUNS[run], fault)

    def wanted(self, run):
        outcome = self.attempt(run, "none:1:0")
        self.assertEqual((outcome.status, outcome.error), (0, ""), run)
        return outcome

    def check(self, run, fault, wanted, outcome):
        """Failed with a message, or did everything. Two files are finished one after the other: when the second cannot
        be, the first is new already."""
        where = f"{run}, {fault}: {outcome.status} {outcome.error!r}"
        self.assertIn(outcome.status, (wanted.status, 1), where)
        self.assertEqual(sorted(outcome.files), sorted(wanted.files), where)
        for name, content in self.inputs.items():
            self.assertTrue(outcome.files[name] == content, where)
        if outcome.error == wanted.error and outcome.status == wanted.status:
            self.assertTrue(outcome.files == wanted.files, where)
            self.assertIn(outcome.out, (wanted.out, re.sub(OPTIONAL, b"", wanted.out)), where)
            return
        self.assertEqual(outcome.status, 1, where)
        self.assertRegex(outcome.error, rf"\Alnorm {RUNS[run][0][0]}: [^\n]+\n\Z", where)
        self.assertTrue(outcome.files["y.npy"] in (b"before", wanted.files["y.npy"]), where)
        self.assertTrue(outcome.files["m.npy"] == b"before", where)

    def each(self, run, call, effect):
        """Every call of this name once. Returns the messages."""
        wanted = self.wanted(run)
        messages = []
        for nth in range(1, 3000):
            fault = f"{call}:{nth}:{effect}"
            outcome = self.attempt(run, fault)
            if not outcome.fired:
                self.check(run, fault, wanted, outcome)
                return messages
            self.check(run, fault, wanted, outcome)
            if outcome.status != wanted.status:
                messages.append(outcome.error)
        self.fail(f"{run}: no end of {call}")

    def test_no_memory(self):
        for run in RUNS:
            messages = self.each(run, "malloc", errno.ENOMEM)
            for message in messages:
                self.assertIn("memory", message, run)
            if run not in ("info", "explain"):
                self.assertTrue(messages, run)

    def test_refused_calls(self):
        for run in RUNS:
            for call in ("open", "read", "write", "fsync", "close", "rename", "fchmod", "mkstemp", "fstat", "lseek",
                         "fcntl"):
                for message in self.each(run, call, errno.EIO):
                    self.assertIn("Input/output error", message, (run, call))
        self.assertEqual(set(self.each("apply to a stream", "write", errno.ENOSPC)), {
            f"lnorm apply: a temporary file in '{TEMPORARY}' (TMPDIR) cannot be written: No space left on device\n",
            "lnorm apply: standard output: cannot be written: No space left on device\n",
            "lnorm apply: --output: standard output: cannot be written: No space left on device\n"})

    def test_resumed_calls(self):
        for run in RUNS:
            wanted = self.wanted(run)
            for call in "open", "read", "write", "fsync":
                for effect in SHORT, errno.EINTR:
                    outcome = self.attempt(run, f"{call}:0:{effect}")
                    self.assertEqual((outcome.status, outcome.out, outcome.error, outcome.files),
                                     (wanted.status, wanted.out, wanted.error, wanted.files), (run, call, effect))

    def test_no_threads(self):
        for run in "apply", "grad":
            self.assertEqual(self.each(run, "thread", errno.EAGAIN), [])

    def test_signals(self):
        """Before each write and each rename. A killed process leaves its temporary files, and nothing half done."""
        wanted = self.wanted("apply")
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            for call in "write", "fsync", "rename", "close":
                for nth in range(1, 100):
                    outcome = self.attempt("apply", f"{call}:{nth}:{-number}")
                    if not outcome.fired:
                        break
                    where = (number, call, nth, outcome.status, outcome.error)
                    self.assertIn(outcome.status, (-number, 0), where)
                    self.assertEqual(outcome.error, "", where)
                    for name, content in self.inputs.items():
                        self.assertTrue(outcome.files[name] == content, where)
                    for name in "y.npy", "m.npy":
                        self.assertTrue(outcome.files[name] in (b"before", wanted.files[name]), where)
                    left = set(outcome.files) - set(wanted.files)
                    if number == signal.SIGKILL:
                        self.assertTrue(all(name.startswith(".lnorm-") for name in left), where)
                    else:
                        self.assertEqual(left, set(), where)
                self.assertGreater(nth, 1, call)


if __name__ == "__main__":
    unittest.main()
