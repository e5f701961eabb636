"""What comes as one? Hits of one section, or of one document, under the best of them.

Which chunks stand under the same heading is read from the catalog, without their texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from concord.core.errors import KBError
from concord.search.blend import moments
from concord.search.document_vectors import document_vectors
from concord.search.judge import Judged, Verdict
from concord.types import Chunk, ChunkId, Group, Hit, Part, Query, SectionSpan

if TYPE_CHECKING:
    from concord.search.tools import Tools
    from concord.store.contract import Catalog

MOST_FURTHER = 5  # passages under the best one of their section or document
REACH = 200  # chunks on either side of a passage, among which its section is looked for
BYTES_PER_TOKEN = 3  # as in every budget; a character counts as a byte
LEAST = 1e-6  # of a probability, before it becomes log-odds
DOCUMENT_WEIGHT = 0.5  # log-odds for each standard deviation of the cosine of a document's vector


class Groups(NamedTuple):
    """The verdict on the best passage of each group, and those that come under it."""

    leads: Verdict
    further: Mapping[ChunkId, Sequence[Judged]]

    def under(self, chosen: Verdict) -> Verdict:
        """Return the verdict on all that comes under the chosen passages."""
        return chosen.only(row for lead in chosen.judged for row in self.further.get(_id(lead), ()))


def grouped(verdict: Verdict, by: Group, query: Query, tools: Tools) -> Groups:
    """Make one of all passages of a section or of a document; as passages, each comes for itself."""
    if by == "passage":
        return Groups(verdict, {})
    chunks = {_id(row): row.passage.chunk for row in verdict.judged} if by == "section" else {}
    spans = sections(chunks, tools.store.catalog) if chunks else {}
    groups: dict[tuple[str, SectionSpan | ChunkId | None], list[Judged]] = {}
    for row in verdict.judged:
        place = spans.get(_id(row), _id(row)) if by == "section" else None
        groups.setdefault((row.passage.document.id, place), []).append(row)
    leads = [rows[0] for rows in groups.values()]
    further = {_id(rows[0]): rows[1 : 1 + MOST_FURTHER] for rows in groups.values()}
    return Groups(verdict.only(_by_document(leads, query, tools) if by == "document" else leads), further)


def sections(hits: Mapping[ChunkId, Chunk], catalog: Catalog) -> dict[ChunkId, SectionSpan]:
    """Return the section of each chunk that is not all of it: what is around it under the same heading."""
    near = catalog.under_same_heading(list(hits), REACH)
    return {id: found for id, parts in near.items() if (found := _section(hits[id], parts))}


def _section(chunk: Chunk, parts: Sequence[Part]) -> SectionSpan | None:
    places = {part.position: part for part in parts}
    run = [chunk.index]
    while run[0] - 1 in places:
        run.insert(0, run[0] - 1)
    while run[-1] + 1 in places:
        run.append(run[-1] + 1)
    held = [places[at] for at in run if at in places]
    if len(held) < 2:
        return None
    lines = held[0].start_line, max(part.end_line for part in held)
    return SectionSpan(chunk.heading, *lines, -(-(held[-1].end - held[0].start) // BYTES_PER_TOKEN))


def with_further(
    hits: Sequence[Hit], under: Sequence[Hit], groups: Groups, catalog: Catalog
) -> tuple[Hit, ...]:
    """Return hits with the section that each is a part of, and with those that come under them."""
    spans = sections({hit.chunk.id: hit.chunk for hit in hits}, catalog)
    by_id = {hit.chunk.id: hit for hit in under}

    def below(hit: Hit) -> tuple[Hit, ...] | None:
        if not groups.further:
            return None
        return tuple(replace(by_id[_id(row)], rank=hit.rank) for row in groups.further[hit.chunk.id])

    return tuple(replace(hit, section=spans.get(hit.chunk.id), more=below(hit)) for hit in hits)


def _by_document(leads: Sequence[Judged], query: Query, tools: Tools) -> list[Judged]:
    """Return the best passages of documents, in an order that counts what each document is about as a whole.

    A document whose vector is nearer to the query than those of the others gains as many log-odds as it is
    nearer, in standard deviations, times a weight.
    """
    near = _document_cosines(leads, query, tools)
    if len(near) < 2:
        return list(leads)
    mean, spread = moments(list(near.values()))

    def worth(row: Judged) -> float:
        odds = math.log(max(row.score, LEAST) / max(1 - row.score, LEAST))
        return odds + DOCUMENT_WEIGHT * (near.get(_id(row), mean) - mean) / spread

    places = sorted(range(len(leads)), key=lambda at: -worth(leads[at]))
    return [_moved(leads[was], None if was == now else was + 1) for now, was in enumerate(places)]


def _document_cosines(leads: Sequence[Judged], query: Query, tools: Tools) -> Mapping[ChunkId, float]:
    """Return how near each passage's document is to the query; nothing where meaning was not searched."""
    if tools.similarity is None or not any(map(str.isalnum, query.meaning)):
        return {}
    try:
        vectors = document_vectors(list(map(_id, leads)), tools.store.catalog, tools.similarity)
        of_leads = {_id(row): vectors.get(row.passage.document.id) for row in leads}
        known = {chunk_id: vector for chunk_id, vector in of_leads.items() if vector}
        return tools.similarity.compare(query.meaning, known).cosines() if known else {}
    except KBError:  # the answer says already that meaning had no part in it
        return {}


def _moved(row: Judged, was: int | None) -> Judged:
    ranked = replace(row.passage.ranked, moved_from=was)
    return replace(row, passage=replace(row.passage, ranked=ranked))


def _id(row: Judged) -> ChunkId:
    return row.passage.chunk.id
