"""What commands report → JSON. On the wire a field has the name it has in its report, with exceptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.reports import FILE_COUNTS
from concord.core.values import iso_time, without_password
from concord.text.json_safe import JsonObject, json_object

if TYPE_CHECKING:
    from concord.core.reports import SyncReport

SUMMED = (*FILE_COUNTS, "chunks", "embedded", "reused", "pending")


def report_to_json(report: Any, **before: Any) -> JsonObject:
    """Return a report for the wire; `before` are values that it does not know, which come first."""
    return json_object({**before, **_fields(report)})


def sync_reports_to_json(reports: Sequence[SyncReport]) -> JsonObject:
    """Return what a sync of several sources came to, in all and for each."""
    return summed([report_to_json(report) for report in reports])


def summed(each: Sequence[JsonObject]) -> JsonObject:
    """Return what several reports of a sync came to, in all and for each."""
    skipped: Counter[str] = Counter()
    for report in each:
        skipped.update(report["skipped"])
    return {
        **{key: sum(wire[key] for wire in each) for key in SUMMED},
        "skipped": dict(skipped),
        "failed": [failure for wire in each for failure in wire["failed"]],
        "generation": max((wire["generation"] for wire in each), default=None),
        "sources": each,
    }


def _fields(report: Any) -> JsonObject:
    """Return what is sent of a report: `is_` is dropped from names, and exceptions are made."""
    wire: JsonObject = {}
    kind = type(report).__name__
    names = report.__struct_fields__ if isinstance(report, Struct) else report._fields
    for name in names:
        key = f"{kind}.{name}"
        if key in LEFT_OUT:
            continue
        exception = EXCEPTIONS.get(key) or EXCEPTIONS.get(name)
        wire |= exception(report) if exception else {name.removeprefix("is_"): _value(getattr(report, name))}
    return wire


def _value(value: Any) -> Any:
    if isinstance(value, Struct) or hasattr(value, "_fields"):
        return _fields(value)
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    return [_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def _moment(name: str) -> Callable[[Any], JsonObject]:
    return lambda report: {name: iso_time(getattr(report, name))}


def _rounded(name: str, decimals: int) -> Callable[[Any], JsonObject]:
    return lambda report: {name: round(getattr(report, name), decimals)}


# Fields that are not sent, or are sent with others.
LEFT_OUT = frozenset({
    "EmbeddingReport.refused", "Evaluation.foreign", "Evaluation.outcomes", "Evaluation.runs",
    "Identity.prefix_version", "Refit.feedback", "Refit.path",
    "Source.id", "Source.name", "Stats.problems", "Stats.vectors_home",
})  # fmt: skip

# A field of any report, or of one → what is sent in its place, given the report.
EXCEPTIONS: Mapping[str, Callable[[Any], JsonObject]] = {
    "at": _moment("at"),
    "counts": lambda report: asdict(report.counts),
    "created_at": _moment("created_at"),
    "embedding": lambda report: _fields(report.embedding),
    "identity": lambda report: {"name": report.identity.name, **_fields(report.identity)},
    "source": lambda report: {"source": report.source.name},
    "store": lambda report: {"store": without_password(report.store)},
    "synced_at": _moment("synced_at"),
    "took_s": _rounded("took_s", 3),
    "CacheUsage.misses": lambda usage: {"misses": usage.misses, "hit_rate": usage.hit_rate},
    "Diagnosis.checks": lambda found: {"healthy": not found.findings, "checks": found.checks},
    "Evaluation.name": lambda evaluation: {"collection": evaluation.name},
    "Evaluation.promises": lambda evaluation: {"calibration": _fields(evaluation.promises)},
    "Finding.fault": lambda finding: {"check": finding.fault},
    "LeftBehind.home": lambda left: {"vectors": left.home.url, "store": left.home.key},
    "Migration.left": lambda migration: {"vectors_left": migration.left or None},
    "ModelState.pending": lambda state: {
        "pending": state.pending,
        "url": state.model.recipe.get("embed.url") or None,
    },
    "ModelState.model": lambda state: {
        "name": state.model.identity.name,
        **_fields(state.model.identity),
        "active": state.model.is_active,
    },
    "Refit.calibration": lambda refit: {"file": str(refit.path), "model": refit.calibration.model},
    "Refit.foreign": lambda refit: {"foreign": refit.foreign, "feedback": refit.feedback},
    "Reliability.bins": lambda found: {"bins": [_fields(part) for part in found.bins if part.n]},
    "SourceSummary.counts": lambda summary: {
        name: getattr(summary.counts, name) for name in ("documents", "chunks", "vectors")
    },
    "SourceSummary.source": lambda summary: {
        "source": summary.source.name,
        "source_id": summary.source.id,
        "kind": summary.source.kind,
        **_fields(summary.source),
    },
    "Stats.counts": lambda stats: {**asdict(stats.counts), "vectors_home": stats.vectors_home or None},
    "Stats.feedback": lambda stats: {"feedback": {"good": 0, "bad": 0, **stats.feedback}},
    "Stats.identity": lambda stats: {"model": _value(stats.identity)},
    "Stats.index": lambda stats: {"vector_index": _value(stats.index)},
    "Switch.before": lambda switch: {"before": switch.before and switch.before.name},
    "Switch.identity": lambda switch: {"name": switch.identity.name},
    "SyncReport.source": lambda report: {
        "source": report.source.name,
        "source_id": report.source.id,
        "path": report.source.path,
    },
}
