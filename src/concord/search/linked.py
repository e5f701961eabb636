"""What do the hits point to? Two passages beside them, for questions that need more than one.

Links stand beside the results and change nothing among them: given places of their own there, they put out
what was found. A link counts the more, the rarer it is to name its document, the fewer others its passage
has, and the better the hit that holds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concord.files.state import Files
from concord.search.blend import smoothed_idfs
from concord.search.judge import Judged
from concord.search.passages import is_excluded, unless_disk_hangs
from concord.search.tools import Tools
from concord.store.contract import Pointing
from concord.text.citations import cite
from concord.text.injection import origin_warnings, warnings_about_each
from concord.text.snippet import snippet
from concord.types import Chunk, ChunkId, Document, Hit, Linked, Query, Source

MOST = 2  # links beside the results
_TRIED = 6  # documents: files of some may be gone
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")


class _Lead(NamedTuple):
    """A document that a hit points to, and how far that counts."""

    score: float
    row: Pointing
    via: Hit


def linked(
    hits: Sequence[Hit],
    read: Sequence[Judged],
    query: Query,
    files: Files,
    sources: Sequence[Source],
    tools: Tools,
) -> tuple[Linked, ...]:
    """Return the passages that hits point to, best first; of a document that was read, the best one."""
    if not hits:
        return ()
    leads = _leads(
        hits, tools.store.links.pointing([hit.chunk.id for hit in hits], query.filter), query.chunks
    )
    if not leads:
        return ()
    best: dict[str, ChunkId] = {}
    for judged in read:
        best.setdefault(judged.passage.document.id, judged.passage.chunk.id)
    chosen = {_passage(lead.row, best, tools): lead for lead in leads[:_TRIED]}
    texts = tools.store.catalog.read(list(chosen))
    there = _there([document for _, document in texts.values()], files)
    found = [(lead, *texts[id]) for id, lead in chosen.items() if id in texts and texts[id][1].id in there]
    shown = [row for row in found if not is_excluded(row[1], row[2], query)]
    return _presented(shown[:MOST], query, {source.id: source for source in sources}, tools)


def _leads(hits: Sequence[Hit], rows: Sequence[Pointing], chunks: int) -> list[_Lead]:
    """Return the documents that hits point to and that are not among them, the best first."""
    by_chunk = {hit.chunk.id: hit for hit in hits}
    among = {hit.document.id for hit in hits}
    held: dict[ChunkId, set[str]] = {}
    for row in rows:
        held.setdefault(row.chunk_id, set()).add(row.document_id)
    best: dict[str, _Lead] = {}
    for row in rows:
        via = by_chunk[row.chunk_id]
        pointed_to = max(row.pointed_to, 1)  # none, where the store is damaged
        rarity = math.log1p(max(chunks, pointed_to) / pointed_to)
        lead = _Lead(rarity / math.sqrt(len(held[row.chunk_id])) / via.rank, row, via)
        known = best.get(row.document_id)
        if row.document_id not in among and (known is None or lead.score > known.score):
            best[row.document_id] = lead
    return sorted(best.values(), key=lambda lead: (-lead.score, lead.row.first))


def _passage(row: Pointing, best: Mapping[str, ChunkId], tools: Tools) -> ChunkId:
    """Return the passage that a link leads to: the part that it names, else the best one, else the first."""
    part = _slug(row.target.partition("#")[2])
    chunks = tools.store.catalog.chunks(row.document_id) if part else []
    named = (chunk.id for chunk in chunks if part in map(_slug, chunk.heading) or _begins(chunk, part))
    return next(named, best.get(row.document_id, row.first))


def _begins(chunk: Chunk, part: str) -> bool:
    return any(part == _slug(line) for line in chunk.text.split("\n") if line.startswith("#"))


def _slug(heading: str) -> str:
    return _NOT_IN_SLUG.sub("", heading.lstrip("# ").casefold()).strip().replace(" ", "-")


def _there(documents: Sequence[Document], files: Files) -> set[str]:
    """Return the ids of the documents whose files are not known to be gone."""
    states = unless_disk_hangs(
        lambda: [files.freshness(document) for document in documents], files, documents
    )
    return {
        document.id
        for document, state in zip(documents, states or [None] * len(documents), strict=True)
        if state != "deleted"
    }


def _presented(
    shown: Sequence[tuple[_Lead, Chunk, Document]], query: Query, sources: Mapping[str, Source], tools: Tools
) -> tuple[Linked, ...]:
    worths = smoothed_idfs(query.chunks, query.frequencies)
    width: int = tools.settings["search.snippet_width"]
    warnings = warnings_about_each(["\n".join((chunk.text, document.title)) for _, chunk, document in shown])
    return tuple(
        Linked(
            citation=cite(document, chunk),
            via=lead.via.citation,
            kind=lead.row.kind,
            title=document.title,
            snippet=snippet(chunk.text, query.terms, width, worths).text,
            document_id=document.id,
            warnings=(*origin_warnings(sources[document.source_id]), *told),
        )
        for (lead, chunk, document), told in zip(shown, warnings, strict=True)
    )
