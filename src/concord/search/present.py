"""How does a hit look, and what does it point to? Snippet, citation, heading, freshness, warnings, links.

Links stand beside the results and change nothing among them: given places of their own there, they put out
what was found. A link counts the more, the rarer it is to name its document, the fewer others its passage
has, and the better the hit that holds it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from concord.files.state import Files
from concord.search.blend import smoothed_idfs
from concord.search.calibration import ReaderCuts
from concord.search.fuse import Candidates, agreement
from concord.search.grouping import Groups, with_further
from concord.search.judge import Judged, Verdict
from concord.search.legs import STRATEGIES, Tools
from concord.search.passages import is_excluded, line_to_show, unless_disk_hangs
from concord.store.contract import Pointing
from concord.text.citations import OF_LINES, citation_of, cite, reach_of
from concord.text.headings import MARKDOWN_TYPES, heading_at
from concord.text.injection import origin_warnings, warnings_about
from concord.text.name_lines import symbol_at
from concord.text.snippet import Snippet, snippet
from concord.types import Chunk, ChunkId, Document, Freshness, Hit, Linked, Passage, Query, Source, Span

MOST_LINKS = 2  # beside the results
LINKS_TRIED = 6  # documents: files of some may be gone
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")


def present(
    chosen: Verdict,
    groups: Groups,
    enough: Verdict,
    query: Query,
    candidates: Candidates,
    searched: Sequence[str],
    files: Files | None,
    sources: Sequence[Source],
    tools: Tools,
) -> tuple[Hit, ...]:
    """Return the hits, best first, each with what comes under it.

    Snippets also show what a fallback step looked for (`searched`). `enough` is the verdict on all that might
    have been chosen; without `files` the disk does not answer, and nothing is said of their freshness.
    """
    below = [row for lead in chosen.judged for row in groups.further.get(lead.passage.chunk.id, ())]
    rows = [*enumerate(chosen.judged, 1), *enumerate(below, 1)]
    more = Counter(row.passage.document.id for row in enough.judged)
    more.subtract(row.passage.document.id for _, row in rows)
    by_id = {source.id: source for source in sources}
    words = [*query.terms, *(word for phrase in query.phrases for word in phrase.split()), *searched]
    words += [form for forms in query.changes.values() for form in forms]
    shown = _snippets([row for _, row in rows], words, query, tools)
    hits = [
        _hit(rank, row, by_id[row.passage.document.source_id], candidates, snippet, more)
        for (rank, row), snippet in zip(rows, shown, strict=True)
    ]
    hits = _with_warnings(hits)
    first, under = hits[: len(chosen.judged)], hits[len(chosen.judged) :]
    states = _states([hit.document for hit in first], files) if files else {}
    first = [replace(hit, freshness=states.get(hit.document.id)) for hit in first]
    return with_further(first, under, groups, tools.store.catalog)


def _snippets(rows: Sequence[Judged], words: Sequence[str], query: Query, tools: Tools) -> Iterator[Snippet]:
    """Yield the snippets; where the reader is sure of an answer, it is in the middle."""
    worths = smoothed_idfs(query.chunks, query.frequencies)
    width: int = tools.settings["search.snippet_width"]
    for passage in (row.passage for row in rows):
        line, answer = line_to_show(passage, query), _sure(passage, tools.calibration.reader)
        yield snippet(passage.chunk.text, words, width, worths, line=line, answer=answer)


def _sure(passage: Passage, cuts: ReaderCuts) -> tuple[int, int] | None:
    read = passage.reading
    if read is None or read.logit < cuts.sure or read.margin <= 0 or read.end <= read.start:
        return None
    return read.start, read.end


def answer_of(verdict: Verdict, cuts: ReaderCuts) -> Span | None:
    """Return the words of the hits shown that answer the question, if it is called answerable."""
    sure = [(at, row.passage) for at, row in enumerate(verdict.judged, 1) if _sure(row.passage, cuts)]
    if not sure or not verdict.answerable:
        return None
    rank, passage = max(sure, key=lambda pair: pair[1].reading.logit if pair[1].reading else 0.0)
    return span_of(passage, *(_sure(passage, cuts) or (0, 0)), rank)


def span_of(passage: Passage, start: int, end: int, rank: int) -> Span:
    """Return a part of a passage with its own place, where the lines of the text are those of the file."""
    chunk, document = passage.chunk, passage.document
    text, lines = chunk.text[start:end], chunk.text.count("\n")
    if chunk.pages or document.type not in OF_LINES or lines != chunk.end_line - chunk.start_line:
        citation = cite(document, chunk)
        return Span(text, rank, citation, chunk.start_line, chunk.end_line, page=chunk.page)
    rows, columns = reach_of(chunk.text, start, end, chunk.start_line, chunk.start_column)
    return Span(text, rank, citation_of(document.path, None, rows, columns), *rows, *columns)


def _hit(
    rank: int, row: Judged, source: Source, candidates: Candidates, shown: Snippet, more: Mapping[str, int]
) -> Hit:
    passage, candidate = row.passage, row.passage.ranked.candidate
    known = [name for name in STRATEGIES if name in candidate.ranks]
    return Hit(
        chunk=_under_its_heading(passage, shown.at),
        document=passage.document,
        source=source,
        rank=rank,
        score=row.score,
        passage_score=row.passage_score,
        scores={
            "rrf": candidates.rrf.get(passage.chunk.id),
            "bm25": candidate.bm25,
            "cosine": candidate.cosine,
            "fused": passage.ranked.score,
        },
        found_by=(*known, *sorted({*candidate.ranks}.difference(known))),
        best_rank=min(candidate.ranks.values(), default=0),
        agreement=agreement(candidate.ranks),
        confidence=row.label,
        snippet=shown.text,
        citation=cite(passage.document, passage.chunk),
        moved_from=passage.ranked.moved_from,
        also_at=passage.also_at,
        more_in_document=more[passage.document.id],
    )


def _under_its_heading(passage: Passage, at: int | None) -> Chunk:
    """Return a chunk under the heading or name that the words stand under: it may hold several."""
    chunk, type = passage.chunk, passage.document.type
    if at is None or type != "code" and type not in MARKDOWN_TYPES:
        return chunk
    if type == "code":
        heading = symbol_at(chunk.text, at, chunk.heading)
    else:
        heading = heading_at(chunk.text, at, chunk.heading, begins_document=not chunk.index)
    return chunk if heading == chunk.heading else replace(chunk, heading=heading)


def _states(documents: Sequence[Document], files: Files) -> Mapping[str, Freshness | None]:
    """Return what has become of the file of each document; nothing if the disk does not answer in time."""

    def look() -> Mapping[str, Freshness | None]:
        return {document.id: files.freshness(document) for document in documents}

    return unless_disk_hangs(look, files, documents) or {}


def _with_warnings(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with a warning on each that tries to be more than data, or that nobody vouches for."""
    return [
        replace(hit, warnings=(*hit.warnings, *origin_warnings(hit.source), *_text_warnings(hit)))
        for hit in hits
    ]


