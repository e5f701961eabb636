"""The one place with threads: ask every strategy at once, and wait no longer than the deadline.

A strategy that fails or is late is named and stops nobody.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from concord import crew
from concord.errors import KBError
from concord.types import Candidate, Degraded, Query

if TYPE_CHECKING:
    from concord.protocols import Strategy

T = TypeVar("T")


class Poll(Struct):
    """The votes that came in time, and who did not vote."""

    votes: dict[str, list[Candidate]] = field(default_factory=dict)
    degraded: list[Degraded] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)


class _Ballot(Struct, frozen=True):
    strategy: str
    candidates: list[Candidate] | None
    reason: str
    took_ms: float


def poll(strategies: Sequence[Strategy], query: Query, deadline_ms: float) -> Poll:
    """Return the votes of all strategies that answer before the deadline."""
    ends = time.perf_counter() + deadline_ms / 1000
    box: queue.SimpleQueue[_Ballot] = queue.SimpleQueue()
    for strategy in strategies:
        crew.do(partial(_cast, strategy, query, box))
    result = Poll()
    waiting = {strategy.name for strategy in strategies}
    while waiting:
        try:
            ballot = box.get(timeout=max(0.0, ends - time.perf_counter()))
        except queue.Empty:
            break
        waiting.discard(ballot.strategy)
        _count(result, ballot)
    result.degraded += [Degraded(name, f"no answer within {deadline_ms:g} ms") for name in sorted(waiting)]
    return result


def bounded(work: Callable[[], T], budget_ms: float) -> T | None:
    """Return what a piece of work comes to; None when it takes longer, and then nobody waits for it.

    Raises:
        Exception: whatever the work raises in time.
    """
    box: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()
    crew.do(lambda: box.put(_outcome(work)))
    try:
        value, fault = box.get(timeout=budget_ms / 1000)
    except queue.Empty:
        return None
    if fault is not None:
        raise fault
    return value


def _outcome(work: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return work(), None
    except Exception as fault:  # raised again by whoever waits
        return None, fault


def _cast(strategy: Strategy, query: Query, box: queue.SimpleQueue[_Ballot]) -> None:
    box.put(_vote(strategy, query))


def _vote(strategy: Strategy, query: Query) -> _Ballot:
    started = time.perf_counter()
    candidates: list[Candidate] | None = None
    reason = ""
    try:
        candidates = strategy.candidates(query)
    except Exception as fault:  # whatever an engine raises is reported in the answer
        reason = reason_of(fault)
    return _Ballot(strategy.name, candidates, reason, (time.perf_counter() - started) * 1000)


def reason_of(fault: Exception) -> str:
    """Return what an answer says of a fault."""
    return fault.message if isinstance(fault, KBError) else f"{type(fault).__name__}: {fault}"


def _count(result: Poll, ballot: _Ballot) -> None:
    result.timings_ms[ballot.strategy] = ballot.took_ms
    if ballot.candidates is None:
        result.degraded.append(Degraded(ballot.strategy, ballot.reason))
    else:
        result.votes[ballot.strategy] = ballot.candidates
