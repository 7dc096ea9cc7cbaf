#!/usr/bin/env python3
"""mutate.py DIRECTORY: do the tests notice small mistakes? Changes one place of the sources at a time (an operator, a
bound, a constant, a lane; a statement left out), builds, runs tests until one fails, and notes what became of it in
DIRECTORY/results.jsonl:

    killed    a test failed, or ran out of time
    survived  all passed: a gap in the tests, or a change that changes nothing
    same      the library's code came out the same
    rejected  it does not compile

A test counts only once it has passed without any mutant in the same copy: one that does not ends the run. A mutant gets
some times the seconds that this took.

The mutants are drawn from all that there are, spread over the files by their lines, in an order that depends on the
seed only: a run that was stopped goes on where it was, and another seed draws others. `mutate.py DIRECTORY --report`
lists the survivors, and counts by directory. The sources are copied: the working tree is not touched.

A mutant has to be cheap (here some ten seconds of a core), so a copy is built with one instruction set, AVX2, or that
of the mutated vec_*.h, or AVX-512 for rows_half.inc; its kernels are compiled in parts, of which a mutant makes anew
those that include its file;
tests are linked when their turn comes, the fastest first, and stopped at their first failure.
"""

import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = ["src/*.c", "src/*.h", "src/kernels/*", "src/simd/vec_avx2.h", "src/simd/vec_sse2.h"]

# What cannot change a result, by the text of its line; such lines are not mutated.
UNSEEN = [(r"PREFETCH|\bahead\b|LN_AHEAD|lane \+ 1 == LNORM_LANES|ln_ask_for_rows", "asks for memory ahead of time"),
          (r"LNORM_HOLD", "keeps a value in a register"),
          (r"LNORM_STREAM_BYTES", "the size from which outputs go past the caches"),
          (r"lnorm_stream_end", "orders stores past the caches before those of other threads' reading")]

# Each kernel part: the members of the table it gives, and the files it needs, in table.inc's order.
FORWARD = "elements block rows_short rows_half rows_block rows_forward"
PARTS = {
    "rows": (".rows_forward = {ln_rows_forward}, .rows_backward = {ln_rows_backward}",
             f"{FORWARD} rows_short_backward rows_backward rows_block_backward"),
    "fast": (".rows_forward = {0, ln_rows_fast_forward}, .rows_backward = {0, ln_rows_fast_backward}, .long_fast = "
             "{ln_long_fast_moments, ln_long_fast_gradient, ln_long_fast_forward, ln_long_fast_backward}",
             f"{FORWARD} runs rows_fast_block rows_fast rows_fast_means rows_fast_short rows_fast_backward long_fast"),
    "long": (".name = LNORM_ISA_STRING, .long_rows = {ln_long_sum, ln_long_forward, ln_long_backward}, .add = ln_add, "
             ".store = ln_store_sums, .contracts = ln_contracts", "elements block long contracts"),
    "loops": (".wide = &LNORM_ISA_EXPAND(lnorm_kernels_wide, LNORM_ISA_SUFFIX), .loops = &ln_loops",
              f"{FORWARD} runs rows_fast_block rows_fast rows_fast_means blocks general_loops columns_loops loops"),
}
PART = """#include "../kernels.h"
#include "../simd/isa_build.h"
#define LNORM_ISA_SUFFIX {isa}
#include "../kernels/names.h"
{compact}#include "../simd/vec_{isa}.h"
{includes}
extern const lnorm_kernels lnorm_part_{part};
const lnorm_kernels lnorm_part_{part} = {{{members}}};
"""
# The table is put together when the program starts: every member is a pointer that one part has.
JOIN = """#include "../kernels.h"
extern const lnorm_kernels {externs};
lnorm_kernels table __asm__("lnorm_kernels_{isa}");
__attribute__((constructor)) static void join(void) {{
    const lnorm_kernels *const parts[] = {{{parts}}};
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        for (unsigned k = 0; k < sizeof table / sizeof(void *); k++)
            if (((void *const *)parts[i])[k])
                ((void **)&table)[k] = ((void *const *)parts[i])[k];
}}
"""

# Tests: target, arguments, the most seconds of CPU. Of everything first
# what takes under a second; then for kernels and their callers what has to do with bits, for the others with calls.
FIRST = [("test_level1", [], 6), ("fuzz_calls", ["-draws=300"], 6)]
CALLS = [("test_running", [], 6), ("test_refused_op", [], 6), ("test_refused_tensors", [], 6),
         ("test_extremes", [], 6), ("test_layer", [], 6), ("test_cases", [], 10), ("test_pool", [], 10)]
