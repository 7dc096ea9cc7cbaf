#!/bin/sh
# symbols.sh SHARED_LIBRARY STATIC_LIBRARY: what the built libraries export, keep and ask for.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
need nm objdump
shared=$1
static=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# same WHAT FILE FILE: fails where the sorted lists differ.
same() {
    if ! diff "$2" "$3" >"$work/diff"; then
        echo "$1:"
        cat "$work/diff"
        status=1
    fi
}

# The functions that lnorm.h declares, the export list, and what the linker made of it.
tr '\n' ' ' <"$root/include/lnorm.h" | grep -oE 'LNORM_API [^;({]*\(' | grep -oE 'lnorm_[a-z0-9_]+ *\($' | tr -d '( ' |
    sort >"$work/declared"
sed -n 's/^        \(lnorm_[a-z0-9_]*\);$/\1/p' "$root/cmake/exports.map" | sort >"$work/listed"
nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exported"
[ -s "$work/declared" ] || { echo "found no declaration in lnorm.h"; exit 1; }
same "lnorm.h (<) and cmake/exports.map (>) differ" "$work/declared" "$work/listed"
same "lnorm.h (<) and the exports of $shared (>) differ" "$work/declared" "$work/exported"

# In the static library every global name is ours.
nm -g --defined-only "$static" | awk 'NF == 3 && $3 !~ /^lnorm_/ { print $3 }' >"$work/foreign"
: >"$work/empty"
same "global names that do not begin with lnorm_" "$work/foreign" "$work/empty"

# The objects in writable memory are the dispatch pointer and what pools know of forks. (.data.rel.ro is read-only once
# the program has started.)
objdump -t "$static" | awk -F '\t' 'NF == 2 { n = split($1, left, " "); split($2, right, " ")
    if (left[n] ~ /^(\.data|\.bss|\*COM\*|\.tdata|\.tbss)/ && left[n] !~ /^\.data\.rel\.ro/ && right[2] !~ /^\./)
        print right[2] }' >"$work/mutable"
sort -o "$work/mutable" "$work/mutable"
printf '%s\n' chosen forks watching watching_failed >"$work/known"
same "mutable objects (<) other than the dispatch pointer and the count of forks (>)" "$work/mutable" "$work/known"

# What the core asks of the C library: nothing that allocates (but for layer.c and pool.c), prints, or has to do with
# threads (but for pool.c).
# Hardened builds ask for checked twins (__memcpy_chk) and for the compiler's own support.
nm "$static" | awk '/:$/ { object = $1 } $1 == "U" && $2 !~ /^lnorm_/ { print object, $2 }' |
    grep -v '^layer\.c\.o: \(malloc\|calloc\|free\)$' |
    grep -vxF "$(for name in malloc free sched_getaffinity __sched_cpucount sysconf sigfillset sigdelset pthread_sigmask \
        pthread_atfork pthread_once pthread_create pthread_join pthread_attr_init pthread_attr_destroy \
        pthread_attr_getstacksize pthread_attr_setstacksize pthread_mutex_init pthread_mutex_destroy \
        pthread_mutex_lock pthread_mutex_unlock pthread_cond_init pthread_cond_destroy pthread_cond_wait \
        pthread_cond_signal pthread_cond_broadcast; do echo "pool.c.o: $name"; done)" |
    sed 's/.* //; s/^__\(.*\)_chk$/\1/' |
    grep -v '^_GLOBAL_OFFSET_TABLE_$\|^__stack_chk_fail$' | sort -u >"$work/asked"
printf '%s\n' fegetenv fesetenv frexp getenv ldexp memcpy memmove memset snprintf sqrt strcmp strlen vsnprintf \
    >"$work/allowed"
comm -23 "$work/asked" "$work/allowed" >"$work/surplus"
same "functions of the C library (<) that the core has no need for" "$work/surplus" "$work/empty"
exit $status
