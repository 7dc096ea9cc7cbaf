#!/bin/sh
# instructions.sh PROGRAM FLAGS [--update]: the instructions that the calls of tests/instructions.c take, counted by
# callgrind, against tests/data/instructions.txt. Time cannot be tested on a shared machine; this can, to the percent.
#
# Fails where a call takes over 3 % more than recorded, and where it takes over 3 % fewer: then the record is out of
# date and would hide the next loss. --update writes what was counted; the commit says why. Counts belong to a compiler
# (they are recorded by its version) and to the flags of a release build: others are skipped.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
program=$1
flags=$(echo $2)
update=${3:-}
record=$root/tests/data/instructions.txt
limit=3

[ "$(uname -m)" = x86_64 ] || skip "the counts are of x86-64"
[ "$flags" = "-O2 -DNDEBUG" ] || skip "the counts are of a build with -O2 -DNDEBUG, this one has: $flags"
need valgrind callgrind_annotate
compiler=$("$program" compiler)
if [ -z "$update" ] && ! grep -q "^$compiler " "$record"; then
    skip "$record has no counts of $compiler. To record them: tests/instructions.sh $program '$flags' --update"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What valgrind knows, of what this library has.
isas=$(sed -n 's/^ISA(\(scalar\|sse2\|avx2\),.*/\1/p' "$root/src/lists/isas.def")

# count ISA: lines "COMPILER ISA CALL INSTRUCTIONS". Without ERMS the C library's memset and memcpy are the same
# instructions on every machine with AVX2.
count() {
    status=0
    LNORM_ISA=$1 GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS,-FSRM valgrind --tool=callgrind --toggle-collect='count_*' \
        --callgrind-out-file="$work/$1" "$program" >"$work/log" 2>&1 || status=$?
    [ $status -ne 77 ] || skip "this machine or build lacks $1"
    [ $status -eq 0 ] || { cat "$work/log"; exit 1; }
    callgrind_annotate --inclusive=yes --threshold=100 "$work/$1" |
        sed -n "s/^ *\([0-9,]*\) .*:count_\([a-z0-9_]*\).*/\2 \1/p" | tr -d , | sort -u |
        sed "s/^/$compiler $1 /"
}

for isa in $isas; do
    count "$isa" >"$work/counted.$isa"
    [ -s "$work/counted.$isa" ] || { echo "callgrind counted nothing"; exit 1; }
done
cat "$work"/counted.* >"$work/counted"

if [ "$update" = --update ]; then
    touch "$record"
    { grep -v "^$compiler " "$record" || true; sort "$work/counted"; } >"$work/record"
    cp "$work/record" "$record"
    echo "$(grep -c "^$compiler " "$record") counts of $compiler written to $record"
    exit 0
fi

awk -v limit=$limit -v compiler="$compiler" '
    FNR == NR { if ($1 == compiler) recorded[$2 " " $3] = $4; next }
    {
        call = $2 " " $3; seen[call] = 1; calls++
        if (!(call in recorded)) { print call ": not recorded"; wrong++; next }
        change = 100 * ($4 / recorded[call] - 1)
        if (change > limit || change < -limit) {
            printf "%s: %d instructions, recorded %d: %+.1f %%\n", call, $4, recorded[call], change
            wrong++
        }
    }
    END {
        for (call in recorded) if (!(call in seen)) { print call ": recorded, but not called any more"; wrong++ }
        if (!wrong) print calls " calls, all within " limit " % of the record"
        exit wrong ? 1 : 0
    }' "$record" "$work/counted" || {
    echo "The limit is $limit %. If the change is meant: tests/instructions.sh $program '$flags' --update"
    exit 1
}
