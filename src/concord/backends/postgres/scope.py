"""Which vectors does a filter let through, and how many? That decides between the graph and comparing all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from concord.backends.postgres.connections import Connection
from concord.backends.postgres.filters import ALLOWED, CHUNKS, SUPERSEDED, condition
from concord.types import Filter

# A filter that leaves few is answered exactly. Comparing one vector costs 2 µs if its chunk is known, and 4
# times that where it must be looked for; walking the graph costs 2 ms and 50 µs for each that it passes by.
ALWAYS_EXACT = 1000
MOST_EXACT = 10_000
NARROW_SHARE = 0.05  # of all vectors in the table, other organisations' among them: the graph holds them all
_MOST_REMEMBERED = 64  # filters: up to 70 kilobytes each

# A walk that has to pass by more than it would if what is allowed lay evenly among the rest has begun far
# from it. What it brings back then is what it came to first, not the nearest: recall@10 was 0 to 0.8.
_STRAY = 2.0
_SPARE = 2000  # what a walk looks at beside what it passes by
MOST_PASSED = 20_000  # as pgvector has it
MOST_COMPARED = 30_000  # after a walk that went astray, which takes longer than comparing these does

_COUNT = f"""
SELECT count(*), CASE WHEN count(*) <= %(few)s THEN coalesce(array_agg(id), '{{{{}}}}')::text END
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
    is_listed: bool = False  # whether the values say which, so that none has to be looked for

    def is_narrow(self, table_size: float) -> bool:
        """Whether so few may be found that comparing each is sure, and fast enough."""
        few = min(MOST_EXACT, NARROW_SHARE * table_size)
        return self.is_listed or self.size <= ALWAYS_EXACT or self.size <= few

    @property
    def is_comparable(self) -> bool:
        """Whether each may be compared if need be."""
        return self.size <= MOST_COMPARED

    def most_passed(self, wanted: int, table_size: float) -> int:
        """Return how many vectors a walk for so many passes by at most unless it has gone astray."""
        return min(MOST_PASSED, math.ceil(_STRAY * wanted / self._share(table_size)))

    def most_scanned(self, wanted: int, table_size: float) -> int:
        """Return after how many vectors a walk is to end: one through nothing else is let go on."""
        is_alone = self._share(table_size) == 1
        return MOST_PASSED if is_alone else min(MOST_PASSED, self.most_passed(wanted, table_size) + _SPARE)

    def _share(self, table_size: float) -> float:
        return min(1.0, max(1, self.size) / max(1.0, table_size))


class _Reach(NamedTuple):
    """How many chunks a filter lets through, as of a generation, and which if they are few."""

    generation: int
    size: int
    few: str | None  # an array as PostgreSQL writes it, which is how it is sent back


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
            return Scope("", _AMONG_FEW, {"allowed": reach.few}, reach.size, is_listed=True)
        return Scope(_IS_ALLOWED.format(condition=sql), _AMONG.format(condition=sql), values, reach.size)

    def _reach(self, connection: Connection, sql: str, values: Mapping[str, Any], generation: int) -> _Reach:
        asked = {"org": self._org, "most": MOST_COMPARED + 1, "few": MOST_EXACT, **values}
        size, few = connection.execute(_COUNT.format(condition=sql), asked).fetchone() or (0, None)
        return _Reach(generation, size, few)


def uncounted(filter: Filter) -> Scope:
    """Return the scope of a filter for whoever compares each vector anyway."""
    sql, values = condition(filter)
    return Scope("", _AMONG.format(condition=sql), values, 0)


def open_scope(filter: Filter, chunks: int) -> Scope:
    """Return the scope of a filter that hides superseded chunks at most."""
    allowed = "TRUE" if filter.include_superseded else f"v.chunk NOT IN ({SUPERSEDED})"
    return Scope(allowed, allowed, {}, chunks)
