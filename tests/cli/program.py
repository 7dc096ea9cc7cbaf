"""What the tests of the program share: running it, and .npy files by hand (no package is needed for either).

The program's path is in LNORM_PROGRAM. Arrays are Array(dtype, shape, values): dtype "f64", "f32", "f16" or "bf16",
values a flat list of floats in row-major order.
"""

import math
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
from typing import NamedTuple

PROGRAM = os.environ["LNORM_PROGRAM"]

# What a program inherits besides: a user's wishes, and the signals that nohup or a script's "&" had ignored.
for variable in "LNORM_CLI_BUDGET", "NO_COLOR":
    os.environ.pop(variable, None)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT:
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

DESCR = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<V2"}
CODE = {"f64": "d", "f32": "f", "f16": "e"}


class Array(NamedTuple):
    dtype: str
    shape: tuple
    values: list


def to_f32(value):
    """The value rounded to f32, to nearest even; infinite beyond its range."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bf16_bits(value):
    """Exact for values that are bf16 numbers already."""
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def encode(array):
    if array.dtype == "bf16":
        return struct.pack(f"<{len(array.values)}H", *map(bf16_bits, array.values))
    return struct.pack(f"<{len(array.values)}{CODE[array.dtype]}", *array.values)


def npy_header(descr, shape, fortran=False):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npy(array):
    """The bytes of an .npy file."""
    return npy_header(DESCR[array.dtype], array.shape) + encode(array)


def read_npy(data):
    """An Array from the bytes that the program wrote (version 1, row-major, little-endian)."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:end].decode())  # written by the program under test: a dict of literals
    dtype = {descr: name for name, descr in DESCR.items()}[header["descr"]]
    body = data[end:]
    if dtype == "bf16":
        halves = struct.unpack(f"<{len(body) // 2}H", body)
        values = [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    else:
        values = list(struct.unpack(f"<{len(body) // struct.calcsize(CODE[dtype])}{CODE[dtype]}", body))
    assert not header["fortran_order"] and len(values) == math.prod(header["shape"])
    return Array(dtype, header["shape"], values)


class Result(NamedTuple):
    status: int
    out: bytes
    error: str


class ProgramTest(unittest.TestCase):
    """A directory of its own for each test, and the program run in it."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="lnorm-cli-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def save(self, name, array):
        with open(self.path(name), "wb") as file:
            file.write(npy(array))
        return name

    def load(self, name):
        with open(self.path(name), "rb") as file:
            return read_npy(file.read())

    def files(self):
        return sorted(os.listdir(self.directory))

    def run_lnorm(self, *arguments, stdin=b"", environment=None, **options):
        done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, cwd=self.directory,
                              env={**os.environ, **(environment or {})}, timeout=120, **options)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def succeed(self, *arguments, **options):
        result = self.run_lnorm(*arguments, **options)
        self.assertEqual(result.status, 0, result.error)
        return result

    def refuse(self, status, message, *arguments, **options):
        """The program must end with this status and say this, and leave the directory's list of files as it was."""
        before = self.files()
        result = self.run_lnorm(*arguments, **options)
        self.assertEqual((result.status, result.out), (status, b""), result.error)
        self.assertIn(message, result.error)
        self.assertEqual(self.files(), before)
        return result
