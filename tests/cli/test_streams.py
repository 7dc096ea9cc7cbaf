"""lnorm apply on streams and on files larger than its buffers: pipes, pieces, memory, full disks, signals."""

import math
import os
import resource
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from norms import layout, pattern_array
from program import PROGRAM, Array, ProgramTest, npy, npy_header

MEGABYTE = 1 << 20
X = Array("f32", (2, 2), [1.0, 3.0, 0.0, 4.0])
Y = Array("f32", (2, 2), [-1.0, 1.0, -1.0, 1.0])


class Streams(ProgramTest):
    def test_standard_input_and_output(self):
        data = npy(X)
        self.assertEqual(self.succeed("apply", "-", "-o", "-", "-e0", stdin=data).out, npy(Y))
        self.assertEqual(self.succeed("apply", "-", "-o-", "-e", "0", stdin=data).out, npy(Y))
        self.save("x.npy", X)
        self.assertEqual(self.succeed("apply", "x.npy", "-o", "-", "-e0").out, npy(Y))
        self.assertEqual(self.succeed("apply", "-", "-o", "y.npy", "-e0", stdin=data).out, b"")
        self.assertEqual(self.load("y.npy"), Y)
        out = self.succeed("apply", "x.npy", "-o", "y.npy", "--mean", "-").out
        self.assertEqual(out, npy(Array("f32", (2,), [2.0, 2.0])))
        with open(self.path("x.npy"), "rb") as file:  # a file is read from where it stands
            done = subprocess.run([PROGRAM, "apply", "-", "-o", "-", "-e0"], stdin=file, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, npy(Y)))

    def test_parameters_from_standard_input(self):
        self.save("x.npy", X)
        weight = npy(Array("f32", (2,), [2.0, 0.5]))
        out = self.succeed("apply", "x.npy", "-o", "-", "-e0", "-w", "-", stdin=weight).out
        self.assertEqual(out, npy(Array("f32", (2, 2), [-2.0, 0.5, -2.0, 0.5])))

    def test_pipeline(self):
        """Layer norm of layer norm, through three processes and no file; X of more than a pipe holds."""
        self.save("x.npy", pattern_array("f32", (64, 1000)))
        self.succeed("apply", "x.npy", "-o", "y.npy")
        self.succeed("apply", "y.npy", "-o", "z.npy")
        line = 'cat x.npy | "$0" apply - -o - | "$0" apply - -o - > piped.npy'
        piped = subprocess.run(["sh", "-c", line, PROGRAM], cwd=self.directory)
        self.assertEqual(piped.returncode, 0)
        self.assertEqual(self.load("piped.npy"), self.load("z.npy"))

    def test_links_to_pipes(self):
        self.save("x.npy", X)
        for name in "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
            self.assertEqual(self.succeed("apply", "x.npy", "-o", name, "-e0").out, npy(Y))
        read, write = os.pipe()  # as bash gives for -o >(command)
        self.succeed("apply", "x.npy", "-o", f"/dev/fd/{write}", "-e0", pass_fds=[write])
        os.close(write)
        with open(read, "rb") as pipe:
            self.assertEqual(pipe.read(), npy(Y))
        self.assertEqual(self.files(), ["x.npy"])

    def test_named_pipes(self):
        os.mkfifo(self.path("in"))
        os.mkfifo(self.path("out"))
        x = pattern_array("f32", (50, 700))
        self.save("x.npy", x)
        wanted = self.succeed("apply", "x.npy", "-o", "-", "--axes", "0").out
        running = subprocess.Popen([PROGRAM, "apply", "in", "-o", "out", "--axes", "0"], cwd=self.directory,
                                   env={**os.environ, "LNORM_CLI_BUDGET": "4000"})
        with open(self.path("in"), "wb") as pipe:
            pipe.write(npy(x))
        with open(self.path("out"), "rb") as pipe:
            self.assertEqual(pipe.read(), wanted)
        self.assertEqual(running.wait(), 0)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("out")).st_mode))

    def test_broken_input(self):
        data = npy(X)
        self.refuse(1, "standard input: ", "apply", "-", "-o", "y.npy", stdin=b"")
        self.refuse(1, "standard input: ", "apply", "-", "-o", "y.npy", stdin=data[:-1])
        self.refuse(1, "standard input: ", "apply", "-", "-o", "-", stdin=data + b"x")

    def test_closed_pipe(self):
        self.save("x.npy", pattern_array("f32", (64, 1000)))
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([PROGRAM, "apply", "x.npy", "-o", "-", "--mean", "m.npy"], stdout=writing,
                              stderr=subprocess.PIPE, cwd=self.directory)
        os.close(writing)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, b"lnorm apply: --output: standard output: cannot be written: Broken pipe\n")
        self.assertEqual(self.files(), ["x.npy"])

    def test_terminal(self):
        """An array is not printed on a terminal."""
        self.save("x.npy", X)
        own, terminal = os.openpty()
        done = subprocess.run([PROGRAM, "apply", "x.npy", "-o", "-"], stdout=terminal, stderr=subprocess.PIPE,
                              cwd=self.directory)
        os.close(own)
        os.close(terminal)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--output -: standard output is a terminal", done.stderr)


