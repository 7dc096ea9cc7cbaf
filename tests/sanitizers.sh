#!/bin/sh
# sanitizers.sh DIRECTORY [address|memory|thread]...: the test suite under the sanitizers, all three unless told, each
# built in DIRECTORY/NAME. That is minutes of compiling: `make check` has a smaller one (variant.sh sanitized).
#
#   address  gcc, AddressSanitizer with leaks, UndefinedBehaviorSanitizer: C tests, the program, the fuzz targets
#   memory   clang, MemorySanitizer with origins: the tests that need no library but cmocka (nothing else is
#            instrumented)
#   thread   clang, ThreadSanitizer: what has to do with threads
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
directory=$1
shift
[ $# -gt 0 ] || set -- address memory thread
clang=$(find_clang)
core="test_plan test_layer test_level1 test_layouts test_refused_op test_refused_tensors test_extremes test_words
    test_running test_threads test_pool test_processes test_kernels"

# check NAME COMPILER FLAGS TARGET...: builds, then runs the tests of the targets' names and the program's.
check() {
    name=$1 compiler=$2 flags=$3
    shift 3
    need "$compiler" cmake ctest
    mkdir -p "$directory"
    echo 'int main(void) { return 0; }' >"$directory/probe.c"
    "$compiler" $flags "$directory/probe.c" -o "$directory/probe" 2>/dev/null || missing "$flags of $compiler"
    show cmake -S "$root" -B "$directory/$name" -DLNORM_TESTS=ON -DLNORM_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_C_FLAGS="-O1 -g -fno-omit-frame-pointer $(only_what_runs) $flags" >/dev/null
    show cmake --build "$directory/$name" --parallel "${JOBS:-2}" --target "$@" >"$directory/$name.log" ||
        { tail -20 "$directory/$name.log"; exit 1; }
    tests=$(echo "$*" | sed 's/lnorm_cli/cli_test_.*/; s/ /|/g')
    (cd "$directory/$name" && show ctest --output-on-failure -R "^($tests)\$")
}

export LNORM_SANITIZED=1 # memory is not measured
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=die_after_fork=0:allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1
for name in "$@"; do
    case $name in
    address)
        check address gcc "-fsanitize=address,undefined -fno-sanitize-recover=all" $core test_files test_cases \
            fuzz_npy fuzz_safetensors fuzz_calls lnorm_cli
        ;;
    memory)
        check memory "$clang" "-fsanitize=memory -fsanitize-memory-track-origins" $core
        ;;
    thread)
        check thread "$clang" "-fsanitize=thread -DLNORM_NO_AVX2" test_threads test_pool test_layer test_processes
        ;;
    *)
        echo "no sanitizer $name"
        exit 2
        ;;
    esac
done
