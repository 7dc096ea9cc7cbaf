#!/usr/bin/env python3
"""check_vectors.py quick|all|write [TEXT...]: the independent implementation against tests/vectors.

quick   vectors.jsonl, of which every combination in same_bits.txt must have a line (`make check`)
all     every line of same_bits.txt and the tables of docs/arithmetic.md (`make check-independent`)
write   writes vectors.jsonl anew, after lines have been added to same_bits.txt
TEXT    quick and all: only operations whose name contains all of these
"""
import copy
import json
import sys
import time

import documents
import vectors


class Progress:
    """A line now and then."""

    def __init__(self, total):
        self.total, self.done, self.shown = total, 0, time.monotonic()

    def step(self):
        self.done += 1
        if time.monotonic() - self.shown >= 10.0:
            self.shown = time.monotonic()
            print("%d of %d" % (self.done, self.total), flush=True)


def each(items):
    progress = Progress(len(items))
    for item in items:
        yield item
        progress.step()


def quick(texts):
    """Differences, and the number of vectors looked at."""
    with open(vectors.VECTORS, encoding="ascii") as lines:
        stored = [json.loads(line) for line in lines]
    names, found = vectors.listed(), []
    looked_at = [vector for vector in stored if all(text in vector["name"] for text in texts)]
    for vector in each(looked_at):
        again = vectors.add_results(copy.deepcopy(vector), vectors.compute(vector))
        for output, entry in again["outputs"].items():
            if entry != vector["outputs"][output]:
                found.append("%s: %s: computed %s, %s has %s" % (vector["name"], output, entry, vectors.VECTORS,
                                                                vector["outputs"][output]))
        for place, digest in (("vectors.jsonl", vector["hash"]), ("same_bits.txt", names.get(vector["name"]))):
            if digest != again["hash"]:
                found.append("%s: hash %s, %s has %s" % (vector["name"], again["hash"], place, digest))
    missing = sorted(set(vectors.chosen(names)) - {vector["name"] for vector in stored})
    found += ["%s: has no line in vectors.jsonl: run check_vectors.py write" % name for name in missing]
    return found, len(looked_at)


def everything(texts):
    names, found = vectors.listed(), []
    chosen = [name for name in names if all(text in name for text in texts)]
    for name in each(chosen):
        vector = vectors.described(name)
        digest = vectors.digest(vector, vectors.compute(vector))
        if digest != names[name]:
            found.append("%s: hash %s, same_bits.txt has %s" % (name, digest, names[name]))
    if texts:
        return found, len(chosen)
    print("the tables of docs/arithmetic.md", flush=True)
    missing, count = documents.found()
    return found + ["docs/arithmetic.md has no row | %s |" % " | ".join(map(str, row)) for row in missing], \
        len(chosen) + count


def main(arguments):
    if arguments == ["write"]:
        vectors.write()
        return 0
    if not arguments or arguments[0] not in ("quick", "all"):
        print(__doc__, file=sys.stderr)
        return 2
    found, count = (quick if arguments[0] == "quick" else everything)(arguments[1:])
    for line in found[:20]:
        print(line)
    print("%d results, %d differ" % (count, len(found)))
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
