"""The vectors of a small store, kept in memory by a process that searches more than once.

Derived, exact and never stale: they are read anew when the version of `kb_vec` is another. Searching 10,000
vectors takes 1.2 ms here where sqlite-vec takes 7, and reading a hundred of them 0.1 ms where it takes 2.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.vec_table import version_of
from concord.types import ChunkId, Scored, Vector

MOST = 30_000  # vectors: 46 MB of 384 dimensions. A server with its model loaded stays under 300 MB.


class Matrix:
    """All vectors of one version, by chunk id."""

    def __init__(self, version: int, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        self.version = version
        self._ids = ids  # ascending
        self._rows = rows
        self._lengths = np.linalg.norm(rows, axis=1)  # 1, but for what rounding to 16 bits did to some

    def nearest(self, vector: Vector, limit: int) -> list[Scored]:
        """Return the nearest by cosine, nearest first; ties by id."""
        query = np.frombuffer(vector, dtype="<f4")
        # Not `rows @ query`: several threads for so little work wait longer for each other than they save.
        scores = np.einsum("ij,j->i", self._rows, query / np.linalg.norm(query)) / self._lengths
        found = np.arange(len(scores))
        if limit < len(scores):
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            found = np.flatnonzero(scores >= least)
        best = found[np.lexsort((self._ids[found], -scores[found]))][:limit]
        pairs = zip(self._ids[best].tolist(), scores[best].tolist(), strict=True)
        return [Scored(chunk_id, min(1.0, score)) for chunk_id, score in pairs]

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        if not len(self._ids):
            return {}
        wanted = np.fromiter(dict.fromkeys(chunk_ids), dtype=np.int64)
        places = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        there = self._ids[places] == wanted
        rows = self._rows[places[there]]
        return {chunk_id: row.tobytes() for chunk_id, row in zip(wanted[there].tolist(), rows, strict=True)}


class Resident:
    """Keeps the matrix of the present version, once that version has been asked for twice.

    A command that searches once, or a store that is being filled, would read it all for nothing.
    """

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._asked = -1
        self._kept: Matrix | None = None

    def kept(self, version: int) -> Matrix | None:
        """Return the vectors of a version if they have been read."""
        kept = self._kept
        return kept if kept is not None and kept.version == version else None

    def read(self, connection: Connection, version: int, dimension: int) -> Matrix | None:
        """Return the vectors of a version; None while it is not worth reading them."""
        if kept := self.kept(version):
            return kept
        if version != self._asked:
            self._asked, self._kept = version, None
            return None
        if not self._reading.acquire(blocking=False):
            return None
        try:
            self._kept = _read(connection, dimension)
        finally:
            self._reading.release()
        return self.kept(version)


def _read(connection: Connection, dimension: int) -> Matrix:
    connection.execute("BEGIN")  # the version and the vectors are those of one moment
    try:
        version = version_of(connection)
        size = connection.execute("SELECT count(*) FROM kb_vec").get
        ids, rows = np.empty(size, dtype=np.int64), np.empty((size, dimension), dtype="<f4")
        for at, (chunk_id, vector) in enumerate(connection.execute("SELECT rowid, embedding FROM kb_vec")):
            ids[at] = chunk_id
            rows[at] = np.frombuffer(vector, dtype="<f4")
    finally:
        connection.execute("COMMIT")
    order = np.argsort(ids)
    if (np.diff(order) != 1).any():  # as after a vector was replaced; a copy of everything is else not needed
        ids, rows = ids[order], rows[order]
    return Matrix(version, ids, rows)
