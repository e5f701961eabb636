"""Answer ⇄ JSON: one contract for `--json`, MCP and HTTP. `docs/answer.schema.json` is its authority.

Every key is always there and null where it does not apply. Names are stable: add, never rename. Numbers are
given in full, so that a score read here can be used as a threshold there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concord.budget import BYTES_PER_TOKEN, Costs, choose
from concord.text.surrogates import encodable
from concord.visible import json_text

if TYPE_CHECKING:
    from concord.backfill import Backfill
    from concord.embedding import Embedding
    from concord.migrate import Migration
    from concord.models import Built, ModelState, Switch
    from concord.outcomes import (
        CacheUsage,
        Passage,
        Removal,
        SourceSummary,
        Stats,
        SyncReport,
        VectorIndexState,
    )
    from concord.replay import Comparison, Trial
    from concord.types import Answer, Document, Hit, Identity, Source

LEFT_OUT = "{} more results did not fit into the token budget"
LEFT_OUT_BYTES = len(LEFT_OUT) + 10
AGREEMENT_BYTES = 30  # a result's line among the agreement scores, beside its id, and what separates results

SUMMED = ("added", "changed", "removed", "renamed", "unchanged", "chunks", "embedded", "reused", "pending")

JsonObject = dict[str, Any]


def answer_to_json(answer: Answer, *, max_tokens: int | None = None, explain: bool = False) -> JsonObject:
    """Return an answer for the wire, at most `max_tokens` long (though never without its best result).

    Whole texts go to the best results first, as far as the budget reaches; without a budget all have theirs.
    """
    results = [_result(hit, explain=explain) for hit in answer.hits]
    wire = _object(_answer(answer, results))
    texts = [json_safe(hit.chunk.text) for hit in answer.hits]
    if max_tokens is None:
        for result, text in zip(wire["results"], texts, strict=True):
            result["text"] = text
    else:
        _fit(wire, texts, max_tokens * BYTES_PER_TOKEN)
    return wire


def passage_to_json(passage: Passage) -> JsonObject:
    """Return what `get` read."""
    document = passage.document
    wire = {
        "citation": passage.citation,
        "path": document.path,
        "file": passage.source.file_of(document.path),
        "title": document.title,
        "source": passage.source.name,
        "type": document.type,
        "tags": list(document.tags),
        "document_id": document.id,
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "pages": list(passage.pages) if passage.pages else None,
        "heading": list(passage.heading),
        "freshness": passage.freshness,
        "superseded_by": document.superseded_by,
        "before": passage.before,
        "after": passage.after,
        "text": passage.text,
    }
    return _object(wire)


def sync_report_to_json(report: SyncReport) -> JsonObject:
    """Return what one sync did to one source."""
    wire = {
        "source": report.source.name,
        "source_id": report.source.id,
        "path": report.source.path,
        "added": report.added,
        "changed": report.changed,
        "removed": report.removed,
        "renamed": report.renamed,
        "unchanged": report.unchanged,
        "skipped": dict(report.skipped),
        "failed": [{"path": failure.path, "reason": failure.reason} for failure in report.failed],
        "chunks": report.chunks,
        "embedded": report.embedded,
        "reused": report.reused,
        "pending": report.pending,
        "degraded": report.degraded,
        "overflowed": report.overflowed,
        "generation": report.generation,
        "took_s": round(report.took_s, 3),
    }
    return _object(wire)


def sync_reports_to_json(reports: Sequence[SyncReport]) -> JsonObject:
    """Return what a sync of several sources came to, in all and for each."""
    each = [sync_report_to_json(report) for report in reports]
    totals = (
        "added",
        "changed",
        "removed",
        "renamed",
        "unchanged",
        "chunks",
        "embedded",
        "reused",
        "pending",
    )
    return {
        **{key: sum(one[key] for one in each) for key in totals},
        "failed": [failure for one in each for failure in one["failed"]],
        "generation": max((one["generation"] for one in each), default=None),
        "sources": each,
    }


def removal_to_json(removal: Removal) -> JsonObject:
    """Return what removing a source deleted."""
    wire = {
        "source": removal.source.name,
        "documents_deleted": removal.documents_deleted,
        "vectors_deleted": removal.vectors_deleted,
    }
    return _object(wire)


def migration_to_json(migration: Migration, store: str) -> JsonObject:
    """Return what a migration moved."""
    wire = {
        "store": without_password(store),
        "sources": migration.counts.sources,
        "documents": migration.counts.documents,
        "chunks": migration.counts.chunks,
        "vectors": migration.counts.vectors,
        "cached": migration.cached,
        "checksum": migration.checksum,
        "copied": migration.copied,
        "took_s": migration.took_s,
    }
    return _object(wire)


def source_to_json(summary: SourceSummary) -> JsonObject:
    """Return a source and how much of it is stored."""
    source, counts = summary.source, summary.counts
    wire = {
        "source": source.name,
        "source_id": source.id,
        "kind": source.kind,
        "path": source.path,
        "prefix": source.prefix,
        "patterns": list(source.patterns),
        "tags": list(source.tags),
        "trust": source.trust,
        "created_at": iso_time(source.created_at),
        "synced_at": iso_time(source.synced_at),
        "documents": counts.documents,
        "chunks": counts.chunks,
        "vectors": counts.vectors,
    }
    return _object(wire)


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
    return _object(wire)


def stats_to_json(stats: Stats) -> JsonObject:
    """Return the state of a knowledge base."""
    wire = {
        "org": stats.org,
        "store": without_password(stats.store),
        "size_bytes": stats.size_bytes,
        "sources": stats.counts.sources,
        "documents": stats.counts.documents,
        "chunks": stats.counts.chunks,
        "vectors": stats.counts.vectors,
        "pending": stats.pending,
        "model": _model(stats.identity),
        "generation": stats.generation,
        "types": dict(stats.types),
        "cache": _cache(stats.cache),
        "vector_index": _vector_index(stats.index),
        "feedback": {"good": 0, "bad": 0, **stats.feedback},
    }
    return _object(wire)


def _vector_index(state: VectorIndexState | None) -> JsonObject | None:
    if state is None:
        return None
    return {"covered": state.covered, "size_bytes": state.size_bytes, "absent": state.absent}


def model_to_json(state: ModelState) -> JsonObject:
    """Return a model whose vectors are kept."""
    return {
        "name": state.space.identity.name,
        **(_model(state.space.identity) or {}),
        "active": state.space.is_active,
        "vectors": state.vectors,
        "pending": state.pending,
        "url": state.space.recipe.get("embed.url") or None,
    }


def built_to_json(built: Built) -> JsonObject:
    """Return what building a model's vectors came to."""
    return {
        "name": built.identity.name,
        **(_model(built.identity) or {}),
        "active": built.is_active,
        **_embedding(built.embedding),
        "took_s": round(built.took_s, 3),
    }


