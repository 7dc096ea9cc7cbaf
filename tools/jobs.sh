#!/bin/sh
# jobs.sh: how many compilers or tests this machine bears at once. One for each processor that this process may use, by
# its affinity and by its container's quota, and for each 1.5 GB of memory that is free or left to the container: the
# largest sources take 250 MB, 460 MB with sanitizers, and tests compile, too.
set -u

# The first word of a file that may not be there; nothing where it is no number ("max").
number() {
    { read -r word _ <"$1"; } 2>/dev/null || return 0
    case $word in
    '' | *[!0-9]*) ;;
    *) echo "$word" ;;
    esac
}

jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# at_most NUMBER: of what can be found out
at_most() {
    [ -n "$1" ] && [ "$1" -lt "$jobs" ] && jobs=$1
}

groups=/sys/fs/cgroup
quota=$(number $groups/cpu.max) period=100000 # version 2, whose period is seldom another
[ -n "$quota" ] || { quota=$(number $groups/cpu/cpu.cfs_quota_us) period=$(number $groups/cpu/cpu.cfs_period_us); }
[ -n "$quota" ] && [ "${period:-0}" -gt 0 ] && at_most $(((quota + period - 1) / period))
at_most "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null | awk '{ printf "%d", $1 / 1500000 }')"
for limit in $groups/memory.max $groups/memory/memory.limit_in_bytes; do
    at_most "$(number $limit | awk '{ printf "%d", $1 / 1500000000 }')"
done
[ "$jobs" -ge 1 ] || jobs=1
echo "$jobs"
