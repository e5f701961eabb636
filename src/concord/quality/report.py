"""An evaluation for people: the tables of a terminal, and one HTML page that needs nothing else.

The plots are SVG written here: two of circles on a line are not worth a plotting library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import NamedTuple

from concord.quality.evaluate import SAMPLE, Evaluation
from concord.quality.metrics import TOP, Answerability, Latency, Promises, Reliability

LATENCY = ("p50 ms", "p95 ms")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
figure { display: inline-block; margin: 0 2rem 1rem 0 } figcaption { font-size: .9em; max-width: 20rem }
"""


class Table(NamedTuple):
    """What stands in a table."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Part(NamedTuple):
    """A part of a report: what is said, and the table below it."""

    said: str
    table: Table | None = None


def page(name: str, said: Iterable[Part], promises: Promises, made: str, plots: str = "") -> str:
    """Return an evaluation as an HTML page; `made` tells by which version, and when."""
    title = f"Search quality on {escape(name)}"
    body = [
        f"<h1>{title}</h1>",
        f"<p>Measured by {escape(made)}.</p>",
        *(f"<p>{escape(part.said)}</p>{_html(part.table)}" for part in said),
        plots,
        _figure("score", "Is the hit's document relevant?", promises.score),
        _figure("confidence_score", "Is a relevant document among the hits?", promises.confidence_score),
    ]
    head = f"<title>{title}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{head}{"".join(body)}</html>\n'


def parts(found: Evaluation) -> Iterator[Part]:
    """Yield what there is to say of an evaluation, at a terminal as on a page."""
    missing = f"; {found.missing:,} of the relevant documents not in corpus.jsonl, counted as not found"
    yield Part(
        f"{found.name}: {found.documents:,} documents, {found.chunks:,} chunks, "
        f"{found.queries:,} judged queries{missing if found.missing else ''}"
    )
    yield Part(f"model: {found.model or 'none, words alone'}")
    took = found.latency_ms
    yield Part(f"latency of auto, over all of them: p50 {took['p50']:.1f} ms, p95 {took['p95']:.1f} ms")
    by_mode = f"by mode; times are of at most {SAMPLE} queries, asked once more in each"
    yield Part(by_mode, mode_table(found.measures, found.mode_latency_ms))
    yield Part("nDCG@10 by query type, and how long auto takes", _type_table(found))
    uncalibrated = "" if found.calibrated else " (uncalibrated: scores are stand-ins, not probabilities)"
    yield Part(f"confidence{uncalibrated}", reliability_table(found.promises))
    yield Part("how often a label is right", _label_table(found.promises))
    yield Part(
        f"gibberish: best hit scores {found.gibberish.highest:.3f}; "
        f"the median of own queries is {found.gibberish.own_median:.3f}"
    )
    if found.answerability:
        yield Part("answerability", answerability_table(found.answerability))


def reliability_plot(found: Reliability) -> str:
    """Return a reliability diagram as SVG: what came true, upwards, over what was promised, to the right."""
    marks = "".join(
        f'<circle cx="{100 * bin.promised:.1f}" cy="{100 - 100 * bin.true:.1f}" r="2.5">'
        f"<title>{bin.n:,} promised {bin.promised:.2f}, {bin.true:.2f} true</title></circle>"
        for bin in found.bins
        if bin.n
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-5 -5 110 110" width="280" role="img" '
        'aria-label="reliability diagram" fill="#1668b8">'
        f'<path d="M0 0V100H100M0 100L100 0" fill="none" stroke="#999"/>{marks}</svg>'
    )


def _figure(name: str, question: str, kept: Reliability) -> str:
    caption = f"<b>{name}</b>: {question} ECE {kept.ece:.3f} (by chance {kept.ece_by_chance:.3f}), "
    caption += f"Brier {kept.brier:.3f}, n = {kept.n:,}."
    return f"<figure>{reliability_plot(kept)}<figcaption>{caption}</figcaption></figure>"


def _html(table: Table | None) -> str:
    if table is None:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _type_table(found: Evaluation) -> Table:
    modes = tuple(found.measures)
    rows = (
        (
            type,
            f"{row.queries:,}",
            *(f"{row.measures[mode]['nDCG@10']:.4f}" for mode in modes),
            *milliseconds(row.latency_ms),
        )
        for type, row in found.query_types.items()
    )
    return Table(("type", "queries", *modes, *LATENCY), tuple(rows))


def reliability_table(promises: Promises) -> Table:
    """Return how well probabilities hold."""
    named = (("score", promises.score), ("confidence_score", promises.confidence_score))
    rows = (
        (name, f"{part.n:,}", f"{part.ece:.3f}", f"{part.ece_by_chance:.3f}", f"{part.brier:.3f}")
        for name, part in named
    )
    return Table(("", "n", "ECE", "by chance", "Brier"), tuple(rows))


def _label_table(promises: Promises) -> Table:
    hits, answers = (
        {part.label: (f"{part.n:,}", f"{part.precision:.3f}") for part in labels}
        for labels in (promises.hit_labels, promises.answer_labels)
    )
    none = ("0", "-")
    rows = (
        (label, *hits.get(label, none), *answers.get(label, none))
        for label in dict.fromkeys([*hits, *answers])
    )
    return Table(("label", "hits", "relevant", "answers", f"right in top {TOP}"), tuple(rows))


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
            f"{row.foreign:,}",
            f"{row.auroc:.3f}",
            f"{row.foreign_flagged:.1%}",
            f"{row.own:,}",
            f"{row.own_flagged:.1%}",
        )
        for name, row in found.items()
    )
    return Table(heads, tuple(rows))
