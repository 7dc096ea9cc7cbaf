#!/bin/sh
# consumer.sh BUILD_DIRECTORY WORK_DIRECTORY: installs lnorm to a prefix, moves the prefix, and builds and runs a C and
# a C++ program against it, static and shared, with pkg-config and with find_package.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tests/tools.sh"
build=$1
work=$2
need cmake pkg-config cc c++
rm -rf "$work"
mkdir -p "$work"
show cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
cd "$work" # paths from here on are relative: pkg-config's words cannot be told apart where there are blanks in them
mv first prefix
prefix=prefix

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name lnorm.pc)")
library=$(dirname "$(find "$prefix" -name liblnorm.a)")
export PKG_CONFIG_PATH
export LD_LIBRARY_PATH="$library"
version=$(pkg-config --modversion lnorm)
warnings="-Wall -Wextra -Wpedantic -Werror"

# one NAME COMPILER SOURCE LIBRARIES: builds a program and runs it; it prints the version of the library it runs with.
one() {
    show $2 $warnings "$root/tests/consumer/$3" $(pkg-config --cflags lnorm) $4 -o "$work/$1"
    [ "$("$work/$1")" = "lnorm $version" ] || { echo "$1: wrong output"; "$work/$1"; exit 1; }
}
shared=$(pkg-config --libs lnorm)
static=$(pkg-config --libs --static lnorm | sed 's/-llnorm/-l:liblnorm.a/')
one pc_c_shared "cc -std=c99" consumer.c "$shared"
one pc_c_static "cc -std=c11" consumer.c "$static"
one pc_cpp_shared "c++ -std=c++11" consumer.cpp "$shared"
one pc_cpp_static "c++ -std=c++17" consumer.cpp "$static"
nm -D "$work/pc_c_shared" | grep -q 'U lnorm_version' || { echo "pc_c_shared holds the library itself"; exit 1; }
nm -D "$work/pc_c_static" | grep -q 'U lnorm_version' && { echo "pc_c_static needs the shared library"; exit 1; }

show cmake -S "$root/tests/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/$prefix" >"$work/cmake.log" 2>&1 ||
    { cat "$work/cmake.log"; exit 1; }
show cmake --build "$work/build" >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
for program in c_static c_shared cpp_static cpp_shared; do
    [ "$("$work/build/$program")" = "lnorm $version" ] || { echo "$program: wrong output"; exit 1; }
done
echo "8 programs built and run"
