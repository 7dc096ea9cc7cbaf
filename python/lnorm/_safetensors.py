"""The .safetensors format: eight bytes of length, a JSON header, the tensors' bytes (docs/files.md).

Written is what the format's own library writes, byte for byte: tensors sorted by type (float64, float32, bfloat16,
float16), then name."""
import errno
import json
import os
import pathlib
import struct
import tempfile

import numpy as np

_ORDER = {"float64": ("F64", 8), "float32": ("F32", 4), "bfloat16": ("BF16", 2), "float16": ("F16", 2)}
_HEADER_MAX = 100_000_000
_OTHER_FORMATS = {b"\x93NUMPY": "an .npy file", b"PK\x03\x04": "a zip archive, as .npz files and PyTorch's are"}


def _numpy_dtype(name):
    if name == "BF16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}[name]


def save(path, tensors):
    """Writes arrays under their names. The file is there completely, or the old one is as it was."""
    ranks = list(_ORDER)
    for name, array in tensors.items():
        if array.dtype.name not in _ORDER:
            raise TypeError(f"tensor {name!r}: expected float64, float32, float16 or bfloat16, got {array.dtype}")
    names = sorted(tensors, key=lambda name: (ranks.index(tensors[name].dtype.name), name.encode()))
    header, blobs, offset = {}, [], 0
    for name in names:
        array = tensors[name]
        code, size = _ORDER[array.dtype.name]
        blob = np.ascontiguousarray(array).view(f"u{size}").astype(f"<u{size}").tobytes()
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    replace_file(path, [struct.pack("<Q", len(text)), text, *blobs])


def replace_file(path, parts):
    """What is no regular file (a device, a pipe; a directory is an error) is written to, not replaced."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            file.writelines(parts)
        return
    path = path.resolve()
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".lnorm-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _unique(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key twice in one object")
    return table


def _header(file, path):
    length = file.read(8)
    size = os.fstat(file.fileno()).st_size
    if len(length) < 8:
        raise ValueError(f"{path}: expected a header's length in 8 bytes, got {len(length)}")
    for begins, name in _OTHER_FORMATS.items():
        if length.startswith(begins):
            raise ValueError(f"{path}: expected a .safetensors file, got {name}")
    (length,) = struct.unpack("<Q", length)
    if length > min(_HEADER_MAX, size - 8):
        raise ValueError(f"{path}: expected a header that fits the file of {size} bytes, got a length of {length}")
    try:
        header = json.loads(file.read(length).decode(), object_pairs_hook=_unique)
    except ValueError as error:
        raise ValueError(f"{path}: expected a header in JSON, got {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path}: expected a JSON object as header, got {type(header).__name__}")
    header.pop("__metadata__", None)
    return header, 8 + length, size - 8 - length


def _count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check(name, entry, path, bytes_left):
    fail = f"{path}: tensor {name!r}: expected"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{fail} dtype, shape and data_offsets, got {entry!r}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not all(map(_count, shape)):
        raise ValueError(f"{fail} a shape of integers of at least 0, got {shape!r}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_count, offsets)):
        raise ValueError(f"{fail} two offsets of at least 0, got {offsets!r}")
    if not offsets[0] <= offsets[1] <= bytes_left:
        raise ValueError(f"{fail} offsets within the {bytes_left} bytes of data, got {offsets!r}")


def load(path, wanted=None):
    """The arrays of a file by name; those that wanted(name) says, if it is given."""
    tensors = {}
    with open(path, "rb") as file:
        header, start, bytes_left = _header(file, path)
        for name, entry in header.items():
            _check(name, entry, path, bytes_left)
            if wanted is None or wanted(name):
                tensors[name] = _read(file, start, name, entry, path)
    return tensors


def _read(file, start, name, entry, path):
    if entry["dtype"] not in [code for code, _ in _ORDER.values()]:
        raise TypeError(f"{path}: tensor {name!r}: expected F64, F32, F16 or BF16, got {entry['dtype']!r}")
    dtype = _numpy_dtype(entry["dtype"])
    first, last = entry["data_offsets"]
    expected = dtype.itemsize
    for extent in entry["shape"]:
        expected *= extent
    if last - first != expected:
        raise ValueError(f"{path}: tensor {name!r}: expected {expected} bytes, got offsets {entry['data_offsets']}")
    file.seek(start + first)
    flat = np.frombuffer(bytearray(file.read(last - first)), dtype)
    return flat.reshape(entry["shape"]).astype(dtype.newbyteorder("="), copy=False)
