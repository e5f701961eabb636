"""How long did each stage take? What `timings_ms` of an answer tells."""

from __future__ import annotations

import time


class Stage:
    """One stage, which lasts as long as a `with` block."""

    __slots__ = ("_ms", "_name", "_started")

    def __init__(self, name: str, ms: dict[str, float]) -> None:
        self._name, self._ms = name, ms

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        if fault is None:
            self._ms[self._name] = (time.perf_counter() - self._started) * 1000


class Timings:
    """The stages of one search, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.ms: dict[str, float] = {}

    def stage(self, name: str) -> Stage:
        """Measure a stage: `with timings.stage("fuse"):`."""
        return Stage(name, self.ms)

    def total_ms(self) -> float:
        """Return how long the search has taken so far."""
        return (time.perf_counter() - self._started) * 1000
