"""The table, its notes, and the comparison with an earlier run; all as Markdown."""
from . import workers

NOISE = 0.05    # a ratio of two runs closer to 1 than this says nothing


PASS = {"forward": "fwd", "backward": "bwd"}


def amount(result, entry):
    if entry is None:
        return "-"
    if result["unit"] == "ns":
        nanoseconds = 1e9 * entry["best"]
        return f"{nanoseconds:.{1 if nanoseconds < 100 else 0}f}{entry['mark']}"
    return f"{result['traffic'] / entry['best'] / 1e9:.3g}{entry['mark']}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}"


def target_text(target):
    """Short: "1.5 peer", "fast 1.1 peer"; the threads stand in a column of their own."""
    text = target["text"].removeprefix("1 thread: ").removeprefix("threads: ")
    return text if "<=" in text else text.removeprefix("lnorm ").replace(">= ", "").replace("x ", "")


def met_text(target):
    if target["met"] is None:
        return "-"
    value = f"{target['value']:+.0f} ns" if target["text"].endswith("ns") else f"{target['value']:.2f}"
    return f"{'yes' if target['met'] else 'NO'} ({value})"


def render(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
             for row in [header, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def table(results, names):
    only_somewhere = ("plan", *workers.SAVED)
    names = [name for name in names
             if name not in only_somewhere or any(name in result["times"] for result in results)]
    header = ["case", "type", "pass", "thr", "unit", *names, "/peer", "/copy", "target", "met"]
    rows = []
    for result in results:
        targets = result["targets"]
        rows.append([result["label"], result["dtype"], PASS[result["direction"]], str(result["threads"]), result["unit"],
                     *(amount(result, result["times"].get(name)) for name in names),
                     ratio(result["to_peer"]), ratio(result["to_copy"]), "; ".join(map(target_text, targets)),
                     "; ".join(map(met_text, targets))])
    return render(header, rows)


LEGEND = """Best of all rounds. GB/s of the least traffic: x and y, of a backward pass x, dy and dx, each once. /peer, /copy: the
speed of lnorm against the best peer and the better copy. -: not there, or not for this case. ~: less accurate than f32
arithmetic should be; !: another result than lnorm's."""


def notes(results, versions, absent):
    """What the table's marks and dashes mean, each said once."""
    lines = [f"- {name}: {version}" for name, version in versions.items() if name not in workers.OURS[1:]]
    lines += [f"- {name}: not here. {workers.PEERS[name]}" for name in absent]
    remarks, marks, failures = {}, [], []
    for result in results:
        for name, entry in result["times"].items():
            if entry["remark"]:
                remarks.setdefault(f"{name}: {entry['remark']}", None)
            if entry["mark"]:
                far = (f"differs from lnorm's by {entry['deviation']:.1e} of the largest element"
                       if entry["comparable"] else "is missing, or not finite: not taken as a peer")
                marks.append(f"{entry['mark']} {name}, {result['key']}, {result['threads']} thread(s): "
                             f"{entry['worst']} {far}")
        failures += [f"{name}, {result['key']}, {result['threads']} thread(s): {reason}"
                     for name, reason in result["absent"].items() if reason.startswith("FAILED")]
    return "\n".join([LEGEND, *lines, *(f"- {line}" for line in [*remarks, *marks, *failures])])


def compare(new, old):
    """lnorm against an earlier run, beside what the machine's copy did meanwhile."""
    before = {(result["key"], result["threads"]): result for result in old}
    rows = []
    for result in new:
        earlier = before.get((result["key"], result["threads"]))
        for name in workers.OURS:
            pair = [run["times"].get(name) if run else None for run in (result, earlier)]
            if None in pair:
                continue
            faster = pair[1]["best"] / pair[0]["best"]
            copies = [run["times"].get("memcpy") for run in (result, earlier)]
            drift = copies[1]["best"] / copies[0]["best"] if None not in copies else None
            change = faster / drift if drift else faster
            rows.append([result["label"], result["dtype"], PASS[result["direction"]], str(result["threads"]), name,
                         amount(earlier, pair[1]), amount(result, pair[0]), result["unit"], f"{faster:.2f}",
                         ratio(drift), "" if abs(change - 1) < NOISE else "faster" if change > 1 else "SLOWER"])
    return render(["case", "type", "pass", "thr", "", "before", "now", "unit", "times as fast", "memcpy's",
                   "beyond memcpy's"], rows)
