"""The moment by which a search must be done: one for all its stages, however late each of them begins."""

from __future__ import annotations

import time


class Deadline:
    """The end of the time that something may take, which begins when this is made."""

    __slots__ = ("_ends", "ms")

    def __init__(self, ms: float) -> None:
        self.ms = ms
        self._ends = time.perf_counter() + ms / 1000

    def left_ms(self) -> float:
        """Return how many milliseconds are left; 0 once it has passed."""
        return max(0.0, self._ends - time.perf_counter()) * 1000
