"""An evaluation for people: the tables of a terminal, and one HTML page that needs nothing else.

The plots are SVG written here: circles on a line are not worth a plotting library.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from concord.quality.evaluate import SAMPLE, Evaluation
from concord.quality.metrics import TOP, Reliability

OF_A_KIND = ("nDCG@10", "R@5", "RR")
NAMES = {"RR": "MRR"}  # which is what a mean of reciprocal ranks is called

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


def page(found: Evaluation, made: str) -> str:
    """Return an evaluation as an HTML page; `made` tells by which version, and when."""
    title = f"Search quality on {escape(found.name)}"
    body = [
        f"<h1>{title}</h1>",
        f"<p>Measured by {escape(made)}.</p>",
        *(f"<p>{escape(part.said)}</p>{_html(part.table)}" for part in parts(found)),
        _figure("score", "Is the hit's document relevant?", found.promises.score),
        _figure(
            "confidence_score", "Is a relevant document among the hits?", found.promises.confidence_score
        ),
    ]
    head = f"<title>{title}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{head}{"".join(body)}</html>\n'


def parts(found: Evaluation) -> Iterator[Part]:
    """Yield what there is to say of an evaluation, at a terminal as on a page."""
    missing = f"; {found.missing:,} of the relevant documents not indexed, counted as not found"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items())
    yield Part(
        f"{found.name}: {found.documents:,} documents, {found.chunks:,} chunks, "
        f"{found.queries:,} queries ({kinds}){missing if found.missing else ''}"
    )
    yield Part(f"model: {found.model or 'none, words alone'}")
    near = [mode for mode, behind in found.behind.items() if behind.low <= 0]
    as_good = f"; {', '.join(near)} may be as good, by chance" if near else "; no other is as good"
    yield Part(f"best mode: {found.best}, nDCG@10 {found.measures[found.best]['nDCG@10']:.3f}{as_good}")
    took = found.latency_ms
    yield Part(f"latency of auto, over all of them: p50 {took['p50']:.1f} ms, p95 {took['p95']:.1f} ms")
    yield Part(f"by mode; times are of at most {SAMPLE} queries, asked once more in each", _modes(found))
    yield Part("by kind and mode: the mean, and where the true one is in 95 of 100 cases", _kinds(found))
    uncalibrated = "" if found.calibrated else " (uncalibrated: scores are stand-ins, not probabilities)"
    yield Part(f"confidence{uncalibrated}", _reliability(found))
    yield Part("how often a label is right", _labels(found))
    if found.answerability:
        yield Part("answerability: questions without an answer are to be refused", _answerability(found))
    if found.worst:
        yield Part("worst in auto, to look at", _worst(found))


def _modes(found: Evaluation) -> Table:
    names = tuple(next(iter(found.measures.values())))
    rows = []
    for mode, values in found.measures.items():
        took = found.mode_latency_ms.get(mode)
        times = (f"{took[part]:.1f}" if took else "-" for part in ("p50", "p95"))
        rows.append((mode, *(f"{values[name]:.4f}" for name in names), *times))
    return Table(("mode", *(NAMES.get(name, name) for name in names), "p50 ms", "p95 ms"), tuple(rows))


def _kinds(found: Evaluation) -> Table:
    each = {"all": (found.queries, found.intervals)}
    if len(found.kinds) > 1:
        each |= {kind: (count, found.by_kind[kind]) for kind, count in found.kinds.items()}
    rows = (
        (
            kind,
            f"{count:,}",
            mode,
            *(
                f"{mean:.3f} ({max(0.0, low):.3f}-{high:.3f})"
                for mean, low, high in map(given.__getitem__, OF_A_KIND)
            ),
        )
        for kind, (count, figures) in each.items()
        for mode, given in figures.items()
    )
    return Table(("kind", "n", "mode", *(NAMES.get(name, name) for name in OF_A_KIND)), tuple(rows))


def _reliability(found: Evaluation) -> Table:
    named = (("score", found.promises.score), ("confidence_score", found.promises.confidence_score))
    rows = (
        (name, f"{part.n:,}", f"{part.ece:.3f}", f"{part.ece_by_chance:.3f}", f"{part.brier:.3f}")
        for name, part in named
    )
    return Table(("", "n", "ECE", "by chance", "Brier"), tuple(rows))


def _labels(found: Evaluation) -> Table:
    hits, answers = (
        {part.label: (f"{part.n:,}", f"{part.precision:.3f}") for part in labels}
        for labels in (found.promises.hit_labels, found.promises.answer_labels)
    )
    none = ("0", "-")
    rows = (
        (label, *hits.get(label, none), *answers.get(label, none))
        for label in dict.fromkeys([*hits, *answers])
    )
    return Table(("label", "hits", "relevant", "answers", f"right in top {TOP}"), tuple(rows))


def _answerability(found: Evaluation) -> Table:
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
        for name, row in found.answerability.items()
    )
    return Table(heads, tuple(rows))


def _worst(found: Evaluation) -> Table:
    rows = (
        (
            bad.kind,
            bad.query,
            bad.wanted,
            str(bad.rank or "-"),
            bad.first or "nothing",
            f"{bad.confidence:.2f}",
        )
        for bad in found.worst
    )
    return Table(("kind", "asked", "wanted", "its rank", "came first", "confidence"), tuple(rows))


def _html(table: Table | None) -> str:
    if table is None:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _figure(name: str, question: str, kept: Reliability) -> str:
    marks = "".join(
        f'<circle cx="{100 * bin.promised:.1f}" cy="{100 - 100 * bin.true:.1f}" r="2.5">'
        f"<title>{bin.n:,} promised {bin.promised:.2f}, {bin.true:.2f} true</title></circle>"
        for bin in kept.bins
        if bin.n
    )
    caption = f"<b>{name}</b>: {question} ECE {kept.ece:.3f} (by chance {kept.ece_by_chance:.3f}), "
    caption += f"Brier {kept.brier:.3f}, n = {kept.n:,}."
    return (
        '<figure><svg xmlns="http://www.w3.org/2000/svg" viewBox="-5 -5 110 110" width="280" role="img" '
        'aria-label="reliability diagram" fill="#1668b8">'
        f'<path d="M0 0V100H100M0 100L100 0" fill="none" stroke="#999"/>{marks}</svg>'
        f"<figcaption>{caption}</figcaption></figure>"
    )
