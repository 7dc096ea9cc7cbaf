#!/bin/sh
# same_bits.sh COMMAND [ARGUMENT...]: the command must print tests/vectors/same_bits.txt, byte for byte.
# Status 77 of the command (LNORM_ISA names what this machine lacks) is passed on.
set -u
expected=$(dirname "$0")/vectors/same_bits.txt
[ -s "$expected" ] || { echo "$expected is missing"; exit 1; }
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"$@" >"$printed"
status=$?
[ $status -eq 77 ] && exit 77
if ! cmp -s "$expected" "$printed"; then
    echo "other bits than $expected (<); of $(wc -l <"$expected") lines these differ, at most 20 shown:"
    diff "$expected" "$printed" | head -n 20
    exit 1
fi
[ $status -eq 0 ] || { echo "status $status of: $*"; exit 1; }
echo "$(wc -l <"$expected") operations, the same bits"
