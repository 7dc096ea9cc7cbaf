#!/bin/sh
# size.sh SHARED_LIBRARY FLAGS COMPILER: what the library weighs as it ships, all instruction sets, without debugging
# symbols. The limit is for a compiler, a machine and the flags of a release build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
limit=539500
flags=$(echo $2)
compiler=$3
[ "$flags" = "-O2 -DNDEBUG" ] || skip "the limit is for a build with -O2 -DNDEBUG, this one has: $flags"
need strip
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
size=$(wc -c <"$stripped")
[ "$compiler $(uname -m)" = "gcc-12 x86_64" ] || skip "the limit is for gcc-12 on x86_64; $compiler here: $size bytes"
echo "$size bytes, limit $limit"
[ "$size" -le $limit ]
