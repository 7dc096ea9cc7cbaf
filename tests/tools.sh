# Read by the test scripts. A tool that a test needs and this machine lacks: a failure in CI, elsewhere the test is
# reported as skipped (status 77) with the reason.

missing() {
    echo "MISSING: $1. Run tools/setup.sh (or install it yourself) to have this test run."
    [ "${CI:-}" = true ] && exit 1
    exit 77
}

# What this machine is or has, and no tool can give it: skipped, in CI, too.
skip() {
    echo "SKIPPED: $*"
    exit 77
}

need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || missing "$tool"
    done
}

# The name of the clang here: clang itself, or the newest clang-N, as Debian calls it.
find_clang() {
    for suffix in "" -21 -20 -19 -18 -17 -16 -15 -14 -13 -12 -11; do
        command -v "clang$suffix" >/dev/null 2>&1 && { echo "clang$suffix"; return; }
    done
    echo clang
}

# Prints a command, then runs it.
show() {
    echo "+ $*"
    "$@"
}

# For a build of which only what this machine runs is of use: a flag that leaves out the AVX-512 kernels, or nothing.
# dispatch.c asks for the same four.
only_what_runs() {
    for feature in avx512f avx512bw avx512dq avx512vl; do
        grep -qw "$feature" /proc/cpuinfo 2>/dev/null || { echo -DLNORM_NO_AVX512; return; }
    done
}
