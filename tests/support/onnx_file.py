"""An ONNX model file, written by hand: tiny models for tests, and the bundled one (scripts/build_model.py).

An ONNX file is a handful of protobuf messages, and writing the few fields that we use takes less than
depending on the `onnx` package would. Large constants may be kept in a second file: onnxruntime maps it,
so a model loads in a third of the time and its word table costs memory only where it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7  # TensorProto.DataType
_TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int32": INT32, "int64": INT64}
_IR_VERSION = 8
_OPSET = 17
_MICROSOFT = "com.microsoft"  # onnxruntime's own fused operators

Attribute = int | float | str | Sequence[int]
Array = NDArray[Any]


class Graph:
    """A model under construction: nodes and constants in, a file out."""

    def __init__(self) -> None:
        self.constants: dict[str, Array] = {}
        self._nodes: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def input(self, name: str, kind: int, shape: Sequence[str | int]) -> str:
        """Declare an input and return its name."""
        self._inputs.append(_value(name, kind, shape))
        return name

    def output(self, name: str, source: str, kind: int, shape: Sequence[str | int]) -> None:
        """Give the result called `source` to the caller under `name`."""
        self._outputs.append(_value(name, kind, shape))
        self._add("Identity", [source], name, "", {})

    def constant(self, name: str, array: Array) -> str:
        """Keep an array in the model and return its name; a second array of the same name is the same one."""
        self.constants.setdefault(name, array)
        return name

    def node(self, operator: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Append an operator of the standard, and return its result's name."""
        return self._add(operator, inputs, f"{operator}_{len(self._nodes)}_0", "", attributes)

    def fused(self, operator: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Append one of onnxruntime's fused operators, and return its result's name."""
        return self._add(operator, inputs, f"{operator}_{len(self._nodes)}", _MICROSOFT, attributes)

    def to_bytes(self, offsets: Mapping[str, int] | None = None, weights_file: str = "") -> bytes:
        """Return the model as one file; constants with an offset are in another file, at that place."""
        graph = [_bytes(1, node) for node in self._nodes]
        graph.append(_text(2, "encoder"))
        for name, array in self.constants.items():
            at = (offsets or {}).get(name)
            where = None if at is None else {"location": weights_file, "offset": str(at)}
            graph.append(_bytes(5, _tensor(name, array, where)))
        graph += [_bytes(11, value) for value in self._inputs]
        graph += [_bytes(12, value) for value in self._outputs]
        versions = ((_OPSET, ""), (1, _MICROSOFT))
        opsets = b"".join(_bytes(8, _text(1, domain) + _int(2, version)) for version, domain in versions)
        return _int(1, _IR_VERSION) + _text(2, "concord") + _bytes(7, b"".join(graph)) + opsets

    def _add(
        self,
        operator: str,
        inputs: Sequence[str],
        result: str,
        domain: str,
        attributes: Mapping[str, Attribute],
    ) -> str:
        self._nodes.append(
            b"".join(_text(1, name) for name in inputs)
            + _text(2, result)
            + _text(4, operator)
            + b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
            + _text(7, domain)
        )
        return result


def _varint(number: int) -> bytes:
    encoded = bytearray()
    number &= (1 << 64) - 1  # protobuf writes a negative number as its 64-bit complement
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _attribute(name: str, value: Attribute) -> bytes:
    head = _text(1, name)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, 2)
    if isinstance(value, str):
        return head + _text(4, value) + _int(20, 3)
    return head + b"".join(_int(8, number) for number in value) + _int(20, 7)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = (_int(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    dimensions = b"".join(_bytes(1, size) for size in sizes)
    return _text(1, name) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, dimensions)))


def _tensor(name: str, array: Array, where: Mapping[str, str] | None) -> bytes:
    head = (
        b"".join(_int(1, size) for size in array.shape) + _int(2, _TYPES[array.dtype.name]) + _text(8, name)
    )
    if where is None:
        return head + _bytes(9, np.ascontiguousarray(array).tobytes())
    place = {**where, "length": str(array.nbytes)}
    entries = (_bytes(13, _text(1, key) + _text(2, value)) for key, value in place.items())
    return head + b"".join(entries) + _int(14, 1)