class Pieces(ProgramTest):
    """The bits do not depend on the pieces: buffers of few bytes against one that takes everything."""

    def check(self, arguments, shape, dtype="f32", budgets=(100, 40000), outputs=("--output", "--mean", "--rstd")):
        x = pattern_array(dtype, shape)
        names = [option.strip("-") + ".npy" for option in outputs]
        for fortran in False, True:
            with open(self.path("x.npy"), "wb") as file:
                file.write(layout(x, fortran))
            wanted = None
            for budget in 1 << 30, *budgets:
                environment = {"LNORM_CLI_BUDGET": str(budget)}
                files = [word for pair in zip(outputs, names) for word in pair]
                self.succeed("apply", "x.npy", *arguments, *files, environment=environment)
                results = [self.bytes(name) for name in names]
                wanted = wanted or results
                self.assertTrue(results == wanted, (arguments, fortran, budget))  # assertEqual would show megabytes
                out = self.succeed("apply", "x.npy", *arguments, outputs[0], "-", environment=environment).out
                self.assertTrue(out == wanted[0], (arguments, fortran, budget))

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_axes(self):
        for name, shape in ("w", (2, 3, 4, 500)), ("b", (500,)):
            self.save(f"{name}.npy", pattern_array("f32", shape[-1:]))
        self.check(["-w", "w.npy", "-b", "b.npy"], (2, 3, 4, 500))
        self.check(["--axes", "0,2"], (5, 100, 7, 6))
        self.check(["--axes", "1"], (70, 3, 60), "f16")
        self.check(["--op", "rms", "--axes", "0"], (30, 400), "f64", outputs=("--output", "--rstd"))
        self.check(["--dtype", "f64"], (100, 90), "bf16")

    def test_channels(self):
        for name in "w", "b":
            self.save(f"{name}.npy", pattern_array("f32", (60,)))
        affine = ["-w", "w.npy", "-b", "b.npy"]
        self.check(["--op", "group", "-g", "12", *affine], (2, 60, 70))
        self.check(["--op", "instance", *affine], (3, 60, 7, 9))
        self.check(["--op", "batch", *affine], (150, 60))
        self.save("v.npy", Array("f32", (60,), [0.5] * 60))
        self.check(["--op", "batch", "--running-mean", "b.npy", "--running-var", "v.npy", *affine], (20, 60, 9),
                   outputs=("--output",))

    def test_large_groups(self):
        """Groups that are larger than a buffer."""
        self.save("w.npy", pattern_array("f32", (2,)))
        self.check(["--op", "batch", "-w", "w.npy"], (2, 2, 70000), budgets=(200000,))
        self.check(["--op", "group", "-g", "1", "-w", "w.npy", "-b", "w.npy"], (2, 2, 70000), budgets=(200000,))
        self.save("w.npy", pattern_array("f16", (3, 50000)))
        self.check(["-s", "3,50000", "-w", "w.npy", "-b", "w.npy"], (1, 3, 50000), budgets=(200000,), dtype="f16")


