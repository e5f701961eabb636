"""Which chunks does a filter let through? Few of them are listed, and listed once until something changes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from concord.store.postgres.database import DIALECT, PostgresSession
from concord.store.rows import condition
from concord.types import Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# A filter that leaves so few is answered exactly: comparing a vector costs 2 µs, and a walk through a graph
# that has to pass by much else may miss the nearest (recall@10 was 0 to 0.8).
MOST_LISTED = 20_000  # chunks
NARROW_SHARE = 0.05  # or of all chunks
_MOST_REMEMBERED = 64  # filters, 160 kB each

_CHUNKS = "kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key"
ALLOWED = f"SELECT c.id FROM {_CHUNKS} WHERE {{condition}}"
ALLOWED_AMONG = f"{ALLOWED} AND c.id IN (:chunks...)"
SUPERSEDED = ALLOWED.format(condition="d.superseded_by IS NOT NULL")
# As one value: to take a thousand rows apart takes longer than to find them.
_LIST = "SELECT count(*), string_agg(int8send(id), '') FROM ({chunks}) AS few"


class Scope:
    """The chunks that are let through, or all but some."""

    def __init__(self, sent: bytes | None, *, is_all_but: bool) -> None:
        self._sent = sent or b""
        self.is_all_but = is_all_but

    @cached_property
    def ids(self) -> Integers:
        """The chunks that are listed."""
        import numpy as np

        return np.frombuffer(self._sent, ">i8").astype(np.int64)

    @cached_property
    def array(self) -> str:
        """The chunks that are listed as an array in PostgreSQL's form."""
        return f"{{{','.join(map(str, self.ids.tolist()))}}}"

    @property
    def is_everything(self) -> bool:
        """Whether all chunks are let through."""
        return self.is_all_but and not self._sent

    def holds(self, chunks: Integers) -> Any:
        """Return of each chunk whether it is let through."""
        import numpy as np

        if self.is_everything:
            return slice(None)
        return np.isin(chunks, self.ids, invert=self.is_all_but)


class Scopes:
    """The scopes of an organisation's filters: a filter is mostly used again and again."""

    def __init__(self) -> None:
        self._known: dict[Filter, tuple[int, Scope | None]] = {}

    def of(self, session: PostgresSession, filter: Filter, generation: int, chunks: int) -> Scope | None:
        """Return what a filter lets through of so many chunks; None if that is too much to be listed."""
        if filter.is_open and filter.include_superseded:
            return Scope(None, is_all_but=True)
        known = self._known.get(filter)
        if known is None or known[0] != generation:
            most = max(MOST_LISTED, int(NARROW_SHARE * chunks))
            known = self._known[filter] = generation, _read(session, filter, most)
            for oldest in list(self._known)[:-_MOST_REMEMBERED]:
                self._known.pop(oldest, None)
        return known[1]


def _read(session: PostgresSession, filter: Filter, most: int) -> Scope | None:
    if filter.is_open:
        _, sent = session.execute(_LIST.format(chunks=SUPERSEDED), {}, binary=True).fetchone() or (0, None)
        return Scope(sent, is_all_but=True)
    sql, values = condition(filter, DIALECT)
    chunks = f"{ALLOWED.format(condition=sql)} LIMIT :most"
    values["most"] = most + 1
    size, sent = session.execute(_LIST.format(chunks=chunks), values, binary=True).fetchone() or (0, None)
    return None if size > most else Scope(sent, is_all_but=False)
