#!/usr/bin/env python3
"""mutate.py DIRECTORY: do the tests notice small mistakes? Changes one place of the sources at a time (an operator, a
bound, a constant, a lane; a statement left out), builds, runs the fast tests until one fails, and notes what became of
it in DIRECTORY/results.jsonl:

    killed    a test failed, or ran out of time
    survived  all passed: a gap in the tests, or a change that changes nothing
    same      the library's code came out the same
    rejected  it does not compile

The mutants are drawn from all that there are, in an order that depends on the seed only, so a run that was stopped goes
on where it was, and another seed draws others. `mutate.py DIRECTORY --report` lists the survivors. The sources are
copied: the working tree is not touched.
"""

import argparse
import glob
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ["src/*.c", "src/*.h", "src/kernels/*", "src/simd/vec_*.h"]
TESTS = ["test_level1", "test_running", "test_plan", "test_layer", "test_refused_op", "test_refused_tensors",
         "test_pool", "test_layouts", "test_extremes", "test_threads", "fuzz_calls", "test_cases", "test_exact",
         "test_kernels"]

SWAPS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
         "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "+=": ["-="],
         "-=": ["+="], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"]}
TOKEN = re.compile(r"""(?P<skip>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|0[xX][\da-fA-F.]+[pP]?[-+]?\d*\w*|
    \d+\.\d*(?:[eE][-+]?\d+)?\w*|->|\+\+|--|\*=|/=|\|=|&=|<<=|>>=)|(?P<number>\d+)(?P<suffix>[uUlL]*)|
    (?P<operator><<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/%<>&|])""", re.X)
STATEMENT = re.compile(r"^\s+(?!return|else|if|for|while|do|case|break|continue|goto|const|static|typedef|struct|union)"
                       r"[A-Za-z_(*][^;{}]*(=|\()[^;{}]*;\s*$")
DECLARATION = re.compile(r"^\s+(?:\w+\s+)+\**\w+(\[\w*\])?\s*(=|,|;)")


def code_of(text):
    """The text with comments and preprocessor lines blanked, places kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M | re.S)


def is_binary(line, at, operator):
    """Not a sign, nor a pointer's * or an address: those have no blank behind them."""
    before, after = line[:at].rstrip(), line[at + len(operator):at + len(operator) + 1]
    return bool(before) and (before[-1].isalnum() or before[-1] in "_)]") and (operator not in "*&" or after == " ")


def mutants_of(path, text):
    """(path, line number from 0, column, old, new) of every mutant of a file."""
    for number, line in enumerate(code_of(text).split("\n")):
        if STATEMENT.match(line) and not DECLARATION.match(line):
            yield path, number, len(line) - len(line.lstrip()), line.strip(), ";"
        for token in TOKEN.finditer(line):
            at = token.start()
            if token.group("number"):
                value = int(token.group("number"), 8 if len(token.group("number")) > 1 and line[at] == "0" else 10)
                for new in {value + 1, value - 1 if value else 1}:
                    yield path, number, at, token.group(), f"{new}{token.group('suffix')}"
            elif token.group("operator") and is_binary(line, at, token.group()):
                for new in SWAPS[token.group("operator")]:
                    yield path, number, at, token.group(), new


def key_of(text, mutant):
    """The same for the same change of the same line, wherever the line has moved to."""
    path, number, column, old, new = mutant
    line = text.split("\n")[number]
    return hashlib.sha256(f"{path}\0{line}\0{column}\0{old}\0{new}".encode()).hexdigest()[:16]


def mutated(text, mutant):
    _, number, column, old, new = mutant
    lines = text.split("\n")
    line = lines[number]
    assert line[column:column + len(old)] == old, (mutant, line)
    lines[number] = line[:column] + new + line[column + len(old):]
    return "\n".join(lines)