@unittest.skipIf("LNORM_SANITIZED" in os.environ, "sanitizers need memory of their own")
class Memory(ProgramTest):
    """Hundreds of megabytes of zeros, which take no space on the disk, with less than 100 MB resident."""

    def measure(self, shape, *arguments, fortran=False):
        with open(self.path("x.npy"), "wb") as file:
            file.write(npy_header("<f4", shape, fortran))
            file.truncate(file.tell() + 4 * math.prod(shape))
        running = subprocess.Popen([PROGRAM, "apply", "x.npy", *arguments], cwd=self.directory)
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(running.returncode, 0)
        self.assertLess(usage.ru_maxrss * 1024, 100 * MEGABYTE, arguments)

    def test_rows(self):
        self.measure((100 * 1024, 1024), "-o", "/dev/null", "--mean", "/dev/null")

    def test_columns(self):
        """y goes to a pipe in another order than it is computed in."""
        self.measure((50 * 1024, 1024), "-o", "/dev/null", "--axes", "0")

    def test_columns_of_fortran_order(self):
        self.measure((50 * 1024, 1024), "--rstd", "r.npy", "--op", "batch", fortran=True)

    def test_instances(self):
        self.measure((8, 4, 1600, 1024), "--mean", "m.npy", "-o", "/dev/null", "--op", "instance")


