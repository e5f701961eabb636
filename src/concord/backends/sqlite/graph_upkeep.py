"""When graphs are built, grown and forgotten: never while somebody waits for a search, but after embedding.

One process at a time does it. What is read is one moment of the database; linking vectors, which takes long,
holds neither a transaction nor a snapshot. What others put meanwhile is noted, and compared one by one until
the graph is grown the next time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from concord.backends.file_locks import file_lock
from concord.backends.sqlite.connections import Connection, Readers, Writer, snapshot
from concord.backends.sqlite.graph_files import is_whole, leftovers, new_file, seal
from concord.backends.sqlite.graph_search import Plan, is_installed
from concord.backends.sqlite.graph_table import (
    GraphRow,
    begin_noting,
    count_unindexed,
    end_noting,
    forget_graph,
    graph_files,
    graph_row,
    put_graph,
)
from concord.backends.sqlite.ledger import home_url
from concord.backends.sqlite.vec_table import SpaceRow, all_spaces, count_vectors, find_space, vec_exists
from concord.core.errors import Action, Hint, StoreBusy
from concord.core.reports import Finding, VectorIndexState

if TYPE_CHECKING:
    from concord.backends.sqlite.graph import Growing
    from concord.core.protocols import Progress

FAULT: Final = "vector-index"
INSTALL = "pip install 'concord-kb[index]'"
# Vectors that are not in the graph yet are compared one by one, a thousand in some milliseconds. To grow a
# graph its whole file is written anew, so a large one waits until there are more of them.
_MOST_UNINDEXED = 1000
_UNINDEXED_SHARE = 0.005
_DEAD_SHARE = 0.25  # of a graph may be vectors that are gone; beyond, it is built anew instead of grown

_ALL = "SELECT rowid, embedding FROM {vec}"
_FRESH = """
SELECT v.rowid, v.embedding FROM kb_unindexed AS w CROSS JOIN {vec} AS v ON v.rowid = w.chunk
WHERE w.space = {space:d} AND w.version > {version:d}"""


class _State(NamedTuple):
    """A space and its graph at one moment."""

    space: SpaceRow
    vectors: int
    row: GraphRow | None
    unindexed: int  # vectors that were put since

    @property
    def dead(self) -> int:
        """How many vectors of the graph are gone or were replaced, as far as can be told by counting."""
        return max(0, self.row.vectors + self.unindexed - self.vectors) if self.row else 0

    @property
    def is_worn(self) -> bool:
        """Whether so many of its vectors are deleted that it should be built anew."""
        return self.dead > _DEAD_SHARE * self.vectors

    @property
    def is_behind(self) -> bool:
        """Whether it lacks so many vectors that searches are slower."""
        return self.is_worn or self.unindexed > max(_MOST_UNINDEXED, _UNINDEXED_SHARE * self.vectors)


class Graphs:
    """The graphs of one file."""

    def __init__(self, plan: Plan, readers: Readers, vec_readers: Readers, writer: Writer) -> None:
        self._plan = plan
        self._readers = readers  # whether anything is to be done is asked by every sync: sqlite-vec can wait
        self._vec_readers = vec_readers
        self._writer = writer

    def tend(self, progress: Progress) -> None:
        """Bring every graph up to date where that is worth it, and delete files that no space uses.

        If another process does so already, this one does nothing. If a graph cannot be written, searches stay
        exact, and are slower.
        """
        if not any(map(self._is_due, self._states())) and not self._leftovers():
            return
        with suppress(StoreBusy), file_lock(self._plan.database, "graphs", "building the graphs", 0):
            for state in filter(self._is_due, self._states()):  # another process may have done it meanwhile
                self._renew(state, progress)
            for path in self._leftovers():
                with suppress(OSError):
                    os.unlink(path)

    def state(self) -> VectorIndexState:
        """Return the state of the active space's graph."""
        with self._readers.connection() as connection:
            active = find_space(connection, None)
        found = next((one for one in self._states() if one.space.key == active.key), None) if active else None
        if found is None or not self._plan.wants(found.vectors):
            why = f"from {self._plan.least:,} vectors on" if self._plan.is_wanted else "vectors.index is off"
            return VectorIndexState(0, 0, why)
        if not is_installed():
            return VectorIndexState(0, 0, f"usearch is not installed: {INSTALL}")
        if found.row is None or not self._is_whole(found.row):
            return VectorIndexState(0, 0, Hint(Action.SYNC, "missing or damaged: {sync} builds it"))
        return VectorIndexState(max(0, found.vectors - found.unindexed), found.row.size)

    def check(self) -> list[Finding]:
        """Return what is wrong with graphs that should be there; their files are read from end to end."""
        wanted = (state for state in self._states() if self._plan.wants(state.vectors))
        return [Finding(FAULT, *fault) for state in wanted if (fault := self._fault(state))]

    def forget_damaged(self) -> None:
        """Forget graphs that are damaged, also where only reading them shows it: `tend` builds them anew."""
        for state in self._states():
            if state.row and not self._is_whole(state.row, thorough=True):
                with self._writer.transaction() as connection:
                    forget_graph(connection, state.space.key)

    def _fault(self, state: _State) -> tuple[str, str, bool] | None:
        row = state.row
        if not is_installed():
            said = f"every search compares all {state.vectors:,} vectors, because usearch is not installed"
            return said, INSTALL, False
        if row is None:
            said = f"there is no index of the {state.vectors:,} vectors: every search compares them all"
        elif not self._is_whole(row, thorough=True):
            said = f"the vector index {row.file} is missing or damaged: every search compares all vectors"
        elif state.is_behind:
            said = f"the vector index lacks {state.unindexed:,} vectors and has {state.dead:,} deleted ones"
        else:
            return None
        return said, Hint(Action.SYNC, "{sync} builds it anew, and so does {repair}"), True

    def _states(self) -> list[_State]:
        with self._readers.connection() as connection, snapshot(connection):
            if home_url(connection):
                return []
            return [_state(connection, space) for space in all_spaces(connection) if space.identity]

    def _is_due(self, state: _State) -> bool:
        if not self._plan.wants(state.vectors):
            return state.row is not None
        return is_installed() and (state.row is None or state.is_behind or not self._is_whole(state.row))

    def _renew(self, state: _State, progress: Progress) -> None:
        with self._writer.transaction() as connection:
            if not self._plan.wants(state.vectors):
                forget_graph(connection, state.space.key)
                end_noting(connection)
                return
            begin_noting(connection)
        try:
            self._build(state.space, progress)
        except (OSError, RuntimeError, MemoryError) as fault:  # RuntimeError: all that usearch knows
            import logging

            logging.getLogger(__name__).warning("no vector index could be built: %s", fault)

    def _build(self, space: SpaceRow, progress: Progress) -> None:
        """Write a new file and let the database name it, unless the space has been replaced by then."""
        with self._vec_readers.connection() as connection, snapshot(connection):
            now = next((one for one in all_spaces(connection) if _is_same(one, space)), None)
            if now is None:
                return
            state = _state(connection, now)
            growing = self._begun(connection, state)
        growing.link(lambda done, total: progress("graph", done, total))
        path = new_file(self._plan.database, now.key)
        row = seal(path, now.version, growing.save(path), state.vectors)
        with self._writer.transaction() as connection:
            if any(_is_same(one, now) for one in all_spaces(connection)):
                put_graph(connection, now.key, row)

    def _begun(self, connection: Connection, state: _State) -> Growing:
        """Return a graph of all vectors, linked or not: the present one and what it lacks, if it is sound."""
        from concord.backends.sqlite.graph import Growing  # late: it imports numpy and usearch

        space, row = state.space, state.row
        assert space.identity is not None  # others are passed over
        if row and not state.is_worn and self._is_whole(row, thorough=True):
            growing = Growing(space.identity.dimension, self._plan.path(row))
            statement = _FRESH.format(vec=space.table, space=space.key, version=row.version)
        else:
            growing = Growing(space.identity.dimension)
            statement = _ALL.format(vec=space.table)
        growing.take(connection.execute(statement))
        return growing

    def _is_whole(self, row: GraphRow, *, thorough: bool = False) -> bool:
        return is_whole(self._plan.path(row), row, thorough=thorough)

    def _leftovers(self) -> list[str]:
        with self._readers.connection() as connection:
            return leftovers(self._plan.database, graph_files(connection))


def _state(connection: Connection, space: SpaceRow) -> _State:
    row = graph_row(connection, space.key)
    vectors = count_vectors(connection, space.key) if vec_exists(connection, space.key) else 0
    return _State(space, vectors, row, count_unindexed(connection, space.key, row) if row else 0)


def _is_same(space: SpaceRow, other: SpaceRow) -> bool:
    """Whether two rows are of the same space, though its version may have changed."""
    return (space.key, space.identity) == (other.key, other.identity)
