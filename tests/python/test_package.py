"""The wheel and the sdist: the same bytes from anywhere, and complete.

LNORM_WHEEL names the wheel under test, which `make check-python` built from the tree. It is built again from the
unpacked sdist: in another directory, of files that only their owner may read, with the umask 077, where directories list
their files in another order. It must come out the same."""
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
# A sitecustomize.py: os.listdir, os.walk and pathlib see every directory from Z to A.
BACKWARDS = """\
import os
listdir, scandir = os.listdir, os.scandir

class Backwards(list):
    __enter__ = list.__iter__
    def __exit__(self, *exception):
        pass
    def __next__(self):
        if not self:
            raise StopIteration
        return self.pop(0)

os.listdir = lambda *path: sorted(listdir(*path), reverse=True)
os.scandir = lambda *path: Backwards(sorted(scandir(*path), key=lambda entry: entry.name, reverse=True))
"""

pytestmark = pytest.mark.skipif(not WHEEL, reason="LNORM_WHEEL is not set: make check-python sets it")


def run(*command, cwd=ROOT, other=None):
    """other: the directory of a sitecustomize.py, for a process that also has another umask."""
    environment = {**EPOCH, "PYTHONPATH": str(other)} if other else EPOCH
    done = subprocess.run([sys.executable, *map(str, command)], cwd=cwd, env=environment, capture_output=True,
                          text=True, timeout=900, umask=0o077 if other else 0o022)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def sdist(directory, cwd=ROOT, other=None):
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(directory)!r})"
    run("-c", code, cwd=cwd, other=other)
    (archive,) = directory.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture
def unpacked(archive, tmp_path):
    """The sdist, as a person with the umask 077 has it."""
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "sdist", filter="data")
    for path in tmp_path.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    (source,) = (tmp_path / "sdist").iterdir()
    (source / "setup.cfg").unlink()  # which the making of an sdist adds
    return source


@pytest.fixture
def other(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/sitecustomize.py").write_text(BACKWARDS)
    return tmp_path / "other"


def test_sdist_is_complete(archive):
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    tracked = {path.relative_to(ROOT).as_posix() for folder in ("src", "include", "python/core", "python/lnorm")
               for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".inc", ".def", ".py", ".pyi")}
    assert tracked <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or name.startswith("build")]


def test_the_sdist_from_the_sdist_is_the_one_from_the_tree(archive, unpacked, other, tmp_path):
    (tmp_path / "again").mkdir()
    assert sdist(tmp_path / "again", unpacked, other).read_bytes() == archive.read_bytes()


def test_the_wheel_from_the_sdist_is_the_one_from_the_tree(unpacked, other, tmp_path):
    run("-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, unpacked,
        other=other)
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
