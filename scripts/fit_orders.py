"""Fit what makes a text an order to an AI: python scripts/fit_orders.py [FOLDER of harmless Markdown …]

To the texts of tests/injection, and to paragraphs of the folders as further harmless ones. Prints how many
texts of each kind are flagged by weights that were fitted without them, then writes those fitted to all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import json
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.optimize import minimize

from concord.text import orders

ROOT = Path(__file__).resolve().parent.parent
TEXTS, FILE = ROOT / "tests" / "injection", ROOT / "src" / "concord" / orders.FILE
FOLDS = 5
ASSUMED = 2.5  # the weight of a pattern that was never seen; of those that speak against an order, negative
PENALTY = 0.1  # on the squared distance from that
ORDINARY = 0.2  # what a paragraph of a folder weighs
SHORTEST = 60  # characters of a paragraph
AGAINST = {"is there to override", "quoted", "talks about attacks", orders.ABOUT}
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """A text: a row for each of its windows, and what it is."""

    kind: str
    rows: Floats
    is_order: bool
    weight: float = 1.0

    def odds(self, fitted: Floats) -> float:
        """Return the log-odds of its likeliest window."""
        return float((self.rows @ fitted[:-1]).max() + fitted[-1])


def texts(name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a file with their kinds; what cannot be seen is written as in Python."""
    kind = ""
    for line in (TEXTS / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and line.count(" ") == 1:
            kind = line[2:]
        elif line:
            for escape, character in (("\\n", "\n"), ("\\u200b", "\u200b"), ("\\u00ad", "\u00ad")):
                line = line.replace(escape, character)
            yield kind, line


def paragraphs(folders: Sequence[str]) -> Iterator[str]:
    """Yield the paragraphs of all Markdown files."""
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.md"))):
        parts = path.read_text(encoding="utf-8", errors="replace").split("\n\n")
        yield from (part for part in parts if len(part) > SHORTEST)


def rows(text: str, names: Sequence[str]) -> Floats:
    """Return the features of each window of a text; one of nothing where there is none."""
    found = [[float(matched.count(name)) for name in names] for matched in orders.windows(text)]
    return np.array(found or [[0.0] * len(names)])


def fit(cases: Sequence[Case], names: Sequence[str]) -> Floats:
    """Return the weights, and the bias behind them."""
    assumed = np.array([-ASSUMED if name in AGAINST else ASSUMED for name in names])

    def loss(fitted: Floats) -> float:
        total = PENALTY * float(((fitted[:-1] - assumed) ** 2).sum())
        signs = (-1 if case.is_order else 1 for case in cases)
        return total + sum(
            case.weight * float(np.logaddexp(0.0, sign * case.odds(fitted)))
            for case, sign in zip(cases, signs, strict=True)
        )

    bounds = [(-6.0, 0.0) if name in AGAINST else (0.0, 6.0) for name in names] + [(-9.0, 0.0)]
    return np.asarray(minimize(loss, [*assumed, -2.0], method="L-BFGS-B", bounds=bounds).x)


def report(what: str, cases: Sequence[Case], odds: Sequence[float]) -> None:
    """Print how many cases are flagged."""
    cut = float(np.log(orders.LIKELY / (1 - orders.LIKELY)))
    for is_order, kind in sorted({(case.is_order, case.kind) for case in cases}, reverse=True):
        known = [case.is_order == is_order and case.kind == kind for case in cases]
        flagged = sum(value >= cut for value, is_known in zip(odds, known, strict=True) if is_known)
        sys.stdout.write(f"{what}: {'orders' if is_order else 'others'}, {kind}: {flagged} of {sum(known)}\n")


def main(folders: Sequence[str]) -> None:
    """Fit, print, write."""
    model = json.decode(FILE.read_bytes(), type=orders.Model)
    names = [*model.features, orders.ABOUT]
    both = (("attacks.txt", True), ("harmless.txt", False))
    known = [Case(kind, rows(text, names), true) for name, true in both for kind, text in texts(name)]
    ordinary = [Case("paragraph", rows(text, names), False, ORDINARY) for text in paragraphs(folders)]
    telling = [case for case in ordinary if case.rows.any()]
    unseen = [0.0] * len(known)
    for fold in range(FOLDS):
        fitted = fit([case for at, case in enumerate(known) if at % FOLDS != fold] + telling, names)
        unseen[fold::FOLDS] = [case.odds(fitted) for case in known[fold::FOLDS]]
    report("fitted without them", known, unseen)
    fitted = fit(known + telling, names)
    report("fitted to all", known + ordinary, [case.odds(fitted) for case in known + ordinary])
    weights = {name: round(float(weight), 2) for name, weight in zip(names, fitted[:-1], strict=True)}
    changed = replace(model, weights=weights, bias=round(float(fitted[-1]), 2))
    FILE.write_bytes(json.format(json.encode(changed), indent=1) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
