"""Answer ⇄ JSON: one contract for `--json`, MCP and HTTP. `docs/answer.schema.json` is its authority.

Every key is always there and null where it does not apply. Names are stable: add, never rename. Scores are
given in full, so that one read here can be used as a threshold there; a duration has three decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict, replace

from concord.core.errors import Action, worded
from concord.core.values import iso_time
from concord.reading.budget import within
from concord.reading.packing import Form, agreement_scores, pack
from concord.text.json_safe import JsonObject, json_object, to_text

if TYPE_CHECKING:
    from concord.core.reports import DocumentSlice
    from concord.reading.pages import Outline
    from concord.search.around import DocumentLinks, Near
    from concord.search.explain import Explanation
    from concord.types import Answer, Document, Hit, Source

LEFT_OUT = "{} did not fit into the token budget"
AGREEMENT_BYTES = 30  # a result's line among the agreement scores, beside its id, and what separates results

_LINES = ("start_line", "end_line", "start_column", "end_column")


def answer_to_json(answer: Answer, *, max_tokens: int | None = None, explain: bool = False) -> JsonObject:
    """Return an answer for the wire, at most `max_tokens` long (though never without its best result).

    Whole texts go to the best results first, as far as the budget reaches; without a budget all have theirs.
    """
    wire = json_object(_answer(answer, [_result(hit, explain=explain) for hit in answer.hits]))
    if max_tokens is None:
        return wire
    from concord.parts import count_tokens

    return within(
        max_tokens,
        lambda max_bytes: pack(wire, [_FORM], max_bytes, LEFT_OUT, keeps_best=True),
        lambda packed: [to_text(packed)],
        count_tokens,
    )


def frame_of(wire: JsonObject) -> JsonObject:
    """Return all of an answer that is sent when there are no results."""
    return {**wire, "results": [], "linked": [], "agreement_scores": {}}


def _size(value: JsonObject) -> int:
    return len(to_text(value).encode("utf-8")) + 1


_FORM = Form(
    frame=lambda wire: _size(frame_of(wire)),
    result=lambda result: _size(result) + len(result["chunk_id"]) + AGREEMENT_BYTES,
    under=_size,
    whole=_size,
)


def answer_in_words(answer: Answer, words: Mapping[Action, str]) -> Answer:
    """Return an answer whose hints are in the words of an interface."""
    degraded = tuple(replace(part, reason=worded(part.reason, words)) for part in answer.degraded)
    return replace(answer, note=worded(answer.note, words), degraded=degraded)


def slice_to_json(read: DocumentSlice) -> JsonObject:
    """Return what `get` read."""
    document = read.document
    wire = {
        "citation": read.citation,
        "path": document.path,
        "file": read.source.file_of(document.path),
        "title": document.title,
        "source": read.source.name,
        "type": document.type,
        "tags": document.tags,
        "document_id": document.id,
        **_same(read, *_LINES, "pages", "heading", "freshness"),
        "superseded_by": document.superseded_by,
        **_same(read, "links", "backlinks", "before", "after", "text"),
    }
    return json_object(wire)


def several_to_json(read: Sequence[JsonObject], unread: Sequence[tuple[str, str]]) -> JsonObject:
    """Return one thing that was read as it is; of several, the first has the others beside it."""
    first, *further = read
    if not further and not unread:
        return first
    return {
        **first,
        "further": further,
        "unread": [{"citation": name, "reason": reason} for name, reason in unread],
    }


def outline_to_json(outline: Outline) -> JsonObject:
    """Return a document's headings, with where each begins and how long it is."""
    document = outline.document
    wire = {
        "document_id": document.id,
        **_same(document, "path", "title", "type"),
        "pages": document.details.get("pages"),
        **_same(outline, "start_line", "end_line", "tokens"),
        "sections": [{"level": section.level, **asdict(section)} for section in outline.sections],
    }
    return json_object(wire)


def links_to_json(links: DocumentLinks) -> JsonObject:
    """Return a document's links, from both sides."""
    document = links.document
    named = {"document_id": document.id, "path": document.path, "title": document.title} if document else {}
    wire = {"document_id": None, "path": None, "title": None, **named}
    return json_object(
        {
            **wire,
            **{name: [asdict(end) for end in getattr(links, name)] for name in ("out", "back", "broken")},
        }
    )