def _text_warnings(hit: Hit) -> tuple[str, ...]:
    document, chunk = hit.document, hit.chunk
    return warnings_about(chunk.text, document.path, document.title, *document.tags, *chunk.heading)


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
    chosen = {_passage(lead.row, best, tools): lead for lead in leads[:LINKS_TRIED]}
    texts = tools.store.catalog.read(list(chosen))
    documents = [document for _, document in texts.values()]
    gone = {id for id, state in _states(documents, files).items() if state == "deleted"}
    found = [(lead, *texts[id]) for id, lead in chosen.items() if id in texts and texts[id][1].id not in gone]
    shown = [row for row in found if not is_excluded(row[1], row[2], query)][:MOST_LINKS]
    by_id = {source.id: source for source in sources}
    worths, width = smoothed_idfs(query.chunks, query.frequencies), tools.settings["search.snippet_width"]
    return tuple(
        Linked(
            citation=cite(document, chunk),
            via=lead.via.citation,
            kind=lead.row.kind,
            title=document.title,
            snippet=snippet(chunk.text, query.terms, width, worths).text,
            document_id=document.id,
            warnings=(
                *origin_warnings(by_id[document.source_id]),
                *warnings_about(chunk.text, document.title),
            ),
        )
        for lead, chunk, document in shown
    )


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
