#!/bin/sh
# check_wheels.sh BUILD [PYTEST ARGUMENT...]: builds the Python package's wheel once, looks at it with abi3audit and
# auditwheel, and installs it beside the oldest NumPy that has wheels for a version of Python and beside the newest, each
# in an environment of its own below BUILD, and runs the tests of the NumPy layer there. Every Python of the table below
# that is found, in PATH or among pyenv's, is used; the others are named at the end. PYTHON builds.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "usage: tools/check_wheels.sh BUILD [PYTEST ARGUMENT...]" >&2; exit 2; }
build=$(mkdir -p "$1" && cd "$1" && pwd)
shift

# Python, the first NumPy with wheels for it, and what of ml_dtypes, which asks for a newer one, works beside that.
# pyproject.toml names the least of these NumPys.
oldest="3.11:1.23.2:ml_dtypes<0.5 3.12:1.26.0:ml_dtypes 3.13:2.1.0:ml_dtypes 3.14:2.3.2:ml_dtypes"
tests="arrays cases documentation errors explain functions layers leaks main process verify"

# The interpreter of a version: of a name in PATH that runs, otherwise the newest that pyenv has.
find_python() {
    for python in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
        "$python" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && found=$python
    done
    echo "${found:-}"
}

install() { # environment, interpreter, packages
    directory=$1
    interpreter=$2
    shift 2
    "$interpreter" -m venv --clear "$directory"
    "$directory/bin/python" -m pip install --quiet "$@"
}

wheels=$build/wheels
rm -rf "$wheels"
install "$build/wheels-tools" "${PYTHON:-python3}" 'numpy>=2' 'setuptools>=77.0.3' wheel abi3audit auditwheel
SOURCE_DATE_EPOCH=1000000000 "$build/wheels-tools/bin/python" -m pip wheel --quiet --no-build-isolation --no-deps \
    --wheel-dir "$wheels" .
wheel=$(echo "$wheels"/lnorm-*.whl)
echo "=== ${wheel##*/}"
"$build/wheels-tools/bin/python" -m abi3audit --strict --summary "$wheel"
"$build/wheels-tools/bin/auditwheel" show "$wheel"

files=
for name in $tests; do
    files="$files tests/python/test_$name.py"
done
missing=
status=0
for entry in $oldest; do
    IFS=: read -r version first bfloat16 <<EOF
$entry
EOF
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        missing="$missing $version"
        continue
    fi
    for numpy in "numpy==$first" numpy; do
        environment=$build/wheels-$version-${numpy#numpy}
        echo "=== Python $version, $numpy"
        [ "$numpy" != numpy ] || bfloat16=ml_dtypes
        if ! install "$environment" "$python" --only-binary :all: "$numpy" pytest hypothesis "$wheel" ||
            ! "$environment/bin/python" -m pip install --quiet --only-binary :all: --no-deps "$bfloat16"; then
            status=1
            continue
        fi
        "$environment/bin/python" -m lnorm info
        # shellcheck disable=SC2086 # a list
        "$environment/bin/python" -m pytest -q -p no:cacheprovider -rs $files "$@" || status=1
    done
done
[ -z "$missing" ] || echo "not found, so not tested: Python$(echo "$missing" | sed 's/ /, /g; s/^,//')"
exit $status
