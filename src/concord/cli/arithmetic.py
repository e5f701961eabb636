"""The arithmetic behind a result, for people: votes, fusion, relevance and label as lines of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concord.cli.output import table

MOST_FEATURES = 4  # of a relevance that are shown: those that moved it most

Arithmetic = Mapping[str, Any]


def ranks(sums: Arithmetic) -> list[str]:
    """Return the lines that say who found a result."""
    rows = ((found["strategy"], str(found["rank"])) for found in sums["strategies"])
    return table(("strategy", "rank"), rows).splitlines()


def arithmetic(sums: Arithmetic) -> list[str]:
    """Return the lines that say how a result came by its rank, its score and its label."""
    lines = table(("leg", "rank", "score", "weight", "adds"), _legs(sums)).splitlines()
    lines.append(_sum(sums))
    if close := sums.get("closeness"):
        lines.append(f"closeness: {close:.0%} of the query's neighbouring words stand together in it")
    if sums.get("name"):
        lines.append("name: it defines what the query names, so it comes first")
    if "ranked" in sums and sums["ranked"] != sums["fused"]:
        lines.append(f"with boosts and reranking: {number(sums['ranked'])}")
    if "relevance" in sums:
        lines.extend(_relevance(sums["relevance"]))
    if "label" in sums:
        capped = f", capped from {sums['label']['earned']}" if sums["label"]["capped"] else ""
        lines.append(f"label {sums['label']['label']}{capped}: {sums['label']['row']}")
    return lines


def number(value: float | None) -> str:
    """Return a number as the tables show it; a dash for none."""
    return "-" if value is None else f"{value:.4f}"


def _legs(sums: Arithmetic) -> Iterator[tuple[str, ...]]:
    weights = sums["weights"] or {}
    for name, leg in sums["families"].items():
        yield (
            name,
            str(leg["rank"] or "-"),
            number(leg["score"]),
            number(weights.get(name)),
            number(leg["added"]),
        )


def _sum(sums: Arithmetic) -> str:
    added = " + ".join(number(leg["added"]) for leg in sums["families"].values())
    product = f"({added}) × {sums['factor']:.4f}" if sums["factor"] != 1 else added
    gain = f" + {sums['gain']:.4f}" if sums["gain"] else ""
    return f"{sums['fusion']}: {product}{gain} = {number(sums['fused'])}; agreement {sums['agreement']:.2f}"


def _relevance(sums: Arithmetic) -> Iterator[str]:
    """Yield the score, and what moved it: log-odds where it was fitted, plain values where not."""
    kind = f"calibrated for {sums['evidence']}" if sums["calibrated"] else "a stand-in: nothing was fitted"
    yield f"relevance {sums['relevance']:.4f} ({kind})"
    if sums["calibrated"]:
        features = sorted(sums["features"], key=lambda feature: -abs(feature["added"]))[:MOST_FEATURES]
        shown = ", ".join(f"{one['name']} {one['value']:.3g} → {one['added']:+.2f}" for one in features)
        yield f"log-odds from {sums['intercept']:+.2f}: {shown}, …"
