#!/bin/sh
# fuzz.sh DIRECTORY [SECONDS [TARGET...]]: builds the fuzz targets with clang, libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer in DIRECTORY and runs each for so long (default 60 s each: npy, safetensors, arguments,
# calls), beginning with the stored inputs. New inputs stay in DIRECTORY/TARGET.corpus; what crashes is in
# DIRECTORY/TARGET.crash-..., and belongs into tests/fuzz/TARGET/ when it is mended.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/tools.sh"
directory=$1
seconds=${2:-60}
[ $# -gt 2 ] && shift 2 || set -- npy safetensors arguments calls
clang=$(find_clang)
need "$clang" pkg-config
mkdir -p "$directory/objects"
cd "$directory"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(
    const unsigned char *d, unsigned long n) { (void)d; (void)n; return 0; }' >probe.c
"$clang" -fsanitize=fuzzer,address probe.c -o probe 2>/dev/null || missing "libFuzzer of $clang"

flags="-std=c11 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
    $(only_what_runs) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I$root/include -I$root/src -I$root/tests -I$root/cli
    $(pkg-config --cflags jansson mpfr)"
libraries="$(pkg-config --libs jansson mpfr) -lgmp -lm -pthread"

# Everything once; objects carry their directory in their names. main of the program makes way for
# libFuzzer's.
newest=$(find "$root/src" "$root/include" "$root/files" "$root/cli" "$root/tests" -name '*.[hid]*' -printf '%T@ %p\n' |
    sort -n | tail -1 | cut -d ' ' -f 2-)
for source in "$root"/src/*.c "$root"/src/isa/*.c "$root"/files/*.c "$root"/cli/*.c "$root"/tests/kernel_case.c \
    "$root"/tests/kernel_memory.c "$root"/tests/reference_*.c; do
    object=objects/$(echo "${source#"$root"/}" | tr / _ | sed 's/c$/o/')
    extra=
    case $source in
    */cli/main.c) extra=-Dmain=lnorm_main ;;
    */isa/*) extra=-fno-sanitize=undefined,address ;; # minutes of compiling; guard pages look after kernels
    esac
    [ "$object" -nt "$source" ] && [ "$object" -nt "$newest" ] || echo "$extra -c $source -o $object"
done | xargs -r -P "${JOBS:-$("$root/tools/jobs.sh")}" -L 1 "$clang" $flags

for target in "$@"; do
    case $target in
    arguments) objects="objects/src_*.o objects/files_*.o objects/cli_*.o" ;;
    calls) objects="objects/src_*.o objects/tests_*.o" ;;
    *) objects="objects/src_*.o objects/files_*.o" ;;
    esac
    "$clang" $flags -fsanitize=fuzzer "$root/tests/fuzz/fuzz_$target.c" $objects $libraries -o "fuzz_$target"
    mkdir -p "$target.corpus"
    dictionary= mute=
    [ "$target" = arguments ] && mute=-close_fd_mask=2 # the program's messages
    [ -f "$root/tests/fuzz/$target.dict" ] && dictionary=-dict=$root/tests/fuzz/$target.dict
    # absolute paths: a target may go elsewhere
    show "./fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_funcs=0 \
        -print_final_stats=1 \
        -artifact_prefix="$PWD/$target." $dictionary $mute "$PWD/$target.corpus" "$root/tests/fuzz/$target"
done
