"""Answer ⇄ JSON: one contract for `--json`, MCP and HTTP. `docs/answer.schema.json` is its authority.

Every key is always there and null where it does not apply. Names are stable: add, never rename. Scores are
given in full, so that one read here can be used as a threshold there; a duration has three decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from concord.core.errors import Action, worded
from concord.core.values import iso_time
from concord.reading.budget import (
    SLIGHT,
    SLIGHT_SHARE,
    Costs,
    Packed,
    Under,
    are_slight,
    choose,
    within,
)
from concord.text.json_safe import JsonObject, json_object, json_safe, to_text

if TYPE_CHECKING:
    from concord.core.reports import DocumentSlice, Slices
    from concord.reading.pages import Outline
    from concord.search.around import DocumentLinks, Near
    from concord.search.explain import Explanation
    from concord.types import Answer, Document, Hit, Source

LEFT_OUT = "{} did not fit into the token budget"
LEFT_OUT_BYTES = len(LEFT_OUT) + 23
AGREEMENT_BYTES = 30  # a result's line among the agreement scores, beside its id, and what separates results

_LINES = ("start_line", "end_line", "start_column", "end_column")


def answer_to_json(answer: Answer, *, max_tokens: int | None = None, explain: bool = False) -> JsonObject:
    """Return an answer for the wire, at most `max_tokens` long (though never without its best result).

    Whole texts go to the best results first, as far as the budget reaches; without a budget all have theirs.
    """
    texts = [json_safe(hit.chunk.text) for hit in answer.hits]

    def bare() -> JsonObject:
        return json_object(_answer(answer, [_result(hit, explain=explain) for hit in answer.hits]))

    if max_tokens is not None:
        from concord.parts import count_tokens

        return within(
            max_tokens,
            lambda max_bytes: _fitted(bare(), texts, max_bytes),
            lambda wire: [to_text(wire)],
            count_tokens,
        )
    wire = bare()
    for result, text in zip(wire["results"], texts, strict=True):
        result["text"] = text
    return wire


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


def slices_to_json(read: Slices) -> JsonObject:
    """Return all that `get` read."""
    return several_to_json([slice_to_json(part) for part in read.read], read.unread)


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
    answer = explanation.answer
    wire = {
        "query": answer.request.text,
        "citation": explanation.citation,
        "chunk_id": str(explanation.chunk.id),
        "document_id": explanation.document.id,
        "title": explanation.document.title,
        **_same(answer, "mode", "query_type"),
        "rank": explanation.rank,
        "returned": len(answer.hits),
        **_same(explanation, "stage", "why", "candidates", "depth", "strategies", "words", "fused"),
        **_same(explanation, "filtered", "excluded", "overlap", "arithmetic"),
        "degraded": [asdict(part) for part in answer.degraded],
    }
    return json_object(wire)


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
        "text": None,
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


def agreement_scores(results: Iterable[JsonObject]) -> dict[str, float]:
    """Return how far strategies agree on each of some results, by its chunk."""
    return {hit["chunk_id"]: hit["agreement"] for hit in results if hit["agreement"] is not None}


def fit_linked(wire: JsonObject, fits: Callable[[JsonObject], bool]) -> None:
    """Keep of the links beside the results that are sent what fits when everything else has its room."""
    sent = {result["citation"] for result in wire["results"]}
    rows, wire["linked"] = wire["linked"], []
    for row in rows:
        if row["via"] in sent and fits({**wire, "linked": [*wire["linked"], row]}):
            wire["linked"].append(row)


def frame_of(wire: JsonObject) -> JsonObject:
    """Return all of an answer that is sent when there are no results."""
    return {**wire, "results": [], "linked": [], "agreement_scores": {}}


def with_left_out(note: str | None, sentence: str, left_out: int) -> str | None:
    """Return a note that tells how many results did not fit, if any did not."""
    if not left_out:
        return note
    said = sentence.format("1 more result" if left_out == 1 else f"{left_out} more results")
    return f"{note}; {said}" if note else said


def _fitted(wire: JsonObject, texts: Sequence[str], max_bytes: int) -> JsonObject:
    results = wire["results"]
    frame = _size(frame_of(wire)) + LEFT_OUT_BYTES
    slight = are_slight([hit["passage_score"] for hit in results])
    under = taken_apart(results)
    packed = choose(
        Costs(
            (frame,),
            [(_size(hit) + len(hit["chunk_id"]) + AGREEMENT_BYTES,) for hit in results],
            [
                None if less else (_size(text) - _size(None),)
                for less, text in zip(slight, texts, strict=True)
            ],
            [hit["score"] for hit in results],
            [[_weighed(other) for other in others] for others in under],
        ),
        max_bytes,
    )
    kept = results[: max(1, packed.kept)]
    put_under(kept, under, packed)
    for place in packed.whole:
        kept[place]["text"] = texts[place]
    wire |= {
        "results": kept,
        "returned": len(kept),
        "note": with_left_out(wire["note"], LEFT_OUT, len(results) - len(kept)),
        "agreement_scores": agreement_scores(kept),
    }
    fit_linked(wire, lambda wire: _size(wire) <= max_bytes)
    return wire


def taken_apart(results: Sequence[JsonObject]) -> list[list[JsonObject]]:
    """Take away what comes under results, and return as much of it as is worth telling."""
    scores = [hit["passage_score"] for hit in results]
    scores += [other["score"] for hit in results for other in hit["more"] or ()]
    least = min(SLIGHT, SLIGHT_SHARE * max(scores, default=0.0))
    under = [[other for other in hit["more"] or () if other["score"] >= least] for hit in results]
    for hit in results:
        hit["more"] = None if hit["more"] is None else []
    return under


def put_under(results: Sequence[JsonObject], under: Sequence[Sequence[JsonObject]], packed: Packed) -> None:
    """Put back under each result what was chosen of it."""
    for at, place in sorted(packed.under):
        is_whole = (at, place) in packed.whole_under
        results[at]["more"].append(under[at][place] if is_whole else {**under[at][place], "text": None})


def _weighed(other: JsonObject) -> Under:
    entry = _size({**other, "text": None}) + 1
    return Under(other["score"], (entry,), (_size(other) + 1 - entry,))


def _size(value: Any) -> int:
    return len(to_text(value).encode("utf-8"))
