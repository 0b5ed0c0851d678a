"""Model files in plain Python and numpy: the safetensors container and octavo's single-file form on top of it.

Shared by train.py, convert_nanogpt.py and the script that makes the golden data. The strict reader that users meet is the C++ one in
engine/; what is here writes files and reads back those that it wrote.

    file = length of header (8 bytes, little endian) | header (JSON, padded with spaces to 8) | tensor data, gapless, in header order
"""

import json
import struct

import numpy as np

from output_files import replacing

FORMAT = "octavo/1"
_NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "U8": "u1"}


def to_bf16_bits(values):
    """Rounds float32 values to bfloat16, nearest even, and returns the 16-bit patterns."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def _encode(array, dtype):
    if dtype == "BF16":
        return to_bf16_bits(array).tobytes()
    return np.ascontiguousarray(array).astype(_NUMPY[dtype]).tobytes()


def write_safetensors(path, tensors, metadata=None, dtype="F32"):
    """Writes `tensors` (name -> numpy array) to `path`, replacing what is there in one step.

    `dtype` is one of F64, F32, F16, BF16 for all tensors, or a dict name -> dtype (F32 where a name is absent).
    """
    header, blobs, offset = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        kind = dtype.get(name, "F32") if isinstance(dtype, dict) else dtype
        blob = _encode(array, kind)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with replacing(path) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for blob in blobs:
            file.write(blob)


def read_safetensors(path):
    """Returns (tensors as float64 arrays, metadata) of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        raw = np.frombuffer(data[begin:end], dtype=_NUMPY[entry["dtype"]])
        if entry["dtype"] == "BF16":
            raw = (raw.astype("<u4") << 16).view("<f4")
        tensors[name] = raw.astype(np.float64).reshape(entry["shape"])
    return tensors, metadata


def single_file_metadata(config, vocabulary, start=None):
    """The `__metadata__` of the single-file form; `vocabulary` is a list of strings by id."""
    metadata = {
        "format": FORMAT,
        "config": json.dumps(config),
        "vocabulary": json.dumps(list(vocabulary), ensure_ascii=False),
    }
    if start is not None:
        metadata["start"] = start
    return metadata