def related_to_json(document: Document, near: Sequence[Near]) -> JsonObject:
    """Return the documents near one, with the reasons."""
    rows = [
        {
            "document_id": row.document.id,
            **_same(row.document, "path", "title", "type"),
            **_same(row, "score", "cosine"),
            "links_to_it": row.out,
            "linked_from_it": row.back,
        }
        for row in near
    ]
    wire = {"document_id": document.id, "path": document.path, "title": document.title, "related": rows}
    return json_object(wire)


def explanation_to_json(explanation: Explanation) -> JsonObject:
    """Return why a passage ranks where it does."""
    return json_object({**asdict(explanation), "degraded": [asdict(part) for part in explanation.degraded]})


def document_to_json(document: Document, source: Source | None = None) -> JsonObject:
    """Return a document's own fields; with its source, also where its file is."""
    wire = {
        "document_id": document.id,
        "path": document.path,
        "file": source.file_of(document.path) if source else None,
        "title": document.title,
        "source": source.name if source else None,
        "type": document.type,
        "tags": list(document.tags),
        "details": dict(document.details),
        "fields": {name: value for name, value in document.fields.items() if name != "content"},
        "size": document.size,
        "modified_at": iso_time(document.mtime_ns / 1e9 if document.mtime_ns > 0 else None),
        "indexed_at": iso_time(document.indexed_at),
        "superseded_by": document.superseded_by,
    }
    return json_object(wire)


def _same(report: Struct, *names: str) -> JsonObject:
    return {name: getattr(report, name) for name in names}


def _answer(answer: Answer, results: Sequence[JsonObject]) -> JsonObject:
    return {
        "query": answer.request.text,
        **_same(answer, "mode", "query_type", "fusion", "org", "confidence", "confidence_score"),
        **_same(answer, "answerable"),
        "answer": asdict(answer.answer) if answer.answer else None,
        **_same(answer, "calibrated", "strategies_matched"),
        "degraded": [asdict(part) for part in answer.degraded],
        **_same(answer, "note", "suggestions"),
        "returned": len(results),
        "total_hits": answer.total_hits,
        "omitted": {"deleted": 0, "below_threshold": 0, "below_min_score": 0, **answer.omitted},
        "generation": answer.generation,
        "search_time_ms": round(answer.search_time_ms, 3),
        "timings_ms": {stage: round(took, 3) for stage, took in answer.timings_ms.items()},
        "sources_about": {hit.source.name: hit.source.about for hit in answer.hits if hit.source.about},
        "results": results,
        "linked": [asdict(row) for row in answer.linked],
        "agreement_scores": agreement_scores(results),
    }


def _result(hit: Hit, *, explain: bool) -> JsonObject:
    chunk, document = hit.chunk, hit.document
    wire = {
        "rank": hit.rank,
        "path": document.path,
        "title": document.title,
        "snippet": hit.snippet,
        "text": hit.chunk.text,
        "score": hit.score,
        "passage_score": hit.passage_score,
        "source": hit.source.name,
        "type": document.type,
        "tags": document.tags,
        "document_id": document.id,
        "chunk_id": str(chunk.id),
        "citation": hit.citation,
        "file": hit.source.file_of(document.path),
        **_same(chunk, *_LINES, "page", "heading"),
        **_same(hit, "confidence", "found_by", "agreement", "best_rank"),
        "scores": {"rrf": None, "bm25": None, "cosine": None, **hit.scores},
        "freshness": hit.freshness,
        "superseded_by": document.superseded_by,
        **_same(hit, "moved_from", "also_at", "warnings", "more_in_document"),
        "section": asdict(hit.section) if hit.section else None,
        "more": None if hit.more is None else [_under(other) for other in hit.more],
    }
    return {**wire, "explanation": hit.explanation} if explain else wire


def _under(hit: Hit) -> JsonObject:
    return {
        "citation": hit.citation,
        **_same(hit.chunk, "start_line", "end_line", "heading"),
        "score": hit.passage_score,
        **_same(hit, "snippet", "warnings"),
        "text": hit.chunk.text,
    }