LAST = [("test_cases", [], 10), ("fuzz_calls", ["-draws=2000", "tests/fuzz/calls"], 20), ("same_bits.sh", [], 30),
        ("test_guards", [], 60)]
LAST_OF_CALLS = [("test_processes", [], 6), ("test_faults", [], 20),
                 ("fuzz_calls", ["-draws=2000", "tests/fuzz/calls"], 20), ("test_layouts", [], 20),
                 ("same_bits.sh", [], 30), ("test_plan", [], 60), ("test_threads", [], 90)]
# What of test_kernels a file needs, by the beginning of its name, and whether test_exact.
KERNELS = [("wide", ["test_wide*"]), ("long", ["test_long*"]),
           ("rows_fast", ["test_fast*", "test_rows_fast", "test_rows_stream", "test_many_rows", "test_c*", "test_drawn"]),
           ("runs", ["test_fast*", "test_rows_fast", "test_rows_stream", "test_many_rows", "test_c*", "test_drawn"]),
           ("fast", ["test_fast*", "test_rows_fast", "test_rows_stream", "test_many_rows", "test_c*", "test_drawn"]),
           ("rows", ["test_rows*", "test_many_rows", "test_drawn"]), ("tiles", ["test_rows*", "test_many_rows"]),
           ("columns", ["test_c*", "test_drawn", "test_streamed"]), ("channels", ["test_c*", "test_drawn"]),
           ("general", ["test_drawn", "test_rounding", "test_c*", "test_streamed", "test_rows_*ward"]),
           ("gather", ["test_drawn", "test_c*", "test_streamed"]), ("bundle", ["test_drawn", "test_c*"]),
           ("blocks", ["test_drawn", "test_c*"]), ("reference_wide", ["test_wide*"]),
           ("reference", ["test_drawn", "test_rows_*ward"]),
           ("pairs", ["test_wide*", "test_long*"]), ("level1", []), ("layer", []), ("pool", []), ("tensor", []),
           ("message", []), ("plan", []), ("pointers", []), ("dispatch", ["test_dispatch"]), ("", ["*"])]
EXACT = ("reference", "pairs", "arithmetic", "access", "problem", "environment", "grid")
TARGETS = {"fuzz_calls": "fuzz_calls", "same_bits.sh": "same_bits"}


def tests_of(path):
    name = os.path.basename(path)
    globs = next(globs for beginning, globs in KERNELS if name.startswith(beginning))
    kernels = [("test_kernels", [], 300, {"LNORM_ONLY": glob}) for glob in globs]
    exact = [("test_exact", [], 400, {})] if name.startswith(EXACT) else []
    deep = "/kernels/" in path or "/simd/" in path
    before, after = ([], LAST) if deep else (CALLS, LAST_OF_CALLS)
    return [(*test, {}) for test in FIRST + before] + kernels + [(*test, {}) for test in after] + exact


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
        if any(re.search(pattern, line) for pattern, _ in UNSEEN):
            continue
        if STATEMENT.match(line) and not DECLARATION.match(line):
            yield path, number, len(line) - len(line.lstrip()), line.strip(), ";"
        for token in TOKEN.finditer(line):
            at = token.start()
            if token.group("number"):
                value = int(token.group("number"), 8 if len(token.group("number")) > 1 and line[at] == "0" else 10)
                for new in sorted({value + 1, value - 1 if value else 1}):
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


