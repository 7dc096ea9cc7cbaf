#!/bin/sh
# check_python.sh BUILD [PYTEST ARGUMENT...]: builds the Python package's wheel, installs it into a virtual environment
# of its own below BUILD and runs tests/python there. PYTHON names the interpreter, of version 3.11 or later.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "usage: tools/check_python.sh BUILD [PYTEST ARGUMENT...]" >&2; exit 2; }
build=$(mkdir -p "$1" && cd "$1" && pwd)
shift
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "tools/check_python.sh: PYTHON: expected version 3.11 or later, got $("$python" --version 2>&1)" >&2
    exit 1
}
"$python" -c 'import ensurepip, os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || {
    echo "tools/check_python.sh: PYTHON: expected one with venv and Python.h (Debian: apt-get install python3-venv" \
        "python3-dev), got $python without" >&2
    exit 1
}
environment=$build/python-venv
[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
python=$environment/bin/python
# As installed last: a requirement that changes is installed where older ones were. A flaky network is asked again.
requirements=tests/python/requirements.txt
cmp -s "$requirements" "$environment/requirements.txt" || {
    "$python" -m pip install --quiet --retries 10 --timeout 60 -r "$requirements"
    cp "$requirements" "$environment/requirements.txt"
}

wheels=$build/python-wheel
rm -rf "$wheels"
SOURCE_DATE_EPOCH=1000000000 "$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$wheels" .
wheel=$(echo "$wheels"/lnorm-*.whl)
"$python" -m pip install --quiet --no-deps --force-reinstall "$wheel"
# Tests that compare with the program say so where it has not been built.
for program in "$build/check/lnorm" "$build/lnorm"; do
    [ -x "$program" ] && export LNORM_PROGRAM="$program" && break
done
LNORM_WHEEL=$wheel "$python" -m pytest -q -p no:cacheprovider tests/python -rs "$@"
