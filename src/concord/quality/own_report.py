"""What `kb eval` says of one's own documents: at a terminal, and on a page with plots."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from concord.quality.own_evaluation import MEASURES, Figures, Interval, OwnEvaluation
from concord.quality.report import Part, Table, answerability_table, reliability_table

ROW = 16  # of a plot, in its own units
NAMES = {"RR": "MRR"}  # which is what a mean of reciprocal ranks is called


def own_parts(found: OwnEvaluation) -> Iterator[Part]:
    """Yield what there is to say of one's own documents."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items())
    yield Part(f"{found.name}: {found.documents:,} documents, {sum(found.kinds.values()):,} pairs ({kinds})")
    yield Part(f"model: {found.model or 'none, words alone'}")
    yield Part(_verdict(found))
    yield Part(
        "by kind of pair and mode: the mean, and where the true one is in 95 of 100 cases", _table(found)
    )
    yield Part("confidence", reliability_table(found.promises))
    if found.twins:
        said = "asked without the documents that answer them: how many are refused"
        yield Part(said, answerability_table({"leave-out twins": found.twins}))
    if found.worst:
        yield Part("worst in auto, to look at", _worst_table(found))


def mode_plot(figures: Figures, measure: str = MEASURES[0]) -> str:
    """Return a plot as SVG: a line a mode, a circle at its mean and a bar over its interval, from 0 to 1."""
    lines = "".join(_line(at, mode, given[measure]) for at, (mode, given) in enumerate(figures.items()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-75 -2 250 {ROW * len(figures) + 4}" width="480" '
        f'role="img" aria-label="{measure} by mode" font-size="10" fill="#1668b8">'
        f'<path d="M0 0V{ROW * len(figures)}M160 0V{ROW * len(figures)}" stroke="#999"/>{lines}</svg>'
    )


def _line(at: int, mode: str, given: Interval) -> str:
    y = ROW * (at + 0.5)
    low, mean, high = (160 * max(0.0, value) for value in (given.low, given.mean, given.high))
    return (
        f'<text x="-6" y="{y + 3:.1f}" text-anchor="end" fill="#222">{escape(mode)}</text>'
        f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#1668b8"/><circle cx="{mean:.1f}" cy="{y}" r="3">'
        f"<title>{given.mean:.3f} ({given.low:.3f} to {given.high:.3f})</title></circle>"
    )


def _verdict(found: OwnEvaluation) -> str:
    """Return which mode is best, and which others may be as good by chance alone."""
    near = [mode for mode, behind in found.behind.items() if behind.low <= 0]
    as_good = f"; {', '.join(near)} may be as good, by chance" if near else "; no other is as good"
    return f"best mode: {found.best}, nDCG@10 {found.measures[found.best]['nDCG@10']:.3f}{as_good}"


def _table(found: OwnEvaluation) -> Table:
    heads = ("kind", "pairs", "mode", *(NAMES.get(name, name) for name in MEASURES))
    all_kinds = {"all": (sum(found.kinds.values()), found.intervals)}
    each = {kind: (count, found.by_kind[kind]) for kind, count in found.kinds.items()}
    rows = (
        (kind, f"{count:,}", mode, *(_shown(given[name]) for name in MEASURES))
        for kind, (count, figures) in {**all_kinds, **(each if len(each) > 1 else {})}.items()
        for mode, given in figures.items()
    )
    return Table(heads, tuple(rows))


def _shown(given: Interval) -> str:
    return f"{given.mean:.3f} ({max(0.0, given.low):.3f}-{given.high:.3f})"


def _worst_table(found: OwnEvaluation) -> Table:
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
