"""Files that are not what they seem, through every verb that reads: exit 1, a message that names the file, no output."""

import json
import struct
import unittest

from program import Array, ProgramTest, npy, npy_header


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = npy(Array("f32", (2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]))
PREFIX = b"\x93NUMPY\x01\x00"

NPY = {  # content: what the message says
    "empty": (b"", "x.npy"),
    "magic": (b"\x93NUMPX" + GOOD[6:], "x.npy"),
    "version": (b"\x93NUMPY\x09\x00" + GOOD[8:], "version"),
    "cut header": (GOOD[:40], "x.npy"),
    "cut data": (GOOD[:-1], "truncated"),
    "data too many": (GOOD + b"\0", "x.npy"),
    "huge header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xfffffff0) + b"{", "x.npy"),
    "header is no dict": (PREFIX + struct.pack("<H", 6) + b"hello\n", "x.npy"),
    "key twice": (PREFIX + struct.pack("<H", 95) + (b"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
                                                   b"'shape': (2, 3)}").ljust(94) + b"\n" + b"\0" * 24, "x.npy"),
    "overflowing shape": (npy_header("<f4", (1 << 40, 1 << 40)), "x.npy"),
    "negative extent": (npy_header("<f4", (-2, 3)) + b"\0" * 24, "x.npy"),
    "integers": (npy_header("<i4", (2, 3)) + b"\0" * 24, "int32"),
    "objects": (npy_header("|O", (2, 3)) + b"\0" * 24, "x.npy"),
}

F = b"\0" * 24
SAFETENSORS = {
    "empty": (b"", "m.safetensors"),
    "cut": (safetensors({"norm.weight": tensor(0, 24, [6])}, F)[:-1], "m.safetensors"),
    "absurd header": (struct.pack("<Q", 1 << 62) + b"{}", "m.safetensors"),
    "no JSON": (safetensors(b"{]"), "m.safetensors"),
    "key twice": (safetensors(b'{"norm.weight":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},'
                              b'"norm.weight":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}', F), "m.safetensors"),
    "hole": (safetensors({"norm.weight": tensor(4, 24, [5])}, F), "m.safetensors"),
    "overlap": (safetensors({"norm.weight": tensor(0, 16, [4]), "norm.bias": tensor(8, 24, [4])}, F), "m.safetensors"),
    "size": (safetensors({"norm.weight": tensor(0, 24, [7])}, F), "m.safetensors"),
    "beyond the end": (safetensors({"norm.weight": tensor(0, 240, [60])}, F), "m.safetensors"),
    "bytes too many": (safetensors({"norm.weight": tensor(0, 24, [6])}, F + b"\0"), "m.safetensors"),
    "overflowing shape": (safetensors({"norm.weight": tensor(0, 24, [1 << 40, 1 << 40])}, F), "m.safetensors"),
    "backwards": (safetensors({"norm.weight": tensor(24, 0, [6])}, F), "m.safetensors"),
}


class Malformed(ProgramTest):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def test_npy(self):
        self.write("good.npy", GOOD)
        for kind, (data, message) in NPY.items():
            self.write("x.npy", data)
            for verb in [("apply", "x.npy", "-o", "y.npy"), ("apply", "good.npy", "-o", "y.npy", "--weight", "x.npy"),
                         ("grad", "good.npy", "x.npy", "--dx", "dx.npy"), ("verify", "good.npy", "x.npy"),
                         ("explain", "x.npy")]:
                with self.subTest(kind=kind, verb=verb):
                    self.assertIn("x.npy", self.refuse(1, message, *verb).error)
            with self.subTest(kind=kind, verb="apply -"):
                self.refuse(1, "standard input" if message == "x.npy" else message, "apply", "-", "-o", "y.npy",
                            stdin=data)

    def test_safetensors(self):
        self.write("good.npy", GOOD)
        for kind, (data, message) in SAFETENSORS.items():
            self.write("m.safetensors", data)
            for verb in [("list", "m.safetensors"), ("apply", "m.safetensors:norm.weight", "-o", "y.npy"),
                         ("apply", "good.npy", "-o", "y.npy", "--model", "m.safetensors"),
                         ("verify", "good.npy", "m.safetensors:norm.weight")]:
                with self.subTest(kind=kind, verb=verb):
                    self.refuse(1, message, *verb)

    def test_the_good_ones_are_read(self):
        """Or everything above would be refused for another reason."""
        self.write("x.npy", GOOD)
        self.write("m.safetensors", safetensors({"norm.weight": tensor(0, 12, [3])}, F[:12]))
        self.succeed("apply", "x.npy", "-o", "y.npy", "--model", "m.safetensors")
        self.succeed("list", "m.safetensors")
        self.write("m.safetensors", safetensors({"other": tensor(0, 12, [3])}, F[:12]))
        for name in ((), ("--name", "norm")):
            self.refuse(1, "--model: 'm.safetensors' holds no norms; 'lnorm list --all' shows its tensors", "apply",
                        "x.npy", "-o", "z.npy", "--model", "m.safetensors", *name)


if __name__ == "__main__":
    unittest.main()
