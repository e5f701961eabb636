"""How answers differ from the golden ones, counted by set."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from golden.answers import Record
from golden.queries import GoldenQuery

TOLERANCES = Path(__file__).parent / "tolerances.toml"
SAME_SCORE = 0.0006  # scores nearer than this are the same: processors differ in the last bits
COLUMNS = ("outcome", "order", "scores", "labels", "confidence", "answerable", "note", "total", "shown")


class Difference(NamedTuple):
    """What differs for one query, and by how much its scores do."""

    query: GoldenQuery
    columns: frozenset[str]
    score: float


def differences(
    queries: Sequence[GoldenQuery], golden: Mapping[str, Record], now: Mapping[str, Record]
) -> list[Difference]:
    """Return the queries whose answer is not the golden one; one without a golden answer differs in all."""
    return [
        difference
        for query in queries
        if (difference := _difference(query, golden.get(query.id), now[query.id])).columns
    ]


def _difference(query: GoldenQuery, golden: Record | None, now: Record) -> Difference:
    if golden is None:
        return Difference(query, frozenset(COLUMNS), 1.0)
    score, confidence = _score_difference(golden, now), _confidence_difference(golden, now)
    differing = {column for column in COLUMNS if golden.get(column) != now.get(column)}
    differing -= {"scores", "confidence"}
    if golden.get("keys") != now.get("keys"):
        differing.add("order")
    if score > SAME_SCORE:
        differing.add("scores")
    if confidence > SAME_SCORE:
        differing.add("confidence")
    return Difference(query, frozenset(differing), max(score, confidence))


def _score_difference(golden: Record, now: Record) -> float:
    """Return the largest difference of the scores of one passage."""
    before = dict(zip(golden.get("keys", ()), golden.get("scores", ()), strict=True))
    after = dict(zip(now.get("keys", ()), now.get("scores", ()), strict=True))
    return max((abs(before[key] - after[key]) for key in before.keys() & after.keys()), default=0.0)


def _confidence_difference(golden: Record, now: Record) -> float:
    before, after = golden.get("confidence"), now.get("confidence")
    if before is None or after is None:
        return 0.0 if before == after else 1.0
    return float(abs(before - after))


def tolerated(store: str, name: str) -> Mapping[str, float]:
    """Return how many queries of a set may differ in each column, and by how much its scores may."""
    tables = tomllib.loads(TOLERANCES.read_text(encoding="utf-8"))
    given: Mapping[str, float] = tables.get(store, {}).get(name, {})
    return given


def beyond(store: str, found: Sequence[Difference]) -> list[str]:
    """Return what differs by more than the tolerances allow, a line for each set and column."""
    lines = []
    for name, of_set in by_set(found).items():
        allowed = tolerated(store, name)
        for column, count in counts(of_set).items():
            if count > allowed.get(column, 0):
                lines.append(f"{store} {name}: {count} differ in {column}, {allowed.get(column, 0)} may")
        largest = max(difference.score for difference in of_set)
        if largest > allowed.get("score", SAME_SCORE):
            lines.append(f"{store} {name}: scores differ by up to {largest:.4f}")
    return lines


def by_set(found: Sequence[Difference]) -> dict[str, list[Difference]]:
    sets: dict[str, list[Difference]] = {}
    for difference in found:
        sets.setdefault(difference.query.set, []).append(difference)
    return sets


def counts(found: Sequence[Difference]) -> dict[str, int]:
    """Return how many queries differ in each column."""
    return {column: sum(column in difference.columns for difference in found) for column in COLUMNS}


def table(queries: Sequence[GoldenQuery], found: Sequence[Difference]) -> str:
    """Return the differences by set, as text."""
    asked: dict[str, int] = {}
    for query in queries:
        asked[query.set] = asked.get(query.set, 0) + 1
    differing = by_set(found)
    lines = [f"{'set':<12} queries differ " + " ".join(f"{column:>10}" for column in COLUMNS) + "  max score"]
    for name, number in [*asked.items(), ("all", len(queries))]:
        of_set = list(found) if name == "all" else differing.get(name, [])
        largest = max((difference.score for difference in of_set), default=0.0)
        cells = " ".join(f"{count or '.':>10}" for count in counts(of_set).values())
        lines.append(f"{name:<12} {number:>7} {len(of_set) or '.':>6} {cells} {largest:>10.4f}")
    return "\n".join(lines)
