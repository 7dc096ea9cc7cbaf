"""The measurement: for each case and number of threads, rounds that are interleaved over the implementations."""
import statistics
import sys
import time

from . import agree, machine, workers

MAX_SETS = 16       # as in problem.h
SLEEP = 0.012       # between two implementations: threads that spin after their work go to sleep


class Options:
    def __init__(self, threads, rounds, seconds, catalogue, names):
        self.threads, self.rounds, self.seconds = threads, rounds, seconds
        self.catalogue, self.names = catalogue, names


def sets(case, names_count):
    """Copies of the large arrays: for DRAM so many that all of them are four times the last cache, as far as half of
    the free memory goes."""
    if not case.dram:
        return 1
    wanted = 4 * max(machine.caches().values(), default=32 << 20)
    affordable = machine.memory_available() // 2 // max(1, names_count) // case.footprint
    return max(1, min(MAX_SETS, -(-wanted // case.footprint), affordable))


def takes_part(case, name, threads):
    if case.only and name not in case.only or name == "plan" and not case.plan:
        return False
    if name in workers.SAVED and (case.direction, case.op) != ("backward", "layer"):
        return False
    return threads == 1 or name not in workers.ONE_THREAD


class Crew:
    """The workers of one number of threads; a worker that died is started anew for the next case."""

    def __init__(self, options, threads):
        self.options, self.threads, self.workers = options, threads, {}

    def get(self, name):
        worker = self.workers.get(name)
        if worker is None or worker.process.poll() is not None:
            worker = self.workers[name] = self.options.catalogue.start(name, self.threads)
        return worker

    def close(self):
        for worker in self.workers.values():
            worker.close()


def open_case(case, crew, result):
    """Tells every worker; gives those that are ready."""
    ready = []
    for name in result["names"]:
        worker = crew.get(name)
        answer = worker.ask(case.line(result["sets"], case.net and workers.is_python(name)))
        if "results" not in answer:
            reason = answer.get("unsupported") or f"FAILED: {answer.get('error', 'no answer')}"
            result["absent"][name] = reason
            continue
        result["times"][name] = {"remark": answer["remark"], "rounds": [], "digests": answer["results"]}
        ready.append((worker, answer["seconds"]))
    return ready


def run_rounds(ready, options, result):
    for number in range(options.rounds):
        turn = number % max(1, len(ready))
        for worker, first in ready[turn:] + ready[:turn]:
            if number and first > 10 * options.seconds:
                continue    # as slow as that, one round says it
            time.sleep(SLEEP)
            answer = worker.ask(f"round {options.seconds}")
            if "best" in answer:
                result["times"][worker.name]["rounds"].append([answer["best"], answer["median"]])
            else:
                result["absent"][worker.name] = answer.get("unsupported") or f"FAILED: {answer.get('error')}"


def compare(case, result, reference):
    """Every implementation's results with lnorm's on the first number of threads. lnorm itself must give them again,
    bit for bit. "deviation" is None for the copies, and where results are missing or not finite."""
    for name, entry in result["times"].items():
        digests = entry.pop("digests")
        entry.update(mark="", deviation=None, worst=None, comparable=True)
        if not digests:
            continue
        value, entry["worst"] = agree.deviation(reference, digests)
        entry["deviation"] = value if value < float("inf") else None
        exact = name in ("lnorm", "plan")
        entry["mark"] = ("!" if reference != digests else "") if exact else agree.judge(case, value)
        entry["comparable"] = entry["deviation"] is not None


def summarise(result):
    for name in list(result["times"]):
        entry = result["times"][name]
        if not entry["rounds"]:
            result["absent"].setdefault(name, "FAILED: no round")
            del result["times"][name]
            continue
        entry["best"] = min(best for best, _ in entry["rounds"])
        entry["median"] = statistics.median(median for _, median in entry["rounds"])


def measure_case(case, threads, crew, options, references):
    names = [name for name in options.names if takes_part(case, name, threads)]
    result = {"key": case.key, "regime": case.regime, "label": case.label, "dtype": case.dtype,
              "direction": case.direction, "unit": case.unit, "threads": threads, "traffic": case.traffic,
              "columns": case.shape[-1], "sets": sets(case, len(names)), "names": names, "times": {}, "absent": {}}
    ready = open_case(case, crew, result)
    if case not in references:
        references[case] = result["times"].get("lnorm", {}).get("digests")
    run_rounds(ready, options, result)
    for worker, _ in ready:
        worker.ask("free")
    if references[case] is None:
        raise SystemExit(f"lnorm-bench: {case.key}: lnorm: {result['absent'].get('lnorm')}")
    compare(case, result, references[case])
    summarise(result)
    result["load"] = machine.load()
    return result


def measure(cases, options, report=None):
    """The results, thread count by thread count; `report` is called with each. Cases for one thread are left out where
    one thread is not asked for."""
    references, results = {}, []
    for threads in options.threads:
        crew = Crew(options, threads)
        try:
            for case in cases:
                if case.threads == "one" and threads != 1:
                    continue
                results.append(measure_case(case, threads, crew, options, references))
                if report:
                    report(results[-1])
        finally:
            crew.close()
    return results


def progress(case_list, threads):
    """Prints a line per case to standard error as it is finished."""
    total = sum((1 in threads) if case.threads == "one" else len(threads) for case in case_list)
    done = 0

    def report(result):
        nonlocal done
        done += 1
        ours = result["times"].get("lnorm", {}).get("best")
        failed = [name for name, reason in result["absent"].items() if reason.startswith("FAILED")]
        print(f"[{done}/{total}] {result['key']}, {result['threads']} thread(s): "
              f"{f'{1e6 * ours:.6g} us' if ours else '-'}{'; failed: ' + ', '.join(failed) if failed else ''}",
              file=sys.stderr, flush=True)
    return report
