"""All vectors of a space as one matrix: exact search and look-up with numpy, which this file imports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.vec_table import SpaceRow
from concord.types import ChunkId, Scored, Vector


class Matrix:
    """All vectors of a space in one version, by chunk id."""

    def __init__(self, space: SpaceRow, ids: NDArray[np.int64], rows: NDArray[np.float32]) -> None:
        self.space = space
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


def read_matrix(connection: Connection, space: SpaceRow) -> Matrix:
    """Read all vectors of a space; the connection holds the moment at which the space was looked up."""
    assert space.identity is not None  # a space whose model is not known is not searched
    size = connection.execute(f"SELECT count(*) FROM {space.table}").get
    ids, rows = np.empty(size, dtype=np.int64), np.empty((size, space.identity.dimension), dtype="<f4")
    for at, (chunk_id, vector) in enumerate(
        connection.execute(f"SELECT rowid, embedding FROM {space.table}")
    ):
        ids[at] = chunk_id
        rows[at] = np.frombuffer(vector, dtype="<f4")
    order = np.argsort(ids)
    if (np.diff(order) != 1).any():  # as after a vector was replaced; a copy of everything is else not needed
        ids, rows = ids[order], rows[order]
    return Matrix(space, ids, rows)