class Endings(ProgramTest):
    """What is at the output's name when a run ends early."""

    def setUp(self):
        super().setUp()
        with open(self.path("y.npy"), "wb") as file:
            file.write(b"before")

    def untouched(self):
        with open(self.path("y.npy"), "rb") as file:
            self.assertEqual(file.read(), b"before")

    def begin(self):
        """A run in its middle: it waits for somebody to read rstd, megabytes of it, from a pipe that is returned, too."""
        rows = 1 << 20
        with open(self.path("x.npy"), "wb") as file:
            file.write(npy_header("<f4", (rows, 4)))
            file.truncate(file.tell() + 16 * rows)
        os.mkfifo(self.path("pipe"))
        pipe = os.open(self.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        running = subprocess.Popen([PROGRAM, "apply", "x.npy", "-o", "y.npy", "--rstd", "pipe"], cwd=self.directory,
                                   stderr=subprocess.PIPE, env={**os.environ, "LNORM_CLI_BUDGET": "100000"})
        self.wait_for_data(running, pipe)
        os.remove(self.path("pipe"))
        self.assertEqual(len(self.files()), 3)
        return running, pipe

    def wait_for_data(self, running, pipe):
        """Systems differ in whether a pipe that nobody has opened for writing yet is ready for reading."""
        for _ in range(12000):
            if select.select([pipe], [], [], 120)[0] and os.read(pipe, 1):
                return
            self.assertIsNone(running.poll())
            time.sleep(0.01)
        self.fail("nothing came")

    def finish(self, running, pipe):
        """What the rest of the run says."""
        os.set_blocking(pipe, True)
        while os.read(pipe, 1 << 16):
            pass
        return running.communicate()[1]

    def test_interrupted(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            running, _ = self.begin()
            running.send_signal(number)
            self.assertEqual(running.communicate()[1], b"")
            self.assertEqual(running.returncode, -number)
            self.assertEqual(self.files(), ["x.npy", "y.npy"])
            self.untouched()

    def test_killed(self):
        running, _ = self.begin()
        running.kill()
        running.communicate()
        self.untouched()

    def test_input_shrinks(self):
        running, pipe = self.begin()
        os.truncate(self.path("x.npy"), 1000)
        self.assertIn(b"lnorm apply: 'x.npy': became shorter while it was read", self.finish(running, pipe))
        self.assertEqual((running.returncode, self.files()), (1, ["x.npy", "y.npy"]))
        self.untouched()

    def test_input_vanishes(self):
        """An open file stays readable."""
        running, pipe = self.begin()
        os.remove(self.path("x.npy"))
        self.assertEqual((self.finish(running, pipe), running.returncode), (b"", 0))
        self.assertEqual(self.files(), ["y.npy"])

    def test_failed(self):
        self.save("x.npy", X)
        self.save("w.npy", Array("f32", (3,), [1.0] * 3))
        self.refuse(1, "--weight w.npy", "apply", "x.npy", "-o", "y.npy", "-w", "w.npy")
        self.refuse(1, "--rstd: '/dev/full': cannot be written: No space left on device", "apply", "x.npy", "-o",
                    "y.npy", "--rstd", "/dev/full")
        self.untouched()

    def test_full(self):
        """A limit of file size; both outputs are given up when one cannot be written."""
        self.save("x.npy", pattern_array("f32", (300, 100)))
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))}
        self.refuse(1, "'y.npy': cannot be written: File too large", "apply", "x.npy", "--mean", "m.npy", "-o",
                    "y.npy", **limit)
        self.untouched()
        self.refuse(1, "a temporary file in '/tmp' (TMPDIR) cannot be written: File too large", "apply", "x.npy",
                    "--axes", "0", "--mean", "m.npy", environment={"TMPDIR": "/tmp", "LNORM_CLI_BUDGET": "2000"},
                    **limit)
        self.refuse(1, "a temporary file cannot be created in '/absent' (TMPDIR): No such file", "apply", "x.npy",
                    "--axes", "0", "--mean", "m.npy", environment={"TMPDIR": "/absent", "LNORM_CLI_BUDGET": "2000"})

    def test_full_disk(self):
        disk = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, disk)
        if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
                                                       capture_output=True).returncode:
            self.skipTest("a disk of 64 KB cannot be mounted")
        self.addCleanup(subprocess.run, ["umount", disk])
        if os.statvfs(disk).f_blocks * os.statvfs(disk).f_frsize > 1 << 16:
            self.skipTest("the disk that was mounted has more than the 64 KB that were asked for")
        self.save("x.npy", pattern_array("f32", (300, 100)))
        self.refuse(1, f"'{disk}/y.npy': cannot be written: No space left on device", "apply", "x.npy", "-o",
                    f"{disk}/y.npy", "--mean", "m.npy")
        self.assertEqual(os.listdir(disk), [])

    def test_onto_input(self):
        self.save("x.npy", X)
        os.symlink("x.npy", self.path("link.npy"))
        self.succeed("apply", "x.npy", "-o", "link.npy", "-e0", environment={"LNORM_CLI_BUDGET": "8"})
        self.assertEqual(self.load("x.npy"), Y)
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.refuse(2, "--mean link.npy: is what --output writes, too", "apply", "x.npy", "-o", "x.npy", "--mean",
                    "link.npy")
        self.save("w.npy", Array("f32", (2,), [2.0, 2.0]))
        self.succeed("apply", "x.npy", "-o", "w.npy", "-w", "w.npy", "-e0")
        self.assertEqual(self.load("w.npy").values, [-2.0, 2.0, -2.0, 2.0])

    def test_progress_on_a_terminal_only(self):
        self.save("x.npy", X)
        self.assertEqual(self.succeed("apply", "x.npy", "-o", "y.npy").error, "")
        self.assertEqual(self.succeed("apply", "x.npy", "-o", "y.npy", "--quiet").error, "")


if __name__ == "__main__":
    unittest.main()
