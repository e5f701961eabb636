"""Searching many vectors by their graph: it proposes, the vectors themselves decide.

The graph is asked for more than is wanted, what it proposes is filtered and compared exactly, and so is all
that it does not know yet. Where too few are left, as under a narrow filter, every vector that the filter lets
through is compared instead. Scores are therefore always exact, and what was put or taken out counts at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.filters import CHUNKS
from concord.backends.sqlite.graph_files import Stamp, is_whole, stamp
from concord.backends.sqlite.graph_table import GraphRow, graph_row
from concord.backends.sqlite.vec_table import SpaceRow
from concord.types import ChunkId, Vector

if TYPE_CHECKING:
    from concord.backends.sqlite.graph import Graph, Proposals

LEAST = 50_000  # vectors: fewer are kept in memory by a process that searches often, and compared exactly
EFFORT = 64  # proposals for each 16,000 vectors, where nobody says otherwise
# The more vectors, the more places there are in which a walk can get stuck: of a million in 25,000 tight
# clusters 200 proposals hold 0.64 of the nearest ten, 800 hold 0.79 and 4,000 hold 0.99.
_VECTORS_AN_EFFORT = 16_000
_FAN_OUT = 5  # proposals for each that is wanted, at least
_RESCORED = 2  # of them are compared; on real vectors comparing all of them found nothing more
_SECOND_LOOK = 8  # times as many proposals where a filter let too few of the first through
_MOST_PROPOSALS = 8192  # beyond that, walking the graph and looking vectors up costs as much as a scan
_NARROW = 2000  # chunks, and less than a 64th of all: comparing them takes no longer than walking the graph
_NARROW_SHARE = 64

# A chunk that is there and not pending has a vector; one that was put since has another than the graph knows.
# json_each goes through a list from its start, so that the first that qualify are the nearest.
_PROPOSED = """
SELECT w.value AS id FROM json_each(:proposed) AS w CROSS JOIN kb_chunks AS c ON c.id = w.value {document}
WHERE NOT EXISTS (SELECT 1 FROM kb_pending WHERE space = :space AND chunk = c.id) AND NOT EXISTS
    (SELECT 1 FROM kb_unindexed WHERE space = :space AND chunk = c.id AND version > :version)
    AND {condition}
