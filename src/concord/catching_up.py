"""Reading one's own writes: a search waits until the store has got as far as the caller knows it did."""

from __future__ import annotations

import time
from typing import NamedTuple

from msgspec.structs import replace

from concord.protocols import Catalog
from concord.types import Answer, Degraded, Request

WAITING_SHARE = 0.5  # of the time that the search has: the rest is for searching
FIRST_LOOK_S, LONGEST_LOOK_S = 0.002, 0.05  # between two looks: a commit takes milliseconds, a sync seconds


class CaughtUp(NamedTuple):
    """The request with what time it has left, and what the store lacks; None when it lacks nothing."""

    request: Request
    behind: Degraded | None


def catch_up(request: Request, catalog: Catalog, deadline_ms: float) -> CaughtUp:
    """Wait until the store has reached the generation that is asked for, though never for all the time."""
    if request.min_generation is None:
        return CaughtUp(request, None)
    started = time.monotonic()
    reached = _wait(catalog, request.min_generation, started + deadline_ms * WAITING_SHARE / 1000)
    left_ms = max(1.0, deadline_ms - (time.monotonic() - started) * 1000)
    behind = None
    if reached < request.min_generation:
        reason = f"the index is at generation {reached}, not yet at {request.min_generation}"
        behind = Degraded("generation", f"{reason}: what was changed since may be missing")
    return CaughtUp(replace(request, deadline_ms=left_ms), behind)


def admitted(answer: Answer, request: Request, behind: Degraded | None) -> Answer:
    """Return the answer to the request as it was made, saying what it was given without."""
    answer = replace(answer, request=request)
    if behind is None:
        return answer
    note = f"{answer.note}; {behind.reason}" if answer.note else behind.reason
    return replace(answer, degraded=(*answer.degraded, behind), note=note)


def _wait(catalog: Catalog, wanted: int, until: float) -> int:
    """Return the generation that was reached in time."""
    pause = FIRST_LOOK_S
    while (reached := catalog.generation()) < wanted and (left := until - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_LOOK_S)
    return reached
