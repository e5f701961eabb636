"""Which passage stands at the place that a query names: a file, or a line of one?

What is at a place need hold no word of the query, so that no strategy would find it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from concord.answering.retrieve import Place, Retrieval
from concord.ranking.ballots import Ballots, with_votes
from concord.storage import Catalog
from concord.text.citation import Citation
from concord.text.line_places import places_in
from concord.types import Candidate, Chunk, ChunkId, Document, Filter, Query

STRATEGY = "place"  # what such a passage is found by
MOST_LOOKED = 8  # times that a path is looked up for one query


def with_place(found: Retrieval, catalog: Catalog) -> Retrieval:
    """Return what was found with the passage that the query points to, which then counts as found."""
    place = None if found.query.filter.path else _passage(found.query, catalog)
    if place is None:
        return found
    if place.chunk_id not in found.ballots.votes:
        found = found.with_ballots(_with_vote(found, place.chunk_id))
    return replace(found, place=place)


def _with_vote(found: Retrieval, chunk_id: ChunkId) -> Ballots:
    ballots, vote = found.ballots, Candidate(chunk_id, STRATEGY, "lexical", found.query.candidates + 1, 0.0)
    near: Mapping[ChunkId, float] = {}
    if found.cosines and ballots.semantic:
        near = found.cosines.compare(found.query.meaning, [vote]).cosines()
    drawn = {**ballots.drawn, **near} if ballots.drawn else {}
    return replace(with_votes(ballots, [vote], cosine=near), drawn=drawn, copies=ballots.copies)


def _passage(query: Query, catalog: Catalog) -> Place | None:
    """Return the passage at a place that a query names, if there is one that may be found."""
    paths = ((place, end) for place in places_in(query.text) for end in _ends(place.path))
    unknown: set[Citation] = set()
    for place, path in islice(paths, MOST_LOOKED):
        if place in unknown:
            continue
        documents = [one for one in catalog.documents_at(path) if _is_let(one, query.filter, catalog)]
        if len(documents) == 1 and (chunk := _chunk_at(place, catalog.chunks_of(documents[0].id))):
            return Place(chunk.id, place.lines[0] if place.lines else None)
        if documents:  # of a shorter path there are as many, or more
            unknown.add(place)
    return None


def _ends(path: str) -> Iterator[str]:
    """Yield a path and, as it may begin elsewhere than ours, its shorter and shorter ends."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    return ("/".join(parts[start:]) for start in range(len(parts)))


def _is_let(document: Document, filter: Filter, catalog: Catalog) -> bool:
    if document.superseded_by is not None and not filter.include_superseded:
        return False
    return filter.is_open or catalog.count_documents(replace(filter, path=document.path)) > 0


def _chunk_at(place: Citation, chunks: list[Chunk]) -> Chunk | None:
    """Return the chunk that a place begins in; the first one of a file that was named without a line."""
    if place.lines is None:
        return chunks[0] if chunks else None
    line = place.lines[0]
    before = [chunk for chunk in chunks if chunk.start_line <= line]  # it may be an empty line after one
    holding = (chunk for chunk in before if line <= chunk.end_line)
    return next(holding, before[-1]) if before and line <= chunks[-1].end_line else None
