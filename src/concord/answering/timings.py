"""How long did each stage take? What `timings_ms` of an answer tells."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings:
    """The stages of one search, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Take the time of a stage."""
        started = time.perf_counter()
        yield
        self.ms[name] = (time.perf_counter() - started) * 1000

    def total_ms(self) -> float:
        """Return how long it has been."""
        return (time.perf_counter() - self._started) * 1000
