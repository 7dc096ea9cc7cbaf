#!/usr/bin/env python3
"""coverage_merge.py BUILD ROOT: branches of src/ that a --coverage build's tests took, each once for each place in the
source. Kernels are compiled inline for every instruction set, element type and width, and gcov counts the branches of
every copy; what one copy takes, another may be unable to. Here a branch counts as taken where any copy took it.

gcov gives a line's branches for each function that the line is part of, copy after copy. A list whose length is a
multiple of the shortest one's is therefore laid over it; where that does not work out, the longest list stands."""
import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys


def lines_of(notes):
    """(file, line, count, counts of branches) of an object's every function, from gcov."""
    data = notes[:-len("gcno")] + "gcda"
    if not os.path.exists(data):
        return []
    run = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout", data], check=True,
                         capture_output=True, text=True, cwd=os.path.dirname(data))
    found = []
    for document in map(json.loads, filter(None, run.stdout.split("\n"))):
        base = document["current_working_directory"]
        for file in document["files"]:
            path = os.path.normpath(os.path.join(base, file["file"]))
            found += [(path, line["line_number"], line["count"], [b["count"] for b in line["branches"] if not b["throw"]])
                      for line in file["lines"]]
    return found


def laid_over(lists):
    """The counts of a place's branches, all copies added."""
    shortest = min(map(len, lists))
    if any(len(counts) % shortest for counts in lists):
        shortest = max(map(len, lists))
        lists = [counts for counts in lists if len(counts) == shortest]
    total = [0] * shortest
    for counts in lists:
        for i, count in enumerate(counts):
            total[i % shortest] += count
    return total


def main():
    build, root = (os.path.realpath(path) for path in sys.argv[1:])
    source = os.path.join(root, "src") + os.sep
    executed, branches = collections.Counter(), collections.defaultdict(list)
    notes = sorted(glob.glob(os.path.join(build, "**", "*.gcno"), recursive=True))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, line, count, counts in (entry for found in pool.map(lines_of, notes) for entry in found):
            if path.startswith(source):
                executed[path, line] += count
                if counts:
                    branches[path, line].append(counts)
    merged = {place: laid_over(lists) for place, lists in branches.items()}
    totals = collections.defaultdict(lambda: [0, 0, 0, 0])
    for (path, line), count in executed.items():
        total, counts = totals[os.path.relpath(os.path.dirname(path), root)], merged.get((path, line), [])
        total[0] += count > 0
        total[1] += 1
        total[2] += sum(taken > 0 for taken in counts)
        total[3] += len(counts)
    for (path, line), counts in sorted(merged.items()):
        if not all(counts):
            text = open(path).read().split("\n")[line - 1].strip()
            print(f"{os.path.relpath(path, root)}:{line}: {sum(map(bool, counts))} of {len(counts)}    {text}")
    for directory, (lines, all_lines, taken, all_taken) in sorted(totals.items()):
        print(f"{directory}: {lines} of {all_lines} lines, {taken} of {all_taken} branches")


if __name__ == "__main__":
    main()
