#!/bin/sh
# abi.sh SHARED_LIBRARY: what abidiff says of today's interface against 0.1.0's. New functions pass, nothing else does.
# Twice: the library against the stored description, by its symbols (and its types, where it is built with -g); and
# today's header against 0.1.0's, each as a library of stubs, by types: abidiff 2.2 does not see a changed struct behind
# a stored description.
#
# tests/abi/lnorm-0.1.0.abi was written, from the tag 0.1.0 built with -g -O1, by
#     abidw --headers-dir include --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path liblnorm.so
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/tools.sh"
[ "$(uname -m)" = x86_64 ] || skip "the stored description is of x86-64"
need gcc abidiff python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$(realpath "$1")
failed=0

# compare OLD NEW: nothing removed, nothing changed. (By its status abidiff calls a moved member no break. A struct that
# grows at its end is allowed, but is a change to abidiff: whoever lets one grow lets it through here, by name.)
compare() {
    show abidiff "$1" "$2" >"$work/said" || [ $(($? & 3)) -eq 0 ] || failed=1
    cat "$work/said"
    [ "$(grep -c 'summary: 0 Removed, 0 Changed' "$work/said")" -eq 2 ] || failed=1
}

stub() {
    python3 "$root/tests/abi/stub.py" "$1" >"$work/stub.c"
    gcc -std=c11 -g -O0 -fPIC -shared "$work/stub.c" -o "$2"
}

compare "$root/tests/abi/lnorm-0.1.0.abi" "$library"
stub "$root/tests/abi/lnorm-0.1.0.h" "$work/then.so"
stub "$root/include/lnorm.h" "$work/now.so"
compare "$work/then.so" "$work/now.so"
exit $failed
