#!/bin/sh
# variant.sh NAME DIRECTORY: compiles the sources and tests/same_bits.c another way, from nothing, into DIRECTORY, and
# runs the result: same bits. `variant.sh list` prints the names, `list checked` those that are tests of `make check`.
# Kernels that would not be run are left out: compiling them is what takes time.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
case $# in
1) [ "$1" = list ] && exec sed -n 's/^\([a-z0-9_]*\)) \(: \)\{0,1\}# .*/\1/p' "$0" ;;
2) [ "$*" = "list checked" ] && exec sed -n 's/^\([a-z0-9_]*\)) # .*/\1/p' "$0" ;;
esac
[ $# = 2 ] || { echo "usage: tests/variant.sh NAME DIRECTORY, or tests/variant.sh list [checked]" >&2; exit 2; }
name=$1
directory=$2
mkdir -p "$directory"
cd "$directory"
ln -sfn "$root" tree # a name without the blanks that the root's may have
root=tree

warnings="-Wall -Wextra"
[ "${CI:-}" = true ] && warnings="$warnings -Werror"
strict="-std=c11 $warnings -Wpedantic -Wconversion"
sources=$(ls "$root"/src/*.c "$root"/src/isa/*.c)
program=$root/tests/same_bits.c
clang=$(find_clang)

# compile COMPILER FLAG...: several sources at once, then the link.
compile() {
    need "$1"
    rm -f ./*.o
    echo "+ $* -I$root/include -c (each source)"
    for source in $sources $program; do echo "$source"; done |
        xargs -P "${JOBS:-$("$root/tools/jobs.sh")}" -n 1 "$@" -I"$root/include" -c
    show "$@" ./*.o -o same_bits -lm -pthread
}

# bits COMMAND...: the program must print what every build prints. `hostile`: for a caller with another rounding mode
# and flushed subnormals; that costs as much again, so the emulated machines do one or the other.
bits() {
    show "$root/tests/same_bits.sh" "$@"
}

# refuses ISA: no operation is computed, and the message says why.
refuses() {
    cat >refused.c <<'END'
#include "lnorm.h"
#include <stdio.h>
int main(void) {
    lnorm_plan plan;
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    float x[2] = {1, 2};
    lnorm_status planned = lnorm_plan_init(&plan, &op, &io, &error);
    lnorm_status run = lnorm_layer_norm_f32(x, NULL, NULL, x, NULL, NULL, 1, 2, 0);
    puts(error.message);
    return planned != LNORM_NOT_AVAILABLE || run != LNORM_NOT_AVAILABLE || x[1] != 2 || lnorm_isa();
}
END
    rm -f same_bits.o
    show "$clang" -I"$root/include" refused.c ./*.o -o refused -lm -pthread
    show env LNORM_ISA="$1" ./refused >message || { echo "not refused: $(cat message)"; exit 1; }
    grep 'without -ffp-contract=fast' message || { echo "another message: $(cat message)"; exit 1; }
}

case $name in
clang) # the other compiler, and what it says of tests and examples
    show "$clang" $strict -D_GNU_SOURCE -I"$root/include" -I"$root/src" -fsyntax-only "$root"/tests/*.c \
        "$root"/examples/*.c "$root"/files/*.c "$root"/cli/*.c "$root"/src/isa/*.c
    compile "$clang" $strict -O2 $(only_the_widest)
    bits ./same_bits
    bits ./same_bits hostile
    ;;
gcc_native) # every flag that lets gcc fuse or reorder and that it does not announce by a macro
    compile gcc -O3 -march=native -DLNORM_SCALAR_KERNELS $(only_the_widest) -ffp-contract=fast \
        -funroll-loops -fno-trapping-math -fno-math-errno
    bits ./same_bits
    bits env LNORM_ISA=scalar ./same_bits hostile
    ;;
clang_native) # clang fuses by default; arithmetic.h's pragmas keep it from that
    compile "$clang" -O3 -march=native -DLNORM_SCALAR_KERNELS $(only_the_widest) -fno-trapping-math -fno-math-errno
    bits ./same_bits
    bits env LNORM_ISA=scalar ./same_bits hostile
    ;;
clang_contracts) # -ffp-contract=fast makes clang ignore every pragma: refused, or the same bits where nothing fuses
    grep -qw fma /proc/cpuinfo || skip "no fma among the flags of /proc/cpuinfo, and nothing to refuse without"
    compile "$clang" -O1 -ffp-contract=fast -DLNORM_NO_AVX512
    bits env LNORM_ISA=sse2 ./same_bits
    refuses avx2
    show "$clang" -O1 -march=native -ffp-contract=fast -DLNORM_NO_AVX512 -I"$root/include" -c "$root/src/dispatch.c"
    refuses sse2 # dispatch.c stands for all that is compiled for no instruction set in particular
    ;;
no_flags) # the one line of README; what the compiler says of that and of the examples without -O
    need cc
    show cc $warnings -I"$root/include" $sources "$program" -o same_bits -lm -pthread
    show cc $warnings -I"$root/include" -c "$root"/examples/*.c
    bits ./same_bits
    ;;
dist_clang) # the two-file distribution, without any flag, with clang
    need "$clang" python3
    show python3 "$root/tools/amalgamate.py" .
    show "$clang" -c lnorm.c
    show "$clang" -I. "$program" lnorm.o -o same_bits -lm -pthread
    bits ./same_bits
    ;;
no_threads) # pools of the calling thread, and no need for pthread
    compile gcc $strict -O2 -DLNORM_NO_THREADS -DLNORM_NO_AVX2 -DLNORM_NO_AVX512
    nm pool.o | grep pthread && { echo "pool.c asks for pthread"; exit 1; }
    bits ./same_bits
    ;;
sanitized) # memory and undefined behaviour
    need gcc
    echo 'int main(void) { return 0; }' >probe.c
    gcc -fsanitize=address,undefined probe.c -o probe 2>/dev/null || missing "the sanitizers of gcc"
    compile gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all $(only_the_widest)
    bits ./same_bits
    ;;
aarch64) # emulated; static, so that no foreign libraries need to be installed
    need qemu-aarch64
    compile aarch64-linux-gnu-gcc $strict -O2 -static
    bits qemu-aarch64 ./same_bits hostile
    ;;
aarch64_clang) # clang fuses by default where the machine has the instruction
    need qemu-aarch64 aarch64-linux-gnu-gcc
    compile "$clang" --target=aarch64-linux-gnu $strict -O2 -static
    bits qemu-aarch64 ./same_bits
    ;;
s390x) # big-endian
    need qemu-s390x
    compile s390x-linux-gnu-gcc $strict -O2 -static
    bits qemu-s390x ./same_bits hostile
    ;;
i686) # 32 bits; double as SSE2 has it, but a C library that computes on the x87. Most x86-64 kernels run it
    compile i686-linux-gnu-gcc $strict -O1 -msse2 -mfpmath=sse -static
    ./same_bits nonsense 2>/dev/null || [ $? -eq 2 ] || { need qemu-i386; emulator=qemu-i386; }
    bits ${emulator:-} ./same_bits hostile
    ;;
riscv64) : # more than a minute of emulation: by hand
    need qemu-riscv64
    compile riscv64-linux-gnu-gcc $strict -O2 -static
    bits qemu-riscv64 ./same_bits
    bits qemu-riscv64 ./same_bits hostile
    ;;
mingw) # compiles and links; there is no Windows here to run it
    compile x86_64-w64-mingw32-gcc -std=c11 -Wall -Werror -O2
    ;;
*)
    echo "no variant $name"
    exit 2
    ;;
esac
