"""An evaluation for people: the tables of a terminal, and one HTML page that needs nothing else.

The plots are SVG written here: two of circles on a line are not worth a plotting library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from concord.quality.evaluate import SAMPLE, Evaluation
from concord.quality.metrics import Answerability, LabelPrecision, Latency, Reliability

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
figure { display: inline-block; margin: 0 2rem 1rem 0 } figcaption { font-size: .9em; max-width: 20rem }
"""


def page(evaluation: Evaluation, made: str) -> str:
    """Return an evaluation as an HTML page; `made` tells by which version, and when."""
    e = evaluation
    body = [
        f"<h1>Search quality on {escape(e.name)}</h1>",
        f"<p>{e.documents:,} documents in {e.chunks:,} chunks, {e.queries:,} judged "
        f"queries{missing_told(e.missing)}. A search takes {_took(e.latency_ms)}.</p>",
        f"<p>Measured with the model {escape(e.model or 'none')} by {escape(made)}.</p>",
        "<h2>Rankings</h2>",
        _table(*mode_table(e.measures, e.latency_by_mode)),
        f"<p>The times of the modes are those of at most {SAMPLE} queries, asked in each of them.</p>",
        *(
            f"<h3>{kind} queries ({count:,})</h3>{_table(*mode_table(e.by_kind[kind]))}"
            f"<p>In auto, one takes {_took(e.latency_by_kind[kind])}.</p>"
            for kind, count in e.kinds.items()
        ),
        "<h2>Confidence</h2>",
        ""
        if e.calibrated
        else "<p>This model is not calibrated: scores are stand-ins, no probabilities.</p>",
        _figure("score", "Is the hit's document relevant?", e.promises.score),
        _figure("confidence_score", "Is a relevant document among the hits?", e.promises.confidence_score),
        "<h3>How often a label is right</h3>",
        _labels_table("hit", e.promises.hit_labels),
        _labels_table("answer (in its first three hits)", e.promises.answer_labels),
        "<h2>Knowing what is not there</h2>",
        f"<p>Of {e.gibberish.n} queries of random letters the best hit scores {e.gibberish.highest:.3f}; "
        f"the collection's own queries have {e.gibberish.own_median:.3f} at the median.</p>",
        _table(*answerability_table(e.answerability)) if e.answerability else "",
    ]
    head = f"<title>Search quality on {escape(e.name)}</title><style>{STYLE}</style>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{head}{"".join(body)}</html>\n'


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


def _took(latency: Latency) -> str:
    """Return how long a search takes, in words."""
    return f"{latency['p50']:.1f} ms at the median and {latency['p95']:.1f} ms at the 95th percentile"


def _labels_table(of: str, labels: Sequence[LabelPrecision]) -> str:
    return _table(
        [f"label of the {of}", "n", "right"],
        ([row.label, f"{row.n:,}", f"{row.precision:.3f}"] for row in labels),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


LATENCY = ("p50 ms", "p95 ms")


class Table(NamedTuple):
    """What stands in a table."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def missing_told(missing: int) -> str:
    """Return what is to be said of relevant documents that the collection does not hold."""
    note = f"; {missing:,} of the relevant documents not in corpus.jsonl, counted as not found"
    return note if missing else ""


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
