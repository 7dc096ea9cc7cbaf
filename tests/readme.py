"""readme.py PROGRAM: what README.md shows is so. Its shell sessions are run, and print what stands there ("..." is any
number of lines); its pieces of C compile without a warning. The Python is run by tests/python/test_documentation.py."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"))

# What the pieces of C leave to the reader to declare. The third and the fourth go on where the second ends.
PROGRAM_OF_PIECES = """#include <lnorm.h>
int rows_(float *y, const float *x, const float *weight, const float *bias, int64_t rows, int64_t cols);
int rows_(float *y, const float *x, const float *weight, const float *bias, int64_t rows, int64_t cols) {
%s
return 0; }
int fail(const char *message);
int tensors_(void *x_data, void *y_data, void *weight_data, void *bias_data, const int64_t *shape, lnorm_tensor dx,
             lnorm_tensor dy);
int tensors_(void *x_data, void *y_data, void *weight_data, void *bias_data, const int64_t *shape, lnorm_tensor dx,
             lnorm_tensor dy) {
%s
%s
%s
return 0; }
"""


def matches(expected, got):
    """Whether the lines are those, "..." standing for any."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, got) is not None


def run_sessions(program):
    """In one directory, with the variables set so far. Returns how many commands printed something else."""
    wrong = count = 0
    variables = ""
    with tempfile.TemporaryDirectory() as directory:
        os.symlink(pathlib.Path(program).resolve().parent, f"{directory}/build")
        os.symlink(ROOT / "tests", f"{directory}/tests")
        for block in (text for _, text in BLOCKS if text.startswith("$ ")):
            for command, *expected in (part.splitlines() for part in re.split(r"(?m)^\$ ", block)[1:]):
                run = subprocess.run(["sh", "-c", variables + command], cwd=directory, encoding="utf-8",
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env={**os.environ, "LC_ALL": "C.UTF-8"})
                if "=" in shlex.split(command)[0]:
                    variables += command + "\n"
                count += 1
                if not matches(expected, run.stdout):
                    wrong += 1
                    print(f"README.md: $ {command}\nprinted:\n{run.stdout}")
    assert count > 4, count
    return wrong


def compile_pieces():
    pieces = [text.replace("#include <lnorm.h>\n", "") for language, text in BLOCKS if language == "c"]
    source = PROGRAM_OF_PIECES % tuple(pieces)
    command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               f"-I{ROOT}/include", "-xc", "-"]
    return subprocess.run(command, input=source, text=True, encoding="utf-8").returncode


if __name__ == "__main__":
    sys.exit(1 if run_sessions(sys.argv[1]) + compile_pieces() else 0)
