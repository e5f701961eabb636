"""What commands did or found → JSON, under the rules of `wire`: all that `--json` and MCP say but answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from concord.outcomes import FILE_COUNTS
from concord.text.urls import without_password
from concord.wire import JsonObject, iso_time, json_object

if TYPE_CHECKING:
    from concord.backfill import Backfill
    from concord.doctor import Diagnosis
    from concord.indexing.embedding import EmbeddingReport
    from concord.model_trial import ModelComparison, ModelResult
    from concord.models import Built, ModelState, Switch
    from concord.moving.migrate import Migration
    from concord.moving.vector_move import VectorMove
    from concord.outcomes import (
        Backup,
        CacheUsage,
        Finding,
        Removal,
        SourceSummary,
        Stats,
        SyncReport,
        VectorIndexState,
    )
    from concord.quality.evaluate import Evaluation, Review
    from concord.quality.fit import Refit
    from concord.quality.metrics import Promises, Reliability
    from concord.types import Feedback, Identity

SUMMED = (*FILE_COUNTS, "chunks", "embedded", "reused", "pending")


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
        "skipped_files": [asdict(one) for one in report.skipped_files],
        "partly_read": [asdict(one) for one in report.partly_read],
        "failed": [asdict(one) for one in report.failed],
        "chunks": report.chunks,
        "embedded": report.embedded,
        "reused": report.reused,
        "pending": report.pending,
        "degraded": report.degraded,
        "overflowed": report.overflowed,
        "generation": report.generation,
        "took_s": _seconds(report.took_s),
    }
    return json_object(wire)


def sync_reports_to_json(reports: Sequence[SyncReport]) -> JsonObject:
    """Return what a sync of several sources came to, in all and for each."""
    each = [sync_report_to_json(report) for report in reports]
    return {
        **{key: sum(one[key] for one in each) for key in SUMMED},
        "skipped": _skipped(reports),
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
    return json_object(wire)


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
        "took_s": _seconds(migration.took_s),
        "vectors_left": migration.left or None,
    }
    return json_object(wire)


def backup_to_json(backup: Backup) -> JsonObject:
    """Return what was copied, and where to."""
    wire = {
        "path": backup.path,
        "size_bytes": backup.size_bytes,
        "sources": backup.counts.sources,
        "documents": backup.counts.documents,
        "chunks": backup.counts.chunks,
        "vectors": backup.counts.vectors,
        "took_s": _seconds(backup.took_s),
    }
    return json_object(wire)


def vector_move_to_json(done: VectorMove, place: str) -> JsonObject:
    """Return where vectors are kept now, what bringing them there came to, and where some still lie."""
    left = [{"vectors": one.home.url, "store": one.home.key, "why": one.why} for one in done.left]
    return json_object({"vectors": place, **_embedding(done.embedding), "left": left})


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
    return json_object(wire)


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
        "vectors_home": stats.vectors_home or None,
        "pending": stats.pending,
        "model": _model(stats.identity),
        "generation": stats.generation,
        "types": dict(stats.types),
        "cache": _cache(stats.cache),
        "vector_index": _vector_index(stats.index),
        "feedback": {"good": 0, "bad": 0, **stats.feedback},
    }
    return json_object(wire)


def feedback_to_json(feedback: Feedback) -> JsonObject:
    """Return an opinion as it is kept."""
    return json_object({**asdict(feedback), "at": iso_time(feedback.at)})


def diagnosis_to_json(found: Diagnosis) -> JsonObject:
    """Return what was looked at, what is wrong and what was put right."""
    wire = {
        "healthy": not found.findings,
        "checks": list(found.checks),
        "findings": [_finding(one) for one in found.findings],
        "fixed": [_finding(one) for one in found.fixed],
    }
    return json_object(wire)


def model_to_json(state: ModelState) -> JsonObject:
    """Return a model whose vectors are kept."""
    wire = {
        "name": state.space.identity.name,
        **(_model(state.space.identity) or {}),
        "active": state.space.is_active,
        "vectors": state.vectors,
        "pending": state.pending,
        "url": state.space.recipe.get("embed.url") or None,
    }
    return json_object(wire)


def built_to_json(built: Built) -> JsonObject:
    """Return what building a model's vectors came to."""
    wire = {
        "name": built.identity.name,
        **(_model(built.identity) or {}),
        "active": built.is_active,
        **_embedding(built.embedding),
        "took_s": _seconds(built.took_s),
    }
    return json_object(wire)


