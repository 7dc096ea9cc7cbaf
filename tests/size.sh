#!/bin/sh
# size.sh SHARED_LIBRARY FLAGS: what the library weighs as it ships, all instruction sets, without debugging
# symbols.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
limit=636000
flags=$(echo $2)
if [ "$flags" != "-O2 -DNDEBUG" ]; then
    echo "skipped: the limit is for a build with -O2 -DNDEBUG, this one has: $flags"
    exit 77
fi
need strip
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
size=$(wc -c <"$stripped")
echo "$size bytes, limit $limit"
[ "$size" -le $limit ]
