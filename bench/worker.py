"""A worker of lnorm-bench: one Python implementation in a process of its own. The commands are those of worker.c.

    worker.py list                       one JSON line: the implementations and their versions, null where absent
    worker.py NAME THREADS LIBRARY       LIBRARY: the benchmark's memory and numbers (data.c)
"""
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True   # no __pycache__ among the sources
sys.path.insert(0, str(Path(__file__).resolve().parent))
PACKAGES = {"torch": "torch", "torch-kept": "torch", "torch-mixed": "torch", "onnxruntime": "onnxruntime",
            "numpy": "numpy"}
BATCH_SECONDS = 300e-6  # as in worker.c
MAX_BATCHES = 4096
FLOOR_SHARE = 0.1       # of the call on one element: less than that above it says nothing


def version(package):
    try:
        importlib.metadata.version("numpy")
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def make_peer(name, threads):
    if name.startswith("torch"):
        from peers.torch_peer import TorchPeer
        return TorchPeer(threads, mixed=name == "torch-mixed")
    if name == "onnxruntime":
        from peers.onnxruntime_peer import OnnxRuntimePeer
        return OnnxRuntimePeer(threads)
    from peers.numpy_peer import NumpyPeer
    return NumpyPeer(threads)


def time_batch(run, calls, sets):
    """Seconds per call."""
    index = 0
    begin = time.perf_counter()
    for _ in range(calls):
        run(index)
        index = index + 1 if index + 1 < sets else 0
    return (time.perf_counter() - begin) / calls


def find_batch(run, sets):
    """Warms up, and finds a batch that is long enough for the clock: its calls, seconds per call."""
    batch = 1
    while True:
        seconds = time_batch(run, batch, sets)
        if seconds * batch >= BATCH_SECONDS / 4 or batch >= 1000000:
            return max(1, int(BATCH_SECONDS / seconds)), seconds
        batch *= 4


def measure(run, batch, sets, seconds):
    end = time.perf_counter() + seconds
    first = time_batch(run, batch, sets)
    times = [first] if first * batch > seconds / 4 else []  # otherwise it was the warm-up after the others' rounds
    while len(times) < MAX_BATCHES and (not times or time.perf_counter() < end):
        times.append(time_batch(run, batch, sets))
    times.sort()
    return {"best": times[0], "median": times[len(times) // 2], "batches": len(times), "calls": batch}


class Worker:
    def __init__(self, name, threads, library):
        from peers.data import Data
        self.data = Data(library)
        self.peer = make_peer(name, threads)
        self.run = self.floor = None

    def free(self):
        self.run = self.floor = None
        self.peer.close()
        self.data.release()
        return {"freed": True}

    def case(self, line):
        """The word net=1, known to Python workers only: the time of a call on one element, the cost of getting from
        Python into the library, is subtracted."""
        from peers.data import Problem, Unsupported
        self.free()
        problem = Problem(line)
        self.sets = problem.sets
        try:
            if problem.net:
                self.floor = self.peer.open(problem.smallest(), self.data)
                self.floor_batch, _ = find_batch(self.floor, 1)
            self.run = self.peer.open(problem, self.data)
        except Unsupported as reason:
            self.free()
            return {"unsupported": str(reason)}
        results = {key: self.data.digest(*value) for key, value in self.peer.results(self.run(0)).items()}
        self.batch, seconds = find_batch(self.run, self.sets)
        remarks = [self.peer.remark, "less the time of a call on one element" if problem.net else ""]
        return {"remark": "; ".join(filter(None, remarks)), "seconds": seconds, "results": results}

    def round(self, seconds):
        if self.run is None:
            return {"error": "round: expected a case first"}
        if not self.floor:
            return measure(self.run, self.batch, self.sets, seconds)
        whole = measure(self.run, self.batch, self.sets, seconds / 2)
        floor = measure(self.floor, self.floor_batch, 1, seconds / 2)
        net = {key: whole[key] - floor[key] for key in ("best", "median")}
        if any(net[key] < FLOOR_SHARE * floor[key] for key in net):
            return {"unsupported": "a call costs hardly more than on one element"}
        return {**whole, **net}

    def obey(self, line):
        verb, _, rest = line.strip().partition(" ")
        if verb == "case":
            return self.case(rest)
        if verb == "round":
            return self.round(float(rest))
        if verb == "free":
            return self.free()
        return {"error": "expected case, round or free"}


def main():
    if sys.argv[1:] == ["list"]:
        print(json.dumps({name: version(package) for name, package in PACKAGES.items()}))
        return
    if len(sys.argv) != 4 or sys.argv[1] not in PACKAGES:
        sys.exit(f"usage: worker.py list | worker.py NAME THREADS LIBRARY; NAME is one of {' '.join(PACKAGES)}")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)   # libraries that print must not disturb the answers
    worker = Worker(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    for line in sys.stdin:
        try:
            answer = worker.obey(line)
        except Exception as error:  # whatever a peer raises is its answer, not the end of the run
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
