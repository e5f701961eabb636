"""The files of graphs, beside the database: their names, whether one is whole, and which may go."""

from __future__ import annotations

import os
from collections.abc import Set

from concord.backends.sqlite.graph_table import GraphRow

# A file of another form is not read: the library's main version, how vectors are rounded, what is near.
FORM = "usearch 2, cosine of bytes"
_INFIX = "-graph-"
_BLOCK_BYTES = 1 << 22

Stamp = tuple[int, int]  # size, and time of the last change in nanoseconds


def new_file(database: str, key: int) -> str:
    """Return a name that no graph ever had."""
    import secrets  # late, as all that only a build needs

    return f"{database}{_INFIX}{key:d}-{secrets.token_hex(8)}"


def seal(path: str, version: int, vectors: int, alive: int) -> GraphRow:
    """Wait until a finished file is on the disk, and return what identifies it."""
    from concord.core.filesystem import sync_to_disk  # late, as all that only a build needs

    for one in (path, os.path.dirname(path)):
        sync_to_disk(one)
    found = os.stat(path)
    known = (found.st_size, found.st_mtime_ns, _checksum(path))
    return GraphRow(FORM, os.path.basename(path), version, vectors, alive, *known)


def stamp(path: str) -> Stamp | None:
    """Return a stamp that changes when a file is touched; None if there is no file. Asked at every search."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def is_whole(path: str, row: GraphRow, *, thorough: bool = False) -> bool:
    """Whether the file holds what was sealed; one that was touched, as copies are, is read to the end."""
    now = stamp(path)
    if row.form != FORM or now is None or now[0] != row.size:
        return False
    try:
        return (now == row.stamp and not thorough) or _checksum(path) == row.checksum
    except OSError:
        return False


def leftovers(database: str, named: Set[str]) -> list[str]:
    """Return the graph files beside a database that it does not name: left by a crash, or by an older state.

    A search that reads one can finish although it is deleted. A file that is being written is among them.
    """
    import re

    # The whole name has to fit: an organisation may be called default.db-graph-1.
    folder, name = os.path.split(database)
    ours = re.compile(re.escape(name + _INFIX) + r"\d+-[0-9a-f]{16}")
    found = (one for one in os.listdir(folder) if ours.fullmatch(one))
    return [os.path.join(folder, one) for one in found if one not in named]


def _checksum(path: str) -> int:
    import zlib

    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum
