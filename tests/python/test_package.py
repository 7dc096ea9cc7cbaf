"""The wheel and the sdist: the same bytes from anywhere, and complete.

LNORM_WHEEL names the wheel under test, which `make check-python` built from the tree. It is built again from the
unpacked sdist, in another directory, and must come out the same."""
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("LNORM_WHEEL")
EPOCH = {**os.environ, "SOURCE_DATE_EPOCH": "1000000000"}

pytestmark = pytest.mark.skipif(not WHEEL, reason="LNORM_WHEEL is not set: make check-python sets it")


def run(*command, cwd=ROOT):
    done = subprocess.run([sys.executable, *map(str, command)], cwd=cwd, env=EPOCH, capture_output=True, text=True,
                          timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def sdist(directory):
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(directory)!r})"
    run("-c", code)
    (archive,) = directory.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return sdist(tmp_path_factory.mktemp("sdist"))


def test_sdist_is_reproducible_and_complete(archive, tmp_path):
    assert sdist(tmp_path).read_bytes() == archive.read_bytes()
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    tracked = {path.relative_to(ROOT).as_posix() for folder in ("src", "include", "python/core")
               for path in (ROOT / folder).rglob("*.[ch]")}
    assert tracked <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or name.startswith("build")]


def test_the_wheel_from_the_sdist_is_the_one_from_the_tree(archive, tmp_path):
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    run("-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, source)
    (again,) = tmp_path.glob("*.whl")
    assert again.name == pathlib.Path(WHEEL).name
    assert again.read_bytes() == pathlib.Path(WHEEL).read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
        text = b"".join(wheel.read(name) for name in wheel.namelist())
    sources = {path.relative_to(ROOT / "python").as_posix() for path in (ROOT / "python/lnorm").rglob("*")
               if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    assert set(names) == {*sources, "lnorm/_core.abi3.so"}
    assert "-cp311-abi3-" in WHEEL
    assert str(ROOT).encode() not in text


def test_only_the_limited_api_is_used():
    pytest.importorskip("abi3audit")
    said = run("-m", "abi3audit", "--verbose", "--strict", WHEEL)
    assert "0 ABI version mismatches and 0 ABI violations found" in " ".join(said.split())
