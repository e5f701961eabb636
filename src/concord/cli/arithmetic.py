"""The arithmetic behind a result, for people: votes, fusion, relevance and label as lines of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concord.cli.output import table

MOST_FEATURES = 4  # of a relevance that are shown: those that moved it most

_DISCOUNTS = {
    "held": "for a code that nothing holds, or a query of stop words",
    "borne_out": "for the query's words that it lacks: the model does not read them",
}

_SIGNS = {
    "release": "of the release that is asked for",
    "definition": "where the name is defined that is asked for",
    "option": "where the option is described that is asked for",
    "place": "at the place that the query names",
}

Told = Mapping[str, Any]


def votes(told: Told) -> list[str]:
    """Return the lines that tell who voted for a result."""
    return table(("strategy", "rank", "score"), map(_vote, told["strategies"])).splitlines()


def arithmetic(told: Told) -> list[str]:
    """Return the lines that tell how a result came by its rank, its score and its label."""
    lines = table(("family", "rank", "weight", "adds"), _families(told)).splitlines()
    lines.append(_sum(told))
    if close := told.get("closeness"):
        lines.append(f"closeness: {close:.0%} of the query's neighbouring words stand together in it")
    if second := told.get("rerank"):
        lines.append(f"{second['reranker']}: {number(second['before'])} → {number(second['after'])}")
    if habit := told.get("usage"):
        lines.append(f"usage: read {habit['times']} times, habit {habit['habit']:.2f}, {habit['added']:+.4f}")
    if "relevance" in told:
        lines.extend(_relevance(told["relevance"], told["families"]["semantic"]["score"]))
    if lifted := told.get("lifted"):
        lines.append(_lifted(lifted))
    if "label" in told:
        lines.append(_label(told["label"]))
    return lines


def number(value: float | None) -> str:
    """Return a number as the tables show it; a dash for none."""
    return "-" if value is None else f"{value:.4f}"


def why_uncalibrated(cosine: float | None) -> str:
    """Return why a score is no probability; what has no cosine has only words to speak for it."""
    if cosine is None:
        return "words alone are not calibrated"
    return "nothing was fitted for this model"


def _vote(vote: Told) -> tuple[str, str, str]:
    return vote["strategy"], str(vote["rank"]), number(vote["score"])


def _families(told: Told) -> Iterator[tuple[str, str, str, str]]:
    weights = told["weights"] or {}
    for name, family in told["families"].items():
        yield name, str(family["rank"] or "-"), number(weights.get(name)), number(family["added"])


def _sum(told: Told) -> str:
    added = " + ".join(number(family["added"]) for family in told["families"].values())
    factor = f"({added}) × {told['factor']:.4f}" if told["factor"] != 1 else added
    return f"{told['fusion']}: {factor} = {number(told['fused'])}; agreement {told['agreement']:.2f}"


def _relevance(told: Told, cosine: float | None) -> Iterator[str]:
    """Yield the relevance, and what moved it: log-odds where it was fitted, plain values where not."""
    kind = "calibrated" if told["calibrated"] else f"a stand-in: {why_uncalibrated(cosine)}"
    if told["least"]:
        kind += f", at least {told['least']:.2f} because it has the whole query"
    for key, why in _DISCOUNTS.items():
        kind += f"; × {told[key]:.2f}, {why}" if told[key] < 1 else ""
    yield f"relevance {told['relevance']:.4f} ({kind})"
    if told["calibrated"]:
        features = sorted(told["features"], key=lambda feature: -abs(feature["added"]))[:MOST_FEATURES]
        shown = ", ".join(f"{one['name']} {one['value']:.3g} → {one['added']:+.2f}" for one in features)
        yield f"log-odds from {told['intercept']:+.2f}: {shown}, …"


def _lifted(told: Told) -> str:
    """Return why a result was lifted, and its score if that is of a result that it was put before."""
    why = "as such a place" if told["for"] == "place" else "as the best that it was put before"
    score = f"; score {told['to']:.4f}, {why}" if told["from"] is not None else ""
    return f"lifted: it is {_SIGNS[told['for']]}{score}"


def _label(told: Told) -> str:
    capped = f", capped from {told['earned']}" if told["capped"] else ""
    lifted = f", lifted from {told['earned']}" if told["label"] != told["earned"] and not capped else ""
    return f"label {told['label']}{capped}{lifted}: {told['row']}"
