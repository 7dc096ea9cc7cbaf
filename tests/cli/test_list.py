"""lnorm list: the norms and the tensors of .safetensors files."""

import json
import subprocess
import unittest

from program import PROGRAM, ProgramTest

SIZE = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "F8_E4M3": 1}


def safetensors(tensors):
    """The bytes of a file of zeros; tensors: (name, dtype, shape)."""
    header, end = {}, 0
    for name, dtype, shape in tensors:
        count = SIZE[dtype]
        for extent in shape:
            count *= extent
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + count]}
        end += count
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end)


MODEL = [("embedding.weight", "F32", [10, 4]), ("encoder.0.LayerNorm.weight", "F32", [4]),
         ("encoder.0.LayerNorm.bias", "F32", [4]), ("ids", "I64", [1, 7]), ("final_norm.weight", "BF16", [1024]),
         ("scalar", "F8_E4M3", [])]


class List(ProgramTest):
    def model(self, tensors, name="m.safetensors"):
        with open(self.path(name), "wb") as file:
            file.write(safetensors(tensors))
        return name

    def test_norms(self):
        out = self.succeed("list", self.model(MODEL)).out.decode()
        self.assertEqual(out, "encoder.0.LayerNorm  4     F32   weight,bias\n"
                              "final_norm           1024  BF16  weight\n")

    def test_all(self):
        out = self.succeed("list", "--all", self.model(MODEL)).out.decode()
        self.assertEqual(out, "embedding.weight            [10,4]  F32\n"
                              "encoder.0.LayerNorm.weight  [4]     F32\n"
                              "encoder.0.LayerNorm.bias    [4]     F32\n"
                              "ids                         [1,7]   I64\n"
                              "final_norm.weight           [1024]  BF16\n"
                              "scalar                      []      F8_E4M3\n")

    def test_the_file_of_a_single_layer(self):
        out = self.succeed("list", self.model([("weight", "F32", [3]), ("bias", "F32", [3])])).out.decode()
        self.assertEqual(out, "''  3  F32  weight,bias\n")

    def test_names_cannot_reach_the_terminal(self):
        name = "a\x1b[2J\nb\x7f\u009bc \u00e9.norm"
        out = self.succeed("list", self.model([(name + ".weight", "F32", [3])])).out.decode()
        self.assertEqual(out, "a\\x1b[2J\\x0ab\\x7f\\xc2\\x9bc \u00e9.norm  3  F32  weight\n")

    def test_columns_count_characters(self):
        tensors = [("m\u00fc\u00df.norm.weight", "F32", [3]), ("abcde.norm.weight", "F32", [3])]
        self.assertEqual(self.succeed("list", self.model(tensors)).out.decode(),
                         "m\u00fc\u00df.norm    3  F32  weight\nabcde.norm  3  F32  weight\n")

    def test_files_of_other_formats(self):
        for begins, name in [(b"\x93NUMPY\x01\x00v\x00", "an .npy file"),
                             (b"PK\x03\x04\x14\x00\x00\x00", "a zip archive"),
                             (b"GGUF\x03\x00\x00\x00", "a GGUF file"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
                             (b"version https://git-lfs", "text, as Git LFS leaves")]:
            with open(self.path("other"), "wb") as file:
                file.write(begins + bytes(100))
            self.refuse(1, f"lnorm list: 'other': expected a .safetensors file, got {name}", "list", "other")
            if name != "an .npy file":
                self.refuse(1, f"'other': expected an .npy file, got {name}", "apply", "other", "-o", "y.npy")

    def test_no_norms(self):
        self.refuse(1, "lnorm list: 'm.safetensors': no norms among its tensors; --all shows them\n", "list",
                    self.model([("a.weight", "F32", [2])]))
        self.refuse(1, "lnorm list: 'm.safetensors': no tensors\n", "list", "--all", self.model([]))

    def test_refusals(self):
        self.refuse(2, "an argument is missing; expected MODEL.safetensors", "list")
        self.refuse(2, "b: one argument too many", "list", "a", "b")
        self.refuse(2, "--axes: no such option", "list", "a", "--axes", "1")
        self.refuse(1, "'missing.safetensors'", "list", "missing.safetensors")
        with open(self.path(self.model(MODEL)), "r+b") as file:
            file.truncate(300)
        self.refuse(1, "'m.safetensors'", "list", "m.safetensors")

    def test_unwritable_output(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "list", self.path(self.model(MODEL))], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"lnorm list: cannot write to standard output: No space left on device\n"))


if __name__ == "__main__":
    unittest.main()
