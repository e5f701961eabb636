"""A disk that remembers every write and every sync, to say what a power cut could have left of them."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

SECTOR = 512


class Op(NamedTuple):
    """Something that was done to a file; a sync where there is neither data nor a length."""

    file: str
    offset: int = 0
    data: bytes | None = None
    length: int | None = None
    is_deleted: bool = False

    @property
    def is_sync(self) -> bool:
        return self.data is None and self.length is None and not self.is_deleted


class RecordingDisk(apsw.VFS):
    """A SQLite VFS over the real one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ops: list[Op] = []
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _RecordedFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.ops.append(Op(os.path.basename(filename), is_deleted=True))
        super().xDelete(filename, syncdir)


class _RecordedFile(apsw.VFSFile):
    def __init__(self, disk: RecordingDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = os.path.basename(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.ops.append(Op(self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.ops.append(Op(self._name, length=newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.ops.append(Op(self._name))


def left_by_a_power_cut(ops: list[Op], folder: Path, draw: random.Random) -> None:
    """Write files as they may be when the power goes after some operations.

    What was synced is there. Of what came after, each write may be missing, or there in part, in any order.
    """
    by_file: dict[str, list[Op]] = defaultdict(list)
    for op in ops:
        if op.is_deleted:
            by_file.pop(op.file, None)
        elif op.file:  # temporary files have no name
            by_file[op.file].append(op)
    folder.mkdir()
    for name, done in by_file.items():
        synced = max((at + 1 for at, op in enumerate(done) if op.is_sync), default=0)
        content = bytearray()
        for op in (*done[:synced], *_surviving(done[synced:], draw)):
            _apply(op, content)
        (folder / name).write_bytes(content)


def _surviving(ops: list[Op], draw: random.Random) -> Iterator[Op]:
    kind = draw.choice(("none", "all", "some", "shuffled"))
    for op in draw.sample(ops, len(ops)) if kind == "shuffled" else ops:
        if kind == "all" or (kind != "none" and draw.random() < 0.5):
            torn = op.data is not None and kind != "all" and draw.random() < 0.3
            yield op._replace(data=_part(op.data or b"", draw)) if torn else op


def _part(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) // SECTOR + 1) * SECTOR]


def _apply(op: Op, content: bytearray) -> None:
    if op.length is not None:
        del content[op.length :]
    elif op.data:
        content.extend(bytes(max(0, op.offset - len(content))))
        content[op.offset : op.offset + len(op.data)] = op.data
