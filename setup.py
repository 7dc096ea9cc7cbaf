"""The Python package's C extension: python/core, the library's own sources and a few of the program's, compiled into
one file.

What is not here is in pyproject.toml. The version and the list of sources have their home elsewhere in the tree, and
are read from there."""
import gzip
import os
import pathlib
import re
import sysconfig
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

ROOT = pathlib.Path(__file__).resolve().parent
# A build for free-threaded Python cannot use the limited API.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")


def version():
    return re.search(r'LNORM_VERSION_STRING "([^"]+)"', (ROOT / "include/lnorm.h").read_text()).group(1)


def library_sources():
    return re.findall(r"src/[\w/]+\.c", (ROOT / "cmake/sources.cmake").read_text().split(")")[0])


def core_sources():
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "python/core").glob("*.c"))


# What the program draws for `lnorm explain`, the package draws with the same files.
DRAWING = ("axes", "drawn", "explanation", "facts", "picture", "picture_print", "scheme", "svg", "values", "wrap")


def drawing(ending):
    return [f"cli/{name}.{ending}" for name in DRAWING if (ROOT / f"cli/{name}.{ending}").exists()]


class BuildInParallel(build_ext):
    """setuptools compiles the sources of an extension one after the other, which takes a minute here."""

    def build_extensions(self):
        serial = self.compiler.compile

        def compile_all(sources, **options):
            with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:  # of up to 250 MB each
                objects = pool.map(lambda source: serial([source], **options), sources)
                return [name for names in objects for name in names]

        self.compiler.compile = compile_all
        super().build_extensions()


class ReproducibleSdist(sdist):
    """The same bytes from the same files: sorted, without owners, at the time SOURCE_DATE_EPOCH if there is one."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **ignored):
        moment = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def plain(entry):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = moment
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        name = f"{base_name}.tar.gz"
        with open(name, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for path in sorted(pathlib.Path(base_dir).rglob("*")):
                    archive.add(path, path.as_posix(), recursive=False, filter=plain)
        return name


class ReproducibleWheel(bdist_wheel):
    """Modes of files are those of the tree and of the umask until here, and the archive holds them."""

    def write_wheelfile(self, *arguments, **options):
        super().write_wheelfile(*arguments, **options)
        for path in pathlib.Path(self.bdist_dir).rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.suffix == ".so" else 0o644)


# -O2 is what the kernels are written for and measured with. -g0: debugging information would put the path of the build
# into the wheel. Hidden: another liblnorm in the process and this one must not find each other's functions.
core = Extension(
    "lnorm._core",
    core_sources() + drawing("c") + library_sources(),
    depends=drawing("h"),
    include_dirs=["include", "src", numpy.get_include()],
    define_macros=[("LNORM_STATIC", None)],
    extra_compile_args=["-O2", "-g0", "-fvisibility=hidden", "-pthread"],
    extra_link_args=["-pthread"],
    py_limited_api=LIMITED,
)
# setuptools builds in a directory of its own beside the other builds.
setup(version=version(), ext_modules=[core],
      cmdclass={"bdist_wheel": ReproducibleWheel, "build_ext": BuildInParallel, "sdist": ReproducibleSdist},
      options={"build": {"build_base": "build/python"}, "bdist_wheel": {"py_limited_api": "cp311"} if LIMITED else {}})