def switch_to_json(switch: Switch) -> JsonObject:
    """Return what became of the wish to use another model."""
    return {
        "outcome": switch.outcome,
        "name": switch.identity.name,
        "before": switch.before and switch.before.name,
        "comparison": switch.comparison and comparison_to_json(switch.comparison),
        **_embedding(switch.embedding),
        "took_s": round(switch.took_s, 3),
    }


def comparison_to_json(comparison: Comparison) -> JsonObject:
    """Return what two models found."""
    return {
        "queries": len(comparison.before.ranks),
        "before": _trial(comparison.before),
        "after": _trial(comparison.after),
        "difference": round(comparison.difference, 4),
        "worse": comparison.is_worse,
    }


def backfill_to_json(done: Backfill) -> JsonObject:
    """Return what indexing anew came to."""
    return {**done._asdict(), "took_s": round(done.took_s, 3)}


def _embedding(done: Embedding) -> JsonObject:
    return {key: value for key, value in done._asdict().items() if key != "refused"}


def _trial(trial: Trial) -> JsonObject:
    return {
        "name": trial.identity.name,
        "mrr": round(trial.mrr, 4),
        "found": round(trial.found, 4),
        "query_ms": round(trial.query_ms, 3),
    }


def iso_time(seconds: float | None) -> str | None:
    """Return a moment as ISO 8601 in UTC; None for one that is not known."""
    if not seconds:
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):  # a file may claim any time at all
        return None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def without_password(url: str) -> str:
    """Return a URL fit to be shown: whoever reads a log need not learn the password."""
    return re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", url)


