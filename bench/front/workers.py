"""The implementations, and the processes that run them."""
import json
import os
import selectors
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SAVED = ("saved", "fast-saved")     # given mean and rstd: backward passes of layer norm
OURS = ("lnorm", "plan", "fast", *SAVED)
COPIES = ("memcpy", "stream")
PEERS = {  # how to get each
    "loop": "built with the benchmark",
    "onednn": "apt-get install libdnnl-dev, or -DLNORM_ONEDNN=PREFIX, before the benchmark is built",
    "torch": "pip install torch numpy, and --python with that interpreter",
    "torch-kept": "as torch",
    "torch-mixed": "as torch",
    "onnxruntime": "pip install onnxruntime numpy, and --python with that interpreter",
    "numpy": "pip install numpy, and --python with that interpreter",
}
ONE_THREAD = ("numpy",)     # whatever is asked
ANSWER_SECONDS = 900        # the slowest peer on the largest case takes a few; beyond this it hangs

# PyTorch gives every result of a large size back to the system, and the next call pays for its page faults. These
# settings of glibc make it keep the memory and use huge pages: what a program with an allocator of its own sees.
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "268435456",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


# How an implementation is held to an instruction set below the machine's. ONNX Runtime and NumPy's elementwise loops
# have no switch; the copies are not computing.
HELD = {"avx2": {"LNORM_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}}
NOT_HELD = ("onnxruntime", "numpy")


def ask_list(command, isa):
    made = dict(os.environ, **HELD.get(isa, {}))
    try:
        done = subprocess.run([*command, "list"], capture_output=True, text=True, timeout=120, check=True, env=made)
        return json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError, IndexError):
        return {}


class Catalogue:
    """Which implementations of `names` can run here, and how each is started; with the machine's instruction set, or
    held to `isa`."""

    def __init__(self, build, python, names, isa=None):
        build = Path(build)
        self.commands, self.versions, self.isa = {}, {}, isa
        program, data = build / "lnorm_bench_worker", build / "liblnorm_bench_data.so"
        if not program.exists() or not data.exists():
            raise SystemExit(f"lnorm-bench: --build: expected a directory with {program.name} and {data.name}, got "
                             f"{build}; `make bench` builds them")
        self.add(ask_list([str(program)], isa), [str(program)], [])
        if "lnorm" not in self.versions:
            raise SystemExit(f"lnorm-bench: {program} does not run")
        if "onednn" in names:
            program = build / "lnorm_bench_onednn"
            self.add(ask_list([str(program)], isa), [str(program)], [])
        if any(map(is_python, names)):
            script = [python, str(HERE / "worker.py")]
            self.add(ask_list(script, isa), script, [str(data)])

    def add(self, versions, command, arguments):
        """loop-avx2 is what runs as loop when all are held to AVX2."""
        for name in versions:
            version = versions.get(f"{name}-{self.isa}", versions[name])
            if version:
                self.versions[name] = version
                self.commands[name] = (command, arguments)

    def variant(self, name):
        held = f"{name}-{self.isa}"
        return held if held in self.commands else name

    def absent(self, names):
        return [name for name in names if name not in self.commands]

    def start(self, name, threads):
        command, arguments = self.commands[name]
        return Worker(name, threads, [*command, self.variant(name), str(threads), *arguments],
                      environment(name, threads, self.isa))


def is_python(name):
    return name in ("torch", "torch-kept", "torch-mixed", "onnxruntime", "numpy")


def environment(name, threads, isa):
    count = str(threads)
    made = dict(os.environ, OMP_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count, MKL_NUM_THREADS=count)
    made.update(HELD.get(isa, {}))
    if name in ("torch-kept", "torch-mixed"):
        made.update(KEPT)
    return made


class Worker:
    def __init__(self, name, threads, command, variables):
        self.name, self.threads = name, threads
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=variables)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def ask(self, line):
        """The answer, a dictionary; {"error": ...} where the worker has died or hangs."""
        if self.process.poll() is not None:
            return {"error": self.last_words()}
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": self.last_words()}
        if not self.selector.select(ANSWER_SECONDS):
            self.process.kill()
            return {"error": f"no answer after {ANSWER_SECONDS} s"}
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer.endswith(b"\n") else {"error": self.last_words()}

    def last_words(self):
        status = self.process.wait()
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - 300))
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"the worker ended with status {status}" + (f": {lines[-1]}" if lines else "")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.selector.close()
        self.process.stdout.close()
        self.errors.close()
