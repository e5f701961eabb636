"""What comes as one? Hits of one section, or of one document, under the best of them.

Which chunks stand under the same heading is read from the catalog, without their texts. A document's vector
is the mean of its chunks' vectors, which are stored anyway: so nothing has to be kept current.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from concord.core.errors import KBError
from concord.search.blend import moments
from concord.search.judge import Judged, Verdict
from concord.search.legs import Tools
from concord.types import Chunk, ChunkId, Filter, Group, Hit, Query, SectionSpan, Vector

if TYPE_CHECKING:
    from concord.search.legs import Semantic
    from concord.store.contract import Catalog, VectorIndex

MOST_FURTHER = 5  # passages under the best one of their section or document
REACH = 200  # chunks on either side of a passage, among which its section is looked for
BYTES_PER_TOKEN = 3  # as in every budget; a character counts as a byte
LEAST = 1e-6  # of a probability, before it becomes log-odds
MOST_CHUNKS = 64  # of a document, spread evenly: the mean of so many is that of all, near enough
NEAREST_CHUNKS = 60  # are looked at for near documents: a long one fills many places
DOCUMENT_WEIGHT = 0.5  # log-odds for each standard deviation of the cosine of a document's vector


class Groups(NamedTuple):
    """The verdict on the best passage of each group, and those that come under it."""

    leads: Verdict
    further: Mapping[ChunkId, Sequence[Judged]]


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
    found = {}
    for id, parts in catalog.under_same_heading(list(hits), REACH).items():
        places = {part.position: part for part in parts}
        first = last = hits[id].index
        while first - 1 in places:
            first -= 1
        while last + 1 in places:
            last += 1
        held = [places[at] for at in range(first, last + 1) if at in places]
        if len(held) > 1:
            tokens = -(-(held[-1].end - held[0].start) // BYTES_PER_TOKEN)
            end_line = max(part.end_line for part in held)
            found[id] = SectionSpan(hits[id].heading, held[0].start_line, end_line, tokens)
    return found


def with_further(
    hits: Sequence[Hit], under: Sequence[Hit], groups: Groups, catalog: Catalog
) -> tuple[Hit, ...]:
    """Return hits with the section that each is a part of, and with those that come under them."""
    spans = sections({hit.chunk.id: hit.chunk for hit in hits}, catalog)
    by_id = {hit.chunk.id: hit for hit in under}

    whole = [replace(hit, section=spans.get(hit.chunk.id)) for hit in hits]
    if not groups.further:
        return tuple(whole)
    more = [[by_id[_id(row)] for row in groups.further[hit.chunk.id]] for hit in whole]
    return tuple(
        replace(hit, more=tuple(replace(other, rank=hit.rank) for other in others))
        for hit, others in zip(whole, more, strict=True)
    )


def _by_document(leads: Sequence[Judged], query: Query, tools: Tools) -> list[Judged]:
    """Return the best passages of documents, in an order that counts what each document is about as a whole.

    A document whose vector is nearer to the query than those of the others gains as many log-odds as it is
    nearer, in standard deviations, times a weight.
    """
    near: Mapping[ChunkId, float] = {}
    if tools.similarity and any(map(str.isalnum, query.meaning)):
        with suppress(KBError):  # the answer says already that meaning had no part in it
            vectors = document_vectors(list(map(_id, leads)), tools.store.catalog, tools.similarity)
            of_leads = {_id(row): vectors.get(row.passage.document.id) for row in leads}
            known = {chunk_id: vector for chunk_id, vector in of_leads.items() if vector}
            near = tools.similarity.compare(query.meaning, known).cosines() if known else {}
    if len(near) < 2:
        return list(leads)
    mean, spread = moments(list(near.values()))

    def worth(row: Judged) -> float:
        odds = math.log(max(row.score, LEAST) / max(1 - row.score, LEAST))
        return odds + DOCUMENT_WEIGHT * (near.get(_id(row), mean) - mean) / spread

    ordered = []
    for now, was in enumerate(sorted(range(len(leads)), key=lambda at: -worth(leads[at]))):
        passage = leads[was].passage
        ranked = replace(passage.ranked, moved_from=None if was == now else was + 1)
        ordered.append(replace(leads[was], passage=replace(passage, ranked=ranked)))
    return ordered


def _id(row: Judged) -> ChunkId:
    return row.passage.chunk.id


def document_vectors(
    chunk_ids: Sequence[ChunkId], catalog: Catalog, index: VectorIndex | Semantic
) -> dict[str, Vector]:
    """Return the vectors of the documents that chunks are part of; none for one whose chunks have none."""
    import numpy as np

    chunks: dict[str, list[ChunkId]] = {}
    for chunk_id, document_id in catalog.siblings(chunk_ids).items():
        chunks.setdefault(document_id, []).append(chunk_id)
    some = {document_id: held[:: -(-len(held) // MOST_CHUNKS)] for document_id, held in chunks.items()}
    known = index.fetch([chunk_id for held in some.values() for chunk_id in held])
    found = {}
    for document_id, held in some.items():
        vectors = [np.frombuffer(known[chunk_id], dtype="<f4") for chunk_id in held if chunk_id in known]
        if vectors and (length := float(np.linalg.norm(mean := np.mean(vectors, axis=0)))):
            found[document_id] = (mean / length).astype("<f4").tobytes()
    return found


def nearest_documents(
    document_id: str, others: Sequence[str], catalog: Catalog, index: VectorIndex
) -> dict[str, float]:
    """Return the cosines of a document with others, and with those whose chunks are nearest to it."""
    import numpy as np

    first = [chunk.id for name in (document_id, *others) for chunk in catalog.chunks(name)[:1]]
    own = document_vectors(first[:1], catalog, index).get(document_id)
    if own is None:
        return {}
    near = [row.chunk_id for row in index.search(own, Filter(), NEAREST_CHUNKS)]
    vectors = document_vectors([*near, *first[1:]], catalog, index)
    asked = np.frombuffer(own, dtype="<f4")
    return {
        name: float(asked @ np.frombuffer(vector, dtype="<f4"))
        for name, vector in vectors.items()
        if name != document_id
    }
