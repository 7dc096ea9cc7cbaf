"""Ratios of speeds within one run, and whether the case's targets are met."""
from . import cases, workers


def speed(result, name):
    """Calls per second, best of rounds; None where there is no time, or nothing to compare."""
    entry = result["times"].get(name)
    return 1 / entry["best"] if entry and entry["comparable"] else None


def fastest(result, names):
    """(speed, name) of the fastest, or (None, None)."""
    found = [(speed(result, name), name) for name in names if speed(result, name)]
    return max(found, default=(None, None))


def best_peer(result):
    return fastest(result, workers.PEERS)


def best_copy(result):
    return fastest(result, workers.COPIES)


def find_speed(result, whom, alone):
    """alone: the result of the same case on one thread, or None."""
    if whom == "peer":
        return best_peer(result)[0]
    if whom == "torch":
        return fastest(result, [name for name in workers.PEERS if name.startswith("torch")])[0]
    if whom == "copy":
        return best_copy(result)[0]
    return speed(alone, "lnorm") if alone else speed(result, whom)


def judge_target(text, result, single, isa):
    """{"text", "value", "met"}: value is the ratio reached, met None where something was not there to measure. None
    where the target is for another number of threads."""
    timed = cases.TIME_TARGET.fullmatch(text)
    if timed:
        times = [result["times"].get(timed[key], {}).get("best") for key in ("who", "whom")]
        if None in times:
            return {"text": text, "value": None, "met": None}
        more = 1e9 * (times[0] - times[1])
        return {"text": text, "value": more, "met": more <= float(timed["more"])}
    found = cases.TARGET.fullmatch(text)
    many = result["threads"] > 1
    if found["when"] and (found["when"] == "threads") != many:
        return None
    ours = speed(result, found["who"])
    theirs = find_speed(result, found["whom"], single if found["alone"] else None)
    if ours is None or theirs is None or (found["alone"] and single is None):
        return {"text": text, "value": None, "met": None}
    factor = float(found["other"] if found["isa"] == isa else found["factor"])
    return {"text": text, "value": ours / theirs, "met": ours / theirs >= factor}


def judge(results, case_list, isa):
    """Adds "to_peer", "to_copy" and "targets" to every result."""
    targets = {case.key: case.targets for case in case_list}
    single = {result["key"]: result for result in results if result["threads"] == 1}
    for result in results:
        ours = speed(result, "lnorm")
        peer, name = best_peer(result)
        copy, _ = best_copy(result)
        result["best_peer"] = name
        result["to_peer"] = ours / peer if ours and peer else None
        result["to_copy"] = ours / copy if ours and copy else None
        judged = (judge_target(text, result, single.get(result["key"]), isa) for text in targets.get(result["key"], ()))
        result["targets"] = [target for target in judged if target]