def run(command, limit, **options):
    """True, False, or None where the time ran out; children go with it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               **options)
    try:
        return process.wait(timeout=limit) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return None


class Workshop:
    """A copy of the tree and its build."""

    def __init__(self, directory, tests, jobs):
        self.tree, self.build = os.path.join(directory, "tree"), os.path.join(directory, "build")
        self.tests, self.jobs, self.limits = tests, jobs, {}
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, files.split("\0")):
            self.put(name, open(os.path.join(ROOT, name), "rb").read())
        if not os.path.exists(os.path.join(self.build, "CMakeCache.txt")):
            subprocess.run(["cmake", "-S", self.tree, "-B", self.build, "-DLNORM_TESTS=ON", "-DLNORM_EXAMPLES=OFF",
                            "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O1 -DLNORM_NO_AVX512"], check=True,
                           stdout=subprocess.DEVNULL)

    def put(self, name, content):
        path = os.path.join(self.tree, name)
        if os.path.isfile(path) and open(path, "rb").read() == content:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        shutil.copymode(os.path.join(ROOT, name), path)

    def make(self):
        return run(["cmake", "--build", self.build, "--parallel", str(self.jobs), "--target", *self.tests], 3600)

    def code(self):
        return hashlib.sha256(open(os.path.join(self.build, "liblnorm.a"), "rb").read()).hexdigest()

    def program(self, test):
        found = glob.glob(os.path.join(self.build, "**", test), recursive=True)
        arguments = {"fuzz_calls": ["-draws=1000"]}.get(test, [])
        return [next(path for path in found if os.access(path, os.X_OK) and os.path.isfile(path)), *arguments]

    def begin(self):
        """The tests pass without a change; how long they take sets their limits."""
        if not self.make():
            sys.exit("mutate.py: the sources do not build")
        for test in self.tests:
            begun = time.monotonic()
            if not run(self.program(test), 3600, cwd=self.tree):
                sys.exit(f"mutate.py: {test} fails without a change")
            self.limits[test] = 20 + 10 * (time.monotonic() - begun)

    def first_failure(self):
        for test in self.tests:
            if not run(self.program(test), self.limits[test], cwd=self.tree):
                return test
        return None


def all_mutants():
    paths = {path for pattern in SOURCES for path in glob.glob(os.path.join(ROOT, pattern))}
    for name in sorted(os.path.relpath(path, ROOT) for path in paths):
        text = open(os.path.join(ROOT, name)).read()
        for mutant in mutants_of(name, text):
            yield text, mutant


def judge(workshop, text, mutant, original):
    path = mutant[0]
    workshop.put(path, mutated(text, mutant).encode())
    try:
        if not workshop.make():
            return "rejected", None
        if workshop.code() == original:
            return "same", None
        test = workshop.first_failure()
        return ("killed", test) if test else ("survived", None)
    finally:
        workshop.put(path, text.encode())


def report(path):
    results = [json.loads(line) for line in open(path)]
    counts = {}
    for result in results:
        counts[result["became"]] = counts.get(result["became"], 0) + 1
        if result["became"] == "survived":
            print(f"{result['path']}:{result['line']}: {result['old']!r} -> {result['new']!r}    {result['text']}")
    print(", ".join(f"{count} {became}" for became, count in sorted(counts.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--count", type=int, default=20, help="how many new mutants (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose names contain this")
    parser.add_argument("--tests", default=",".join(TESTS), help="the tests, by their targets' names, fastest first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="list the survivors, count the others")
    options = parser.parse_args()
    results = os.path.join(options.directory, "results.jsonl")
    if options.report:
        return report(results)
    os.makedirs(options.directory, exist_ok=True)
    known = {json.loads(line)["key"] for line in open(results)} if os.path.exists(results) else set()
    mutants = [(text, mutant) for text, mutant in all_mutants() if options.only in mutant[0]]
    random.Random(options.seed).shuffle(mutants)
    print(f"{len(mutants)} mutants, {len(known)} judged before", flush=True)
    workshop = Workshop(options.directory, options.tests.split(","), options.jobs)
    workshop.begin()
    original = workshop.code()
    left = options.count
    for text, mutant in mutants:
        key = key_of(text, mutant)
        if key in known or not left:
            continue
        known.add(key)
        left -= 1
        became, test = judge(workshop, text, mutant, original)
        path, number, _, old, new = mutant
        result = {"key": key, "path": path, "line": number + 1, "old": old, "new": new, "became": became, "test": test,
                  "text": text.split("\n")[number].strip()}
        with open(results, "a") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{became:9}{test or '':22}{path}:{number + 1}: {old} -> {new}", flush=True)
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
