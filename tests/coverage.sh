#!/bin/sh
# coverage.sh DIRECTORY: builds with gcc --coverage in DIRECTORY, runs the tests that run in this process's build (not
# the other builds of variant.sh), and reports lines and branches of src/, files/ and cli/. docs/proof.md says what came
# of it, and why what is not reached is not.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
need gcc gcovr cmake ctest
directory=$(mkdir -p "$1" && cd "$1" && pwd)
# Children of a fork end by _exit, which leaves no counts without this.
echo 'void __gcov_dump(void); void __real__exit(int); void __wrap__exit(int);
void __wrap__exit(int status) { __gcov_dump(); __real__exit(status); }' >"$directory/exit.c"
gcc -c "$directory/exit.c" -o "$directory/exit.o"
show cmake -S "$root" -B "$directory" -DLNORM_TESTS=ON -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=gcc \
    -DCMAKE_C_FLAGS="-O0 -g --coverage -fprofile-update=atomic -DLNORM_COVERAGE $(only_what_runs)" \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,--wrap=_exit $directory/exit.o" >/dev/null
tests="test_cases test_exact test_kernels test_guards test_repeated test_plan test_layer test_level1 test_layouts
    test_refused_op test_refused_tensors test_extremes test_threads test_pool test_processes test_words test_running
    test_files test_faults fuzz_npy fuzz_safetensors fuzz_calls fuzz_arguments same_bits"
show cmake --build "$directory" --parallel "${JOBS:-2}" --target $tests lnorm_cli >"$directory/build.log"
find "$directory" -name '*.gcda' -delete
these="^($(echo $tests | tr ' ' '|')|cli_test_.*)\$"
(cd "$directory" && ctest --timeout 3600 -R "$these") ||
    echo "coverage.sh: a test failed; the report counts what ran"
gcovr --root "$root" --object-directory "$directory" --filter "$root/src/" --filter "$root/files/" \
    --filter "$root/cli/" --print-summary --txt "$directory/lines.txt"
gcovr --root "$root" --object-directory "$directory" --filter "$root/src/" --filter "$root/files/" \
    --filter "$root/cli/" --branches --txt "$directory/branches.txt"
cat "$directory/lines.txt" "$directory/branches.txt"
