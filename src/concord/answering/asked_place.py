"""Which passage does a query point to, by the name of a file or of a line in it: `src/app.py:120`?

No strategy would find it: the text there need not hold a word of the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.answering.retrieval import Place, Retrieval
from concord.text.citation import Citation
from concord.text.line_places import places_in
from concord.types import Chunk, Document, Filter, Query

if TYPE_CHECKING:
    from concord.storage import Catalog

STRATEGY = "place"  # the name under which such a passage is voted for
MOST_PLACES = 8  # of one query that are looked up


def with_place(found: Retrieval, catalog: Catalog) -> Retrieval:
    """Add the passage that the query points to, as a candidate and as the `place` of the retrieval."""
    place = None if found.query.filter.path else _passage(found.query, catalog)
    if place is None:
        return found
    if place.chunk_id not in found.ballots.votes:
        found = found.with_votes([place.chunk_id], STRATEGY)
    return replace(found, place=place)


def _passage(query: Query, catalog: Catalog) -> Place | None:
    """Return the passage at the first place that a query names, if exactly one document fits it."""
    for place in places_in(query.meaning)[:MOST_PLACES]:
        known = [one for one in _documents(place.path, catalog) if _passes(one, query.filter, catalog)]
        chunk = _chunk_at(place, catalog.chunks_of(known[0].id)) if len(known) == 1 else None
        if chunk:
            return Place(chunk.id, place.lines[0] if place.lines else None)
    return None


def _documents(path: str, catalog: Catalog) -> list[Document]:
    """Return the documents that a path may mean: their paths end alike, but may begin elsewhere."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    found = catalog.documents_at("/".join(parts[-2:])) if parts else []
    alike = [_shared(one.path.split("/"), parts) for one in found]
    return [one for one, shared in zip(found, alike, strict=True) if shared == max(alike)]


def _shared(ours: Sequence[str], parts: Sequence[str]) -> int:
    """Return how many of the last parts of two paths are the same."""
    pairs = zip(reversed(ours), reversed(parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _passes(document: Document, filter: Filter, catalog: Catalog) -> bool:
    if document.superseded_by is not None and not filter.include_superseded:
        return False
    return filter.is_open or catalog.count_documents(replace(filter, path=document.path)) > 0


def _chunk_at(place: Citation, chunks: list[Chunk]) -> Chunk | None:
    """Return the chunk that holds the first line of a place; the first chunk if no line is named."""
    if place.lines is None:
        return chunks[0] if chunks else None
    line = place.lines[0]
    before = [chunk for chunk in chunks if chunk.start_line <= line]  # the last may end above an empty line
    holding = (chunk for chunk in before if line <= chunk.end_line)
    return next(holding, before[-1]) if before and line <= chunks[-1].end_line else None
