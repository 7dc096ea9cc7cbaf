#!/bin/sh
# setup.sh demo|check: looks for the tools that `make demo` or `make check` need. What is missing is installed through
# apt where this script may do that (as root, on a system with apt-get); otherwise it prints the one line to run and
# stops with status 1. Asks nothing on standard input, and is silent where nothing is missing.
set -eu
goal=${1:-check}
case $goal in
demo | check) ;;
*)
    echo "usage: tools/setup.sh demo|check" >&2
    exit 2
    ;;
esac
. "$(dirname "$0")/../tests/tools.sh"

have() {
    command -v "$1" >/dev/null 2>&1
}

# A header that the C compiler finds.
have_header() {
    have cc && echo "#include <$1>" | cc -E -x c - -o /dev/null 2>/dev/null
}

# A library that pkg-config knows.
have_module() {
    have pkg-config && pkg-config --exists "$1"
}

# need TEST ARGUMENT PACKAGE...: without it nothing is built.   want: without it some tests are skipped.
need() {
    "$1" "$2" && return
    shift 2
    required="$required $*"
}
want() {
    "$1" "$2" && return
    shift 2
    optional="$optional $*"
}

have_clang() {
    have "$(find_clang)"
}

# What the Python package is built and tested with.
have_python() {
    have "$1" && "$1" -c 'import ensurepip, os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' \
        2>/dev/null
}

look() {
    required=
    optional=
    need have cc gcc libc6-dev
    need have make make
    need have cmake cmake
    need have_header stdlib.h libc6-dev
    need have pkg-config pkg-config
    need have_module jansson libjansson-dev
    need have_header mpfr.h libmpfr-dev
    need have_header gmp.h libgmp-dev
    [ "$goal" = check ] || return 0
    need have_python python3 python3 python3-venv python3-dev
    need have nm binutils
    need have_module cmocka libcmocka-dev
    want have gcc gcc
    want have c++ g++
    want have_clang . clang
    want have_header simde/x86/avx512.h libsimde-dev
    want have valgrind valgrind
    want have abidiff abigail-tools
    want have aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    want have s390x-linux-gnu-gcc gcc-s390x-linux-gnu libc6-dev-s390x-cross
    want have i686-linux-gnu-gcc gcc-i686-linux-gnu libc6-dev-i386-cross
    want have help2man help2man
    want have qemu-aarch64 qemu-user
    want have qemu-s390x qemu-user
    want have x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
}

install() {
    echo "tools/setup.sh: installing$required$optional"
    export DEBIAN_FRONTEND=noninteractive
    apt="apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600" # a flaky network; another apt-get at work
    $apt update </dev/null || echo "tools/setup.sh: apt-get update failed; trying with the lists that are here"
    $apt install -y --no-install-recommends $required $optional </dev/null && return
    for package in $required $optional; do
        $apt install -y --no-install-recommends "$package" </dev/null ||
            echo "tools/setup.sh: apt-get could not install $package"
    done
}

look
[ -n "$required$optional" ] || exit 0
if have apt-get && [ "$(id -u)" = 0 ]; then
    install
    look
fi
line="apt-get install --no-install-recommends$required$optional"
if [ -n "$required" ]; then
    echo "tools/setup.sh: make $goal needs:$required. Run this (as root, or the like on your system), then again:" >&2
    echo "    $line" >&2
    exit 1
fi
if [ -n "$optional" ]; then
    echo "tools/setup.sh: MISSING, the tests that need them will be skipped:$optional. To have them:"
    echo "    $line"
    [ "${CI:-}" = true ] && exit 1
fi
exit 0