LIMIT :most"""
_UNINDEXED = """
SELECT w.chunk AS id FROM kb_unindexed AS w CROSS JOIN kb_chunks AS c ON c.id = w.chunk {document}
WHERE w.space = :space AND w.version > :version AND {condition}"""
_SOME = f"SELECT count(*) FROM (SELECT 1 FROM {CHUNKS} WHERE {{condition}} LIMIT :most)"
_DOCUMENT = "CROSS JOIN kb_documents AS d ON d.key = c.document"
_COMPARED = """
SELECT vec_distance_cosine(v.embedding, :vector) AS distance, v.rowid
FROM ({rows}) AS a CROSS JOIN {vec} AS v ON v.rowid = a.id ORDER BY distance, v.rowid LIMIT :limit"""

Distances = list[tuple[float, ChunkId]]


class Plan(Struct, frozen=True):
    """Where graphs are kept, and from how many vectors on."""

    database: str
    is_wanted: bool = True
    least: int = LEAST

    def wants(self, vectors: int) -> bool:
        """Whether there are enough vectors for a graph."""
        return self.is_wanted and vectors >= self.least

    def path(self, row: GraphRow) -> str:
        """Return where a graph lies."""
        return os.path.join(os.path.dirname(self.database), row.file)


class Question(Struct, frozen=True):
    """A query for a graph: near which vector, under which filter, how many chunks, with how much effort."""

    vector: Vector
    condition: tuple[str, Mapping[str, str | int | float]] | None  # None lets everything through
    limit: int
    effort: int


class GraphSearch:
    """The graph of a space, opened when it is first searched and again when there is another."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._opening = threading.Lock()
        self._seen: tuple[GraphRow, Stamp | None] | None = None  # what was opened, or could not be
        self._graph: Graph | None = None

    def nearest(self, connection: Connection, space: SpaceRow, asked: Question) -> Distances | None:
        """Return the nearest chunks, ties by id; None if there is no graph to trust, or it cannot tell.

        The connection is at the moment at which the space was looked up.
        """
        row = graph_row(connection, space.key)
        graph = self._opened(row, space) if row else None
        if row is None or graph is None:
            return None
        if _is_narrow(connection, row, asked):
            return None
        effort = max(_FAN_OUT * asked.limit, asked.effort * max(1, row.vectors // _VECTORS_AN_EFFORT))
        for most in (min(effort, _MOST_PROPOSALS), effort * _SECOND_LOOK):
            if most > _MOST_PROPOSALS:
                break
            proposals = graph.nearest(asked.vector, most)
            found = _compared(connection, space, row, asked, proposals)
            if most >= row.vectors and not proposals.are_all:
                break  # not every vector can be reached
            if proposals.are_all or _is_enough(found, asked.limit):
                fresh = _unindexed(connection, space, row, asked)
                return sorted([*found, *fresh])[: asked.limit]
            if len(found) * _SECOND_LOOK < asked.limit:
                break  # a filter lets so few through that a second look would not do either
        return None

    def _opened(self, row: GraphRow, space: SpaceRow) -> Graph | None:
        """Return the graph if its file is as it was written; it is looked into again when it was touched."""
        path = self.plan.path(row)
        with self._opening:
            seen = (row, stamp(path))
            if seen != self._seen:
                self._seen, self._graph = seen, _open(path, row, space)
            return self._graph


def is_installed() -> bool:
    """Whether the library of graphs is there; it is not imported."""
    from importlib.util import find_spec

    return find_spec("usearch") is not None


def _open(path: str, row: GraphRow, space: SpaceRow) -> Graph | None:
    assert space.identity is not None  # a space whose model is not known is not searched
    try:
        from concord.backends.sqlite.graph import Graph  # late: it imports numpy and usearch

        if is_whole(path, row):
            return Graph(path, space.identity.dimension)
        why = "is missing, or not as it was written"
    except ModuleNotFoundError as fault:
        why = f"needs the package {fault.name!r}"
    except (OSError, RuntimeError) as fault:
        why = f"cannot be opened ({fault})"
    import logging  # 5 ms, for those who need it

    logging.getLogger(__name__).info("the vector index %s %s: every vector is compared", path, why)
    return None


def _is_narrow(connection: Connection, row: GraphRow, asked: Question) -> bool:
    """Whether a filter lets so few through that it is best to compare them all."""
    if asked.condition is None:
        return False
    sql, values = asked.condition
    most = min(_NARROW, row.vectors // _NARROW_SHARE)
    some = connection.execute(_SOME.format(condition=sql), {**values, "most": most + 1}).get
    return bool(some <= most)


def _compared(
    connection: Connection, space: SpaceRow, row: GraphRow, asked: Question, proposals: Proposals
) -> Distances:
    """Return the exact distances of the first proposals that the filter lets through and that still exist."""
    most = _RESCORED * asked.limit
    if proposals.are_all or row.alive < row.vectors:  # among the first may be some that have been replaced
        most = len(proposals.chunk_ids)
    values: dict[str, str | int] = {"proposed": list_column(proposals.chunk_ids), "most": most, "limit": most}
    return _distances(connection, space, row, asked, _PROPOSED, values)


def _unindexed(connection: Connection, space: SpaceRow, row: GraphRow, asked: Question) -> Distances:
    """Return the nearest vectors that the graph does not have yet: all of them are compared."""
    return _distances(connection, space, row, asked, _UNINDEXED, {"limit": asked.limit})


def _distances(
    connection: Connection,
    space: SpaceRow,
    row: GraphRow,
    asked: Question,
    rows: str,
    values: Mapping[str, str | int],
) -> Distances:
    sql, named = asked.condition or ("TRUE", {})
    chosen = rows.format(document=_DOCUMENT if asked.condition else "", condition=sql)
    given = {**named, **values, "vector": asked.vector, "space": space.key, "version": row.version}
    return list(connection.execute(_COMPARED.format(rows=chosen, vec=space.table), given))


def _is_enough(found: Distances, limit: int) -> bool:
    """Whether the list is full and does not end among equals, since others of these may have lower ids."""
    return len(found) > limit and found[limit - 1][0] < found[-1][0]
