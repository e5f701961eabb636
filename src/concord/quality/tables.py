"""An evaluation in tables, as heads and cells of text: what a terminal and the HTML page both show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from concord.quality.percentiles import Latency
from concord.quality.reliability import Answerability

LATENCY = ("p50 ms", "p95 ms")


class Table(NamedTuple):
    """What stands in a table."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def missing_told(missing: int) -> str:
    """Return what is to be said of relevant documents that the collection does not hold."""
    return (
        f"; {missing:,} of the relevant documents not in corpus.jsonl, counted as not found"
        if missing
        else ""
    )


def mode_table(
    measures: Mapping[str, Mapping[str, float]], latencies: Mapping[str, Latency] | None = None
) -> Table:
    """Return how good each mode is by each measure, and how long it takes where that was measured."""
    names = tuple(next(iter(measures.values()), {}))
    rows = (
        (
            mode,
            *(f"{values[name]:.4f}" for name in names),
            *(milliseconds(latencies.get(mode)) if latencies else ()),
        )
        for mode, values in measures.items()
    )
    return Table(("mode", *names, *(LATENCY if latencies else ())), tuple(rows))


def milliseconds(latency: Latency | None) -> tuple[str, ...]:
    """Return the cells below `LATENCY`; dashes for what nobody could ask."""
    return tuple(f"{latency[name]:.1f}" if latency else "-" for name in ("p50", "p95"))


def answerability_table(found: Mapping[str, Answerability]) -> Table:
    """Return how well the queries of other collections are told from a collection's own."""
    heads = ("queries of", "n", "AUROC", "refused", "own answered", "of these refused")
    rows = (
        (
            name,
            f"{one.foreign:,}",
            f"{one.auroc:.3f}",
            f"{one.foreign_flagged:.1%}",
            f"{one.own:,}",
            f"{one.own_flagged:.1%}",
        )
        for name, one in found.items()
    )
    return Table(heads, tuple(rows))
