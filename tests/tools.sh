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

runs_avx512() { # as dispatch.c asks
    for feature in avx512f avx512bw avx512dq avx512vl; do
        grep -qw "$feature" /proc/cpuinfo 2>/dev/null || return 1
    done
}

# Flags for builds that take long: without what this machine cannot run.
only_what_runs() {
    runs_avx512 || echo -DLNORM_NO_AVX512
}

# Flags for builds of which only the widest instruction set is run.
only_the_widest() {
    if runs_avx512; then
        echo -DLNORM_NO_AVX2 -DLNORM_NO_SSE2
    elif grep -qw avx2 /proc/cpuinfo 2>/dev/null && grep -qw fma /proc/cpuinfo; then
        echo -DLNORM_NO_AVX512 -DLNORM_NO_SSE2
    else
        echo -DLNORM_NO_AVX512 -DLNORM_NO_AVX2
    fi
}