def run(command, seconds, wall=900, **options):
    """The seconds of CPU that it took to pass, at least 0.1; None where it did not. It is stopped, children too, at the
    first test that fails, and when its time is over."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               preexec_fn=limit, **options)
    end, passed = time.monotonic() + wall, True
    while passed:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
        text = os.read(process.stdout.fileno(), 1 << 16) if ready else b"[  FAILED  ]"
        if not text:
            break
        passed = b"[  FAILED  ]" not in text
    if not passed:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
    process.stdout.close()
    _, process.returncode, usage = os.wait4(process.pid, 0)
    return max(0.1, usage.ru_utime + usage.ru_stime) if passed and process.returncode == 0 else None


class Workshop:
    """A copy of the tree with one instruction set, and its build."""

    def __init__(self, directory, isa):
        self.tree, self.build = os.path.join(directory, "tree"), os.path.join(directory, "build")
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, files.split("\0")):
            if not name.startswith("src/isa/"):
                content = open(os.path.join(ROOT, name), "rb").read()
                self.put(name, content.replace(b"CONFIGURE_DEPENDS", b"") if "cmake" in name.lower() else content)
        self.one_isa(isa)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            subprocess.run(["cmake", "-G", "Ninja", "-S", self.tree, "-B", self.build, "-DLNORM_TESTS=ON",
                            "-DLNORM_EXAMPLES=OFF", "-DLNORM_SCALAR=OFF", "-DLNORM_HAVE_SIMDE=",
                            "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O2 -w"], check=True, stdout=subprocess.DEVNULL)
        if not self.make("liblnorm.a"):
            sys.exit("mutate.py: the sources do not build")
        self.original, self.proven = self.code(), {}  # seconds by test
        objects = os.path.join(self.build, "CMakeFiles", "lnorm_objects.dir")
        self.objects = glob.glob(os.path.join(objects, "**", "*.o"), recursive=True)
        for name in self.objects:
            shutil.copy2(name, name + ".kept")

    def one_isa(self, isa):
        compact = '#include "../compact.inc"\n' if "compact.inc" in open(f"{ROOT}/src/isa/isa_{isa}.c").read() else ""
        for part, (members, files) in PARTS.items():
            includes = "\n".join(f'#include "../kernels/{file}.inc"' for file in files.split())
            self.put(f"src/isa/part_{part}.c", PART.format(isa=isa, compact=compact, includes=includes, part=part,
                                                          members=members).encode())
        names = [f"lnorm_part_{part}" for part in PARTS]
        self.put("src/isa/join.c", JOIN.format(isa=isa, externs=", ".join(names),
                                               parts=", ".join(f"&{name}" for name in names)).encode())
        self.put(f"src/isa/wide_{isa}.c", open(f"{ROOT}/src/isa/wide_{isa}.c", "rb").read())
        lines = open(f"{ROOT}/src/lists/isas.def").read().split("\n")
        kept = [line for line in lines if not line.startswith("ISA(") or line.startswith(f"ISA({isa},")]
        self.put("src/lists/isas.def", "\n".join(kept).encode())
        self.put("cmake/sources.cmake", b"file(GLOB LNORM_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} src/*.c src/isa/*.c)\n"
                 b"file(GLOB kernels RELATIVE ${PROJECT_SOURCE_DIR} src/isa/*.c)\n"
                 b"set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -O1)\n")

    def put(self, name, content):
        path = os.path.join(self.tree, name)
        if os.path.isfile(path) and open(path, "rb").read() == content:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        if os.path.exists(os.path.join(ROOT, name)):
            shutil.copymode(os.path.join(ROOT, name), path)

    def make(self, target):
        return run(["ninja", "-C", self.build, "-j", "1", target], 600)

    def code(self):
        return hashlib.sha256(open(os.path.join(self.build, "liblnorm.a"), "rb").read()).hexdigest()

    def command(self, name, arguments):
        if name == "same_bits.sh":
            return ["tests/same_bits.sh", os.path.join(self.build, "tests", "same_bits"), *arguments]
        found = glob.glob(os.path.join(self.build, "tests", "**", name), recursive=True)
        return [next(path for path in found if os.path.isfile(path)), *arguments]

    def passes(self, test, seconds):
        name, arguments, _, environment = test
        if not self.make(TARGETS.get(name, name)):
            sys.exit(f"mutate.py: {name} does not build")
        return run(self.command(name, arguments), seconds, cwd=self.tree, env={**os.environ, **environment})

    def prove(self, tests):
        """A test that fails without a mutant would kill every one; a loop without end should not take minutes."""
        unproven = [test for test in tests if str(test) not in self.proven]
        if unproven:
            os.remove(os.path.join(self.build, "liblnorm.a"))  # it has the last mutant, and is newer than its objects
        for test in unproven:
            seconds = self.passes(test, test[2])
            if seconds is None:
                sys.exit(f"mutate.py: {test} fails without a mutant")
            self.proven[str(test)] = seconds

    def first_failure(self, tests):
        for test in tests:
            if self.passes(test, int(5 + 4 * self.proven[str(test)])) is None:
                return " ".join([test[0], *test[3].values()])
        return None

    def judge(self, text, mutant):
        path, place = mutant[0], os.path.join(self.tree, mutant[0])
        self.prove(tests_of(path))
        before = os.stat(place)
        self.put(path, mutated(text, mutant).encode())
        try:
            if not self.make("liblnorm.a"):
                return "rejected", None
            if self.code() == self.original:
                return "same", None
            test = self.first_failure(tests_of(path))
            return ("killed", test) if test else ("survived", None)
        finally:
            # With the times of before: nothing of what was compiled then has to be compiled again.
            self.put(path, text.encode())
            os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
            for name in self.objects:
                if not os.path.exists(name) or os.stat(name).st_mtime_ns != os.stat(name + ".kept").st_mtime_ns:
                    shutil.copy2(name + ".kept", name)


def all_mutants(seed, only):
    """In the order of trial: of each file the lines in random order, at places that are spread evenly over 0 to 1."""
    drawn = []
    paths = {path for pattern in SOURCES for path in glob.glob(os.path.join(ROOT, pattern))}
    for name in sorted(os.path.relpath(path, ROOT) for path in paths):
        text, by_line = open(os.path.join(ROOT, name)).read(), collections.defaultdict(list)
        for mutant in mutants_of(name, text):
            by_line[mutant[1]].append(mutant)
        dice, lines = random.Random(f"{seed} {name}"), sorted(by_line)
        dice.shuffle(lines)
        for i, line in enumerate(lines):
            dice.shuffle(by_line[line])
            for k, mutant in enumerate(by_line[line]):
                drawn.append((k + (i + dice.random()) / len(lines), name, text, mutant))
    return [(text, mutant) for _, name, text, mutant in sorted(drawn, key=lambda d: d[:2]) if only in name]


def report(path):
    counts = collections.defaultdict(collections.Counter)
    for line in open(path):
        result = json.loads(line)
        counts[os.path.dirname(result["path"])][result["became"]] += 1
        if result["became"] == "survived":
            print(f"{result['path']}:{result['line']}: {result['old']!r} -> {result['new']!r}    {result['text']}")
    for directory, became in sorted(counts.items()):
        print(f"{directory}: {sum(became.values())} drawn, " + ", ".join(f"{became[b]} {b}" for b in sorted(became)))


class Campaign:
    def __init__(self, directory, jobs):
        self.directory, self.jobs, self.lock = directory, jobs, threading.Lock()
        self.results = os.path.join(directory, "results.jsonl")
        self.free = collections.defaultdict(list)
        self.made = collections.Counter()

    def workshop(self, isa):
        with self.lock:
            if self.free[isa]:
                return self.free[isa].pop()
            self.made[isa] += 1
            number = self.made[isa]
        return Workshop(os.path.join(self.directory, f"{isa}-{number}"), isa)

    def one(self, text, mutant):
        path, number, _, old, new = mutant
        own = re.search(r"vec_(\w+)\.h", path)
        isa = own.group(1) if own else "avx512" if "rows_half" in path else "avx2"
        workshop = self.workshop(isa)
        begun = time.monotonic()
        became, test = workshop.judge(text, mutant)
        result = {"key": key_of(text, mutant), "path": path, "line": number + 1, "old": old, "new": new,
                  "became": became, "test": test, "seconds": round(time.monotonic() - begun, 1),
                  "text": text.split("\n")[number].strip()}
        with self.lock:
            self.free[isa].append(workshop)
            with open(self.results, "a") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{became:9}{test or '':24}{result['seconds']:6} {path}:{number + 1}: {old} -> {new}", flush=True)

    def known(self):
        return {json.loads(line)["key"] for line in open(self.results)} if os.path.exists(self.results) else set()

    def run(self, mutants, count):
        known, chosen = self.known(), []
        for text, mutant in mutants:
            key = key_of(text, mutant)
            if key not in known and len(chosen) < count:
                known.add(key)
                chosen.append((text, mutant))
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(self.one, *one) for one in chosen]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:  # what stops one stops all
                pool.shutdown(cancel_futures=True)
                raise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--count", type=int, default=20, help="how many new mutants (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose names contain this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="list the survivors, count the others")
    options = parser.parse_args()
    os.makedirs(options.directory, exist_ok=True)
    campaign = Campaign(options.directory, options.jobs)
    if not options.report:
        mutants = all_mutants(options.seed, options.only)
        print(f"{len(mutants)} mutants, {len(campaign.known())} judged before", flush=True)
        campaign.run(mutants, options.count)
    return report(campaign.results)


if __name__ == "__main__":
    sys.exit(main())
