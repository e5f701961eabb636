"""What grows how: a line and a power of the size, fitted to measured points, each with its worst miss.

Errors are relative, so that ten thousand chunks count as much as a million.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

Points = Mapping[int, float]  # by number of chunks


class Line(NamedTuple):
    """`fixed + each × chunks`."""

    fixed: float
    each: float
    miss: float  # the largest error at a measured point, as a share of what was measured

    def at(self, chunks: int) -> float:
        """Return what the line says of a size."""
        return self.fixed + self.each * chunks


class Power(NamedTuple):
    """`factor × chunks ^ exponent`."""

    factor: float
    exponent: float
    miss: float

    def at(self, chunks: int) -> float:
        """Return what the power says of a size."""
        return float(self.factor * chunks**self.exponent)


def fit_line(points: Points) -> Line:
    """Return the line of least squared relative error."""
    sizes, values = _arrays(points)
    terms = np.stack([1 / values, sizes / values], axis=1)
    fixed, each = np.linalg.lstsq(terms, np.ones(len(values)), rcond=None)[0].tolist()
    line = Line(fixed, each, 0.0)
    return line._replace(miss=_worst_miss(points, line.at))


def fit_power(points: Points) -> Power:
    """Return the power of least squared error of logarithms."""
    sizes, values = _arrays(points)
    exponent, factor = np.polyfit(np.log(sizes), np.log(values), 1).tolist()
    power = Power(float(np.exp(factor)), exponent, 0.0)
    return power._replace(miss=_worst_miss(points, power.at))


def _arrays(points: Points) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(points), dtype=float), np.array(list(points.values()), dtype=float)


def _worst_miss(points: Points, guess: Callable[[int], float]) -> float:
    return max(abs(guess(chunks) / measured - 1) for chunks, measured in points.items())
