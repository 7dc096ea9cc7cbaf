"""The program's first layer: verbs, options, help, exit statuses, output that cannot be written."""

import os
import subprocess
import unittest

from program import PROGRAM, ProgramTest

VERBS = ["apply", "grad", "verify", "explain", "list", "info", "bench"]


class Usage(ProgramTest):
    def test_help_lists_every_verb(self):
        for option in ("--help", "-h"):
            out = self.succeed(option).out.decode()
            for verb in VERBS:
                self.assertRegex(out, rf"(?m)^  {verb} +\S")

    def test_help_of_each_verb(self):
        for verb in VERBS:
            out = self.succeed(verb, "--help").out.decode()
            self.assertTrue(out.startswith(f"Usage: lnorm {verb} "), out)
            self.assertEqual(self.succeed(verb, "-h").out.decode(), out)
            summary, description = out.split("\n", 1)[1].split("\n\n", 1)
            self.assertIn(summary, self.succeed("--help").out.decode())
            self.assertGreater(len(description), 80)
            for part in ("\nOptions:\n", "  -h, --help ", f"\nExamples:\n  "):
                self.assertIn(part, out)
            self.assertIn(f"lnorm {verb}", out.split("\nExamples:\n")[1])

    def test_help_fits_100_columns(self):
        for arguments in [("--help",), *((verb, "--help") for verb in VERBS)]:
            for line in self.succeed(*arguments).out.decode().split("\n"):
                self.assertLessEqual(len(line), 100, line)
                self.assertEqual(line, line.rstrip())
                self.assertTrue(line.isascii(), line)

    def test_help_is_asked_for_among_other_things(self):
        self.assertIn(b"Usage: lnorm explain", self.succeed("explain", "4,2", "--axes", "0", "--help").out)

    def test_version(self):
        lines = self.succeed("--version").out.decode().split("\n")
        self.assertRegex(lines[0], r"^lnorm \d+\.\d+\.\d+$")
        self.assertIn("MIT licence. No warranty.", lines)

    def test_wrong_usage(self):
        for message, arguments in [
                ("lnorm: expected a verb\nTry 'lnorm --help'.\n", ()),
                ("lnorm: none: no such verb; expected apply, grad, verify, explain, list, info or bench\n", ("none",)),
                ("lnorm: : no such verb", ("",)),
                ("lnorm: --axes: no such option; a verb comes first\n", ("--axes", "1", "apply")),
                ("lnorm explain: --none: no such option", ("explain", "4,2", "--none")),
                ("lnorm explain: --axse: no such option; perhaps --axes\n", ("explain", "4,2", "--axse", "1")),
                ("lnorm apply: --wieght=w: no such option; perhaps --weight\n", ("apply", "x", "--wieght=w")),
                ("lnorm verify: --runing_mean: no such option; perhaps --running-mean\n", ("verify", "--runing_mean")),
                ("lnorm apply: --m: no such option, or the beginning of several\n", ("apply", "x", "--m", "f")),
                ("lnorm apply: --=: no such option, or the beginning of several\n", ("apply", "x", "--=")),
                ("lnorm apply: --" + 30 * "w" + ": no such option, or", ("apply", "x", "--" + 30 * "w")),
                ("lnorm explain: -z: no such option", ("explain", "4,2", "-z")),
                ("lnorm explain: --axes: expected a value (LIST) after it\n", ("explain", "4,2", "--axes")),
                ("lnorm explain: -a: expected a value (LIST) after it\n", ("explain", "4,2", "-a")),
                ("lnorm explain: --bf16=1: takes no value\n", ("explain", "4,2", "--bf16=1")),
                ("lnorm explain: --axes: given twice\n", ("explain", "4,2", "--axes", "1", "-a", "0")),
                ("lnorm explain: --axes: expected at most 16 integers, as 2,3, got '1,'",
                 ("explain", "4,2", "-a", "1,")),
                ("lnorm explain: --normalized-shape: expected at most 16 integers >= 0, as 2,3, got '-2'",
                 ("explain", "4,2", "-s", "-2")),
                ("lnorm explain: --axes: expected at most 16 integers, as 2,3, got ''", ("explain", "4,2", "--axes=")),
                ("lnorm explain: --eps: expected a number from 0 on, got 'nan'", ("explain", "4,2", "--eps", "nan")),
                ("lnorm explain: --eps: expected a number from 0 on, got '-1'", ("explain", "4,2", "--eps=-1")),
                ("lnorm explain: --eps: expected a number from 0 on, got '1x'", ("explain", "4,2", "-e", "1x")),
                ("lnorm explain: --groups: expected an integer from 1 on, got '0'",
                 ("explain", "4,2", "--op", "group", "-g", "0")),
                ("lnorm explain: --groups: expected an integer from 1 on, got '2.0'",
                 ("explain", "4,2", "--op", "group", "-g", "2.0")),
                ("lnorm info: x: one argument too many; expected [OPTION]...\nTry 'lnorm info --help'.\n",
                 ("info", "x"))]:
            result = self.refuse(2, message, *arguments)
            self.assertRegex(result.error, r"\nTry 'lnorm (\w+ )?--help'\.\n$")

    def test_options_may_be_shortened_and_stand_anywhere(self):
        expected = self.succeed("explain", "4,2", "--axes", "0").out
        for arguments in [("--axes=0", "4,2"), ("--ax", "0", "4,2"), ("-a0", "4,2"), ("4,2", "-a", "0"),
                          ("-a", "0", "--", "4,2")]:
            self.assertEqual(self.succeed("explain", *arguments).out, expected)

    def test_standard_output_that_cannot_be_written(self):
        for arguments in [("--help",), ("--version",), ("info",), ("explain", "4,2"), ("list", "--help")]:
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"cannot write to standard output: No space left on device\n", done.stderr)
            done = subprocess.run([PROGRAM, *arguments], stderr=subprocess.PIPE, check=False,
                                  preexec_fn=lambda: os.close(1))
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(b"cannot write to standard output: Bad file descriptor\n", done.stderr)

    def test_reader_that_goes_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PROGRAM, "explain", "4,2,3"], stdout=writer, stderr=subprocess.PIPE, check=False)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"lnorm explain: cannot write to standard output: Broken pipe\n"))


if __name__ == "__main__":
    unittest.main()