def switch_to_json(switch: Switch) -> JsonObject:
    """Return what became of the wish to use another model."""
    wire = {
        "outcome": switch.outcome,
        "name": switch.identity.name,
        "before": switch.before and switch.before.name,
        "comparison": switch.comparison and comparison_to_json(switch.comparison),
        **_embedding(switch.embedding),
        "took_s": _seconds(switch.took_s),
    }
    return json_object(wire)


def comparison_to_json(comparison: ModelComparison) -> JsonObject:
    """Return what two models found."""
    wire = {
        "queries": len(comparison.before.ranks),
        "before": _model_result(comparison.before),
        "after": _model_result(comparison.after),
        "difference": round(comparison.difference, 4),
        "worse": comparison.is_worse,
    }
    return json_object(wire)


def removed_model_to_json(identity: Identity, vectors: int) -> JsonObject:
    """Return what removing a model's vectors deleted."""
    return json_object({"name": identity.name, "vectors_deleted": vectors})


def backfill_to_json(done: Backfill) -> JsonObject:
    """Return what indexing anew came to."""
    return json_object({**done._asdict(), "took_s": _seconds(done.took_s)})


def evaluation_to_json(evaluation: Evaluation, judged: Review) -> JsonObject:
    """Return what was measured, and what feedback says; the runs are left to `--run`."""
    wire = {
        "collection": evaluation.name,
        "model": evaluation.model,
        "documents": evaluation.documents,
        "chunks": evaluation.chunks,
        "queries": evaluation.queries,
        "missing": evaluation.missing,
        "calibrated": evaluation.calibrated,
        "measures": evaluation.measures,
        "query_types": {
            kind: {
                "queries": count,
                "measures": evaluation.by_kind[kind],
                "latency_ms": evaluation.latency_by_kind[kind],
            }
            for kind, count in evaluation.kinds.items()
        },
        "latency_ms": evaluation.latency_ms,
        "mode_latency_ms": evaluation.latency_by_mode,
        "calibration": _promises(evaluation.promises),
        "gibberish": asdict(evaluation.gibberish),
        "answerability": {name: asdict(found) for name, found in evaluation.answerability.items()},
        "feedback": judged._asdict(),
    }
    return json_object(wire)


def refit_to_json(refit: Refit) -> JsonObject:
    """Return what a refit changed."""
    wire = {
        "file": str(refit.path),
        "model": refit.calibration.model,
        "queries": refit.queries,
        "foreign": refit.foreign,
        "feedback": refit.feedback,
        "before": _promises(refit.before),
        "after": _promises(refit.after),
    }
    return json_object(wire)


def _skipped(reports: Sequence[SyncReport]) -> dict[str, int]:
    """Return how many files were skipped in all, by reason."""
    files: Counter[str] = Counter()
    for report in reports:
        files.update(report.skipped)
    return dict(files)


def _seconds(took: float) -> float:
    """Return a duration to the millisecond, as every duration is told."""
    return round(took, 3)


def _finding(finding: Finding) -> JsonObject:
    return {
        "check": finding.fault,
        "message": finding.message,
        "hint": finding.hint,
        "repairable": finding.is_repairable,
    }


def _vector_index(state: VectorIndexState | None) -> JsonObject | None:
    if state is None:
        return None
    return {"covered": state.covered, "size_bytes": state.size_bytes, "absent": state.absent}


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


def _embedding(done: EmbeddingReport) -> JsonObject:
    return {key: value for key, value in done._asdict().items() if key != "refused"}


def _model_result(result: ModelResult) -> JsonObject:
    return {
        "name": result.identity.name,
        "mrr": round(result.mrr, 4),
        "found": round(result.found, 4),
        "query_ms": round(result.query_ms, 3),
    }


def _promises(promises: Promises) -> JsonObject:
    return {
        "score": _reliability(promises.score),
        "confidence_score": _reliability(promises.confidence_score),
        "hit_labels": [label._asdict() for label in promises.hit_labels],
        "answer_labels": [label._asdict() for label in promises.answer_labels],
    }


def _reliability(found: Reliability) -> JsonObject:
    return {
        "n": found.n,
        "ece": found.ece,
        "ece_by_chance": found.ece_by_chance,
        "brier": found.brier,
        "bins": [one._asdict() for one in found.bins if one.n],
    }
