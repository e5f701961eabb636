"""Which vectors does a filter let through, and how many? That decides between the graph and comparing all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from concord.backends.postgres.connections import Connection
from concord.backends.postgres.filters import ALLOWED, CHUNKS, SUPERSEDED, condition
from concord.backends.postgres.rows import array_of
from concord.types import ChunkId, Filter

# A filter that leaves few is answered exactly. Comparing one vector costs 2 µs; walking the graph costs 2 ms
# and more the rarer an allowed one is on the way.
ALWAYS_EXACT = 1000
MOST_EXACT = 10_000
NARROW_SHARE = 0.05  # of all vectors in the table, other organisations' among them: the graph holds them all
_MOST_REMEMBERED = 64  # filters: a few kilobytes each

_COUNT = f"""
SELECT count(*), CASE WHEN count(*) <= %(few)s THEN array_agg(id) END
FROM ({ALLOWED} LIMIT %(most)s) AS first"""
_AMONG_FEW = "v.chunk = ANY(%(allowed)s::bigint[])"
_AMONG = f"v.chunk IN ({ALLOWED})"
# A scalar sub-select stays where it is: it is asked of each vector that the graph comes by.
_IS_ALLOWED = f"(SELECT TRUE FROM {CHUNKS} WHERE c.org = %(org)s AND c.id = v.chunk AND {{condition}})"


class Scope(NamedTuple):
    """Which vectors may be found, `v`: asked one by one and as a set, with the values and about how many."""

    each: str
    together: str
    values: dict[str, Any]
    size: int

    def is_narrow(self, table_size: float) -> bool:
        """Whether so few may be found that comparing each is sure, and fast enough."""
        return self.size <= ALWAYS_EXACT or self.size <= min(MOST_EXACT, NARROW_SHARE * table_size)


class _Reach(NamedTuple):
    """How many chunks a filter lets through, as of a generation, and which if they are few."""

    generation: int
    size: int
    few: list[ChunkId] | None


class Scopes:
    """The scopes of an organisation's filters: whoever filters does so again and again."""

    def __init__(self, org: int) -> None:
        self._org = org
        self._reaches: dict[Filter, _Reach] = {}

    def __len__(self) -> int:
        """Return how many filters are remembered."""
        return len(self._reaches)

    def counted(self, connection: Connection, filter: Filter, generation: int) -> Scope:
        """Return what a filter lets through; it is counted again when something has changed."""
        sql, values = condition(filter)
        reach = self._reaches.get(filter)
        if reach is None or reach.generation != generation:
            reach = self._reaches[filter] = self._reach(connection, sql, values, generation)
            for oldest in list(self._reaches)[:-_MOST_REMEMBERED]:
                self._reaches.pop(oldest, None)
        if reach.few is not None:
            return Scope("", _AMONG_FEW, {"allowed": array_of(reach.few)}, reach.size)
        return Scope(_IS_ALLOWED.format(condition=sql), _AMONG.format(condition=sql), values, reach.size)

    def _reach(self, connection: Connection, sql: str, values: Mapping[str, Any], generation: int) -> _Reach:
        asked = {"org": self._org, "most": MOST_EXACT + 1, "few": ALWAYS_EXACT, **values}
        size, few = connection.execute(_COUNT.format(condition=sql), asked).fetchone() or (0, None)
        return _Reach(generation, size, few or [] if size <= ALWAYS_EXACT else None)


def uncounted(filter: Filter) -> Scope:
    """Return the scope of a filter for whoever compares each vector anyway."""
    sql, values = condition(filter)
    return Scope("", _AMONG.format(condition=sql), values, 0)


def open_scope(filter: Filter, chunks: int) -> Scope:
    """Return the scope of a filter that hides superseded chunks at most."""
    allowed = "TRUE" if filter.include_superseded else f"v.chunk NOT IN ({SUPERSEDED})"
    return Scope(allowed, allowed, {}, chunks)
