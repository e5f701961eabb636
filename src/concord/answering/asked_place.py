"""Which passage stands at the place that a query names: a file, or a line of one?

What is at a place need hold no word of the query, so that no strategy would find it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from concord.answering.retrieve import Retrieval
from concord.ranking.ballots import with_votes
from concord.storage import Catalog
from concord.text.citation import Citation
from concord.text.line_places import places_in
from concord.types import Candidate, Chunk, ChunkId, Document, Filter

STRATEGY = "place"  # what such a passage is found by
MOST_LOOKED = 8  # times that a path is looked up for one query


def asked_passage(found: Retrieval, catalog: Catalog) -> ChunkId | None:
    """Return the passage at the place that a query names, if there is one that may be found."""
    if found.query.filter.path is not None:
        return None
    looked = 0
    for place in places_in(found.query.text):
        for path in _ends(place.path):
            if looked == MOST_LOOKED:
                return None
            looked += 1
            documents = [one for one in catalog.documents_at(path) if _is_let(one, found.query.filter, catalog)]
            if len(documents) == 1 and (chunk := _chunk_at(place, catalog.chunks_of(documents[0].id))):
                return chunk.id
            if documents:  # of a shorter path there are as many, or more
                break
    return None


def with_passage(found: Retrieval, chunk_id: ChunkId) -> Retrieval:
    """Return what was found with a passage that counts as found, behind all others."""
    ballots = found.ballots
    if chunk_id in ballots.votes:
        return found
    vote = Candidate(chunk_id, STRATEGY, "lexical", found.query.candidates + 1, 0.0)
    near = found.cosines.compare(found.query.meaning, [vote]).cosines() if found.cosines and ballots.semantic else {}
    joined = with_votes(ballots, [vote], cosine=near)
    drawn = {**ballots.drawn, **near} if ballots.drawn else {}
    return found.with_ballots(replace(joined, drawn=drawn, copies=ballots.copies))


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
    return next((chunk for chunk in chunks if chunk.start_line <= line <= chunk.end_line), None)