def json_safe(value: Any) -> Any:
    """Return a value that any JSON parser takes: no lone surrogate, no NaN, other kinds of thing as text."""
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {json_safe(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    return json_safe(str(value))


def to_text(wire: Any, *, indent: int | None = None) -> str:
    """Return JSON text, compact unless indented, in which nothing can steer a terminal."""
    separators = (",", ":") if indent is None else None
    return json_text(json.dumps(wire, ensure_ascii=False, indent=indent, separators=separators))


def _object(wire: Mapping[str, Any]) -> JsonObject:
    return {key: json_safe(value) for key, value in wire.items()}


def _answer(answer: Answer, results: Sequence[JsonObject]) -> JsonObject:
    return {
        "query": answer.request.text,
        "mode": answer.mode,
        "query_type": answer.query_kind,
        "fusion": answer.fusion,
        "org": answer.org,
        "confidence": answer.confidence,
        "confidence_score": answer.confidence_score,
        "answerable": answer.answerable,
        "calibrated": answer.calibrated,
        "strategies_matched": answer.strategies_matched,
        "degraded": [{"strategy": one.strategy, "reason": one.reason} for one in answer.degraded],
        "note": answer.note,
        "suggestions": answer.suggestions,
        "returned": len(results),
        "total_hits": answer.total_hits,
        "omitted": {"deleted": 0, "below_threshold": 0, **answer.omitted},
        "generation": answer.generation,
        "search_time_ms": round(answer.search_time_ms, 3),
        "timings_ms": {stage: round(took, 3) for stage, took in answer.timings_ms.items()},
        "results": results,
        "agreement_scores": _agreement(results),
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
        "source": hit.source.name,
        "type": document.type,
        "tags": document.tags,
        "document_id": document.id,
        "chunk_id": str(chunk.id),
        "citation": hit.citation,
        "file": hit.source.file_of(document.path),
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "page": chunk.page,
        "heading": chunk.heading,
        "confidence": hit.confidence,
        "found_by": hit.found_by,
        "agreement": hit.agreement,
        "best_rank": hit.best_rank,
        "scores": {"rrf": None, "bm25": None, "cosine": None, **hit.scores},
        "freshness": hit.freshness,
        "moved_from": hit.moved_from,
        "also_at": hit.also_at,
        "warnings": hit.warnings,
    }
    return {**wire, "explanation": hit.explanation} if explain else wire


def _agreement(results: Iterable[JsonObject]) -> dict[str, float]:
    return {one["chunk_id"]: one["agreement"] for one in results if one["agreement"] is not None}


def _fit(wire: JsonObject, texts: Sequence[str], max_bytes: int) -> None:
    """Keep what the budget packs, though never less than the best result."""
    results = wire["results"]
    frame = _size({**wire, "results": [], "agreement_scores": {}}) + LEFT_OUT_BYTES
    packed = choose(
        Costs(
            (frame,),
            [(_size(one) + len(one["chunk_id"]) + AGREEMENT_BYTES,) for one in results],
            [(_size(text) - _size(None),) for text in texts],
        ),
        max_bytes,
    )
    kept = results[: max(1, packed.kept)]
    for place in packed.whole:
        kept[place]["text"] = texts[place]
    if len(kept) < len(results):
        left_out, note = LEFT_OUT.format(len(results) - len(kept)), wire["note"]
        wire |= {
            "results": kept,
            "returned": len(kept),
            "note": f"{note}; {left_out}" if note else left_out,
            "agreement_scores": _agreement(kept),
        }


def _size(value: Any) -> int:
    """Return the bytes of a value on the wire."""
    return len(to_text(value).encode("utf-8"))


def _cache(usage: CacheUsage | None) -> JsonObject | None:
    if usage is None:
        return None
    return {
        "entries": usage.entries,
        "size_bytes": usage.size_bytes,
        "hits": usage.hits,
        "misses": usage.misses,
        "hit_rate": usage.hit_rate,
    }


def _model(identity: Identity | None) -> JsonObject | None:
    if identity is None:
        return None
    return {
        "provider": identity.provider,
        "model": identity.model,
        "dimension": identity.dimension,
        "metric": identity.metric,
    }
