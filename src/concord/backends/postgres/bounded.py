"""A connection whose statements take no longer than whoever asks waits for them.

The server breaks off what takes longer (`statement_timeout`), also when nobody is there any more to tell it.
Searches mostly allow the same time, so a connection is told only when that changes: no search pays a trip for
it. A server that does not even break off is given up a moment later.
"""

from __future__ import annotations

import math
import time
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen

from concord.backends.postgres.faults import Unanswered

GRACE_S = 1.0  # for the server to break off by itself, which keeps the connection
_TICK_S = 0.1  # between two looks at the clock while nothing arrives
_LONGEST_MS = 2**31 - 1  # that the server can be told

# Kept as it is where nothing is allowed: an administrator may have set one for the role.
SETTING = "set_config('statement_timeout', coalesce(%s, current_setting('statement_timeout')), false)"
_BOUND = f"SELECT {SETTING}"
_UNBOUND = "RESET statement_timeout"


class Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows how long its statements may take."""

    _bound_ms: int | None = None

    def bind(self, allowed_ms: float | None) -> None:
        """Let each statement from now on take no longer; None for as long as it takes."""
        bound = _whole(allowed_ms)
        if bound == self._bound_ms:
            return
        self._bound_ms = bound  # already while the server is told
        try:
            if bound is None:
                self.execute(_UNBOUND)
            else:
                self.execute(_BOUND, (str(bound),))
        except psycopg.Error:
            self.close()  # nobody knows whether it was
            raise

    def begin(self, settings: str, values: tuple[Any, ...], allowed_ms: float | None) -> None:
        """Make the settings of a new connection, how long statements may take among them."""
        bound = _whole(allowed_ms)
        self.execute(f"{settings}, {SETTING}", (*values, None if bound is None else str(bound)))
        self._bound_ms = bound

    def wait(self, gen: PQGen[RV], interval: float = _TICK_S, *more: Any, **named: Any) -> RV:
        """Wait for the server, as psycopg does everywhere; raises Unanswered when it is given up."""
        if self._bound_ms is None:
            return super().wait(gen, interval, *more, **named)
        allowed_s = self._bound_ms / 1000 + GRACE_S
        try:
            return super().wait(_answered(gen, allowed_s), interval, *more, **named)
        except Unanswered:
            self.close()  # whatever comes now would be taken for the answer to another question
            raise


def _answered(gen: PQGen[RV], allowed_s: float) -> PQGen[RV]:
    """Pass on what arrives, until nothing has for too long."""
    ends = time.monotonic() + allowed_s
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise Unanswered(f"nothing came within {allowed_s:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        found: RV = end.value
        return found


def _whole(allowed_ms: float | None) -> int | None:
    return None if allowed_ms is None else math.ceil(min(allowed_ms, _LONGEST_MS))
