"""What do all find by one deadline? Every strategy is asked at once, and names and places are looked up.

A strategy that fails or is late is named in the answer and stops nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import Action, BackendDown, DeadlinePassed, Hint, Unavailable, joined, reason_of
from concord.search.deadline import Deadline, Task
from concord.search.legs import LEXICAL, NAMES, Tools
from concord.store.contract import documents_at
from concord.text.citations import Citation, extent, places_in
from concord.types import Chunk, ChunkId, Degraded, Document, Filter, Leg, Mode, Query, RankedList, Scored

if TYPE_CHECKING:
    from concord.core.protocols import Strategy
    from concord.store.contract import Catalog

LEGS: Mapping[Mode, tuple[Leg, ...]] = {
    "auto": ("lexical", "semantic"),
    "hybrid": ("lexical", "semantic"),
    "semantic": ("semantic",),
    "fts5": ("lexical",),
}
MAX_PLACES = 8  # of one query that are looked up
_Named = tuple[Sequence[Scored], ChunkId | None]  # chunks that define a name, and the one at an asked place


class Retrieved(Struct, frozen=True):
    """What the strategies found, before any of it is put in order."""

    lists: Sequence[RankedList]
    names: Mapping[ChunkId, float] = {}  # chunk → its share of the best name score
    degraded: tuple[Degraded, ...] = ()
    timings_ms: Mapping[str, float] = {}


def retrieve(query: Query, mode: Mode, tools: Tools, deadline: Deadline) -> Retrieved:
    """Ask the strategies of a mode, and look up what the query names."""
    asked = [strategy for strategy in tools.strategies if strategy.leg in LEGS[mode]]
    has_names = "lexical" in LEGS[mode] and (query.names or "." in query.text)
    names = Task(partial(_named, query, tools)) if has_names else None
    retrieved = ask(asked, query, deadline)
    if query.chunks or mode != "semantic":
        _refuse(retrieved, mode, tools.absent)
    return _with_names(retrieved, names, deadline) if names else retrieved


def ask(strategies: Sequence[Strategy], query: Query, deadline: Deadline) -> Retrieved:
    """Return what all strategies find that answer before the deadline."""
    tasks = {strategy.name: Task(partial(strategy.search, query)) for strategy in strategies}
    lists: list[RankedList] = []
    degraded: list[Degraded] = []
    for name, task in tasks.items():
        try:
            found = task.result(deadline.left_ms())
        except Exception as error:  # whatever an engine raises is reported in the answer
            degraded.append(Degraded(name, reason_of(error)))
            continue
        if found is None:
            degraded.append(Degraded(name, f"no answer within {deadline.ms:g} ms"))
        else:
            lists.append(found)
    took = {name: task.took_ms for name, task in tasks.items() if task.took_ms}
    return Retrieved(lists, degraded=tuple(degraded), timings_ms=took)


def _named(query: Query, tools: Tools) -> _Named:
    search = tools.store.words.search_names
    scores = search(query.names, query.filter, query.candidates) if query.names else []
    return scores, None if query.filter.path else _place(query, tools.store.catalog)


def _with_names(retrieved: Retrieved, names: Task[_Named], deadline: Deadline) -> Retrieved:
    """Add what the query names; an answer does without it if it fails, which the other legs report."""
    try:
        found = names.result(deadline.left_ms())
    except Exception as error:  # the answer says so and goes on
        return replace(retrieved, degraded=(*retrieved.degraded, Degraded(NAMES, reason_of(error))))
    scores, place = found or ((), None)
    if not scores and place is None:
        return retrieved
    best = max((row.score for row in scores), default=1.0)
    shares = {row.chunk_id: row.score / best for row in scores}
    if place is not None:
        shares = {**dict.fromkeys(shares, 0.0), place: 1.0}
    ranked = [Scored(chunk_id, share) for chunk_id, share in shares.items() if share]
    return replace(
        retrieved,
        lists=[*retrieved.lists, RankedList(NAMES, "lexical", ranked)],
        names=shares,
    )


def _place(query: Query, catalog: Catalog) -> ChunkId | None:
    """Return the chunk at the first place that a query names (src/app.py:120), if one document fits it."""
    for place in places_in(query.meaning)[:MAX_PLACES]:
        parts = [part for part in place.path.split("/") if part not in ("", ".", "..", "~")]
        found = documents_at(catalog, "/".join(parts[-2:])) if parts else []
        # Paths may begin elsewhere: those count whose ends are alike in most parts.
        alike = [_shared(document.path.split("/"), parts) for document in found]
        most = max(alike, default=0)
        meant = [document for document, shared in zip(found, alike, strict=True) if shared == most]
        known = [document for document in meant if _passes(document, query.filter, catalog)]
        chunk = _chunk_at(place, catalog.chunks(known[0].id)) if len(known) == 1 else None
        if chunk:
            return chunk.id
    return None


def _shared(ours: Sequence[str], parts: Sequence[str]) -> int:
    """Return how many of the last parts of two paths are the same."""
    pairs = zip(reversed(ours), reversed(parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _passes(document: Document, filter: Filter, catalog: Catalog) -> bool:
    if document.superseded_by is not None and not filter.include_superseded:
        return False
    return filter.is_open or catalog.count_documents(replace(filter, path=document.path)) > 0


def _chunk_at(place: Citation, chunks: list[Chunk]) -> Chunk | None:
    """Return the chunk that holds the beginning of a place; the first chunk if no line is named."""
    if place.lines is None:
        return chunks[0] if chunks else None
    begin, _ = place.extent
    before = [chunk for chunk in chunks if extent(chunk)[0] <= begin]  # the last may end above an empty line
    holding = (chunk for chunk in before if begin <= extent(chunk)[1])
    return next(holding, before[-1]) if before and begin[0] <= chunks[-1].end_line else None


def _refuse(retrieved: Retrieved, mode: Mode, absent: Degraded | None) -> None:
    """Refuse to answer if what was asked for could not be searched: the store would seem to hold nothing.

    Without words, what meaning finds alone would pass for all there is; also if one lexical strategy failed
    and the others found nothing. Meaning may be missing unless it alone was asked for.
    """
    broken = [failed for failed in retrieved.degraded if failed.strategy in LEXICAL]
    has_found = any(ranked.found for ranked in retrieved.lists)
    if mode != "semantic" and broken and (len(broken) == len(LEXICAL) or not has_found):
        hint = "ask again with a longer {deadline}; {stats} tells whether the store is well"
        raise BackendDown(
            joined(": ", "the knowledge base cannot be searched by words", broken[0].reason),
            hint=Hint(Action.DEADLINE, hint),
        )
    missing = [part for part in (*retrieved.degraded, absent) if part and part.strategy == "semantic"]
    if mode != "semantic" or not missing:
        return
    message = joined(": ", "the knowledge base cannot be searched by meaning", missing[0].reason)
    if missing[0] is not absent and "semantic" not in retrieved.timings_ms:  # asked, and not answered yet
        hint = "ask again with a longer {deadline}, or by words as well ({mode})"
        raise DeadlinePassed(message, hint=Hint(Action.DEADLINE, hint))
    raise Unavailable(message, hint=Hint(Action.MODE, "ask by words as well ({mode})"))
