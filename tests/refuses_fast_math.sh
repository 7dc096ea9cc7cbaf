#!/bin/sh
# A compiler that announces fast-math must be refused, with a message that says what to do.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
clang=$(find_clang)
need gcc "$clang"
failures=0
for compiler in gcc "$clang"; do
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        if message=$("$compiler" -I"$root/include" $flag -fsyntax-only "$root/src/reference.c" 2>&1); then
            echo "$compiler $flag: accepted"
            failures=1
        elif ! echo "$message" | grep -q 'compile it without -ffast-math'; then
            echo "$compiler $flag: another message: $message"
            failures=1
        fi
    done
done
exit $failures
