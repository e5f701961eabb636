"""The one place with threads: ask every strategy at once, and wait no longer than the deadline.

A strategy that fails or is late is named and stops nobody.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import TIMEOUT_MAX, Lock
from typing import TYPE_CHECKING, Generic, TypeVar

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
    polling = Polling(deadline_ms)
    polling.ask(strategies, query)
    return polling.result()


class Polling:
    """A poll under way: some strategies are asked before all is known that others need, by one deadline."""

    def __init__(self, deadline_ms: float) -> None:
        self._deadline_ms = deadline_ms
        self._ends = time.perf_counter() + deadline_ms / 1000
        self._gates: dict[str, Lock] = {}
        self._box: list[_Ballot] = []

    def ask(self, strategies: Sequence[Strategy], query: Query) -> list[list[Candidate]]:
        """Ask strategies, without waiting for them; return the votes of those that have all at hand.

        They vote last, when the others have been asked, and sooner than a thread is woken.
        """
        at_hand: list[_Ballot] = []
        is_at_hand = {strategy.name: strategy.is_at_hand(query) for strategy in strategies}
        for strategy in sorted(strategies, key=lambda one: is_at_hand[one.name]):
            if is_at_hand[strategy.name]:
                at_hand.append(_vote(strategy, query))
            else:
                gate = self._gates[strategy.name] = crew.closed_gate()
                crew.do(partial(_cast, strategy, query, self._box, gate))
        self._box.extend(at_hand)
        return [ballot.candidates for ballot in at_hand if ballot.candidates]

    def left_ms(self) -> float:
        """Return how long until the deadline; less than nothing when it has passed."""
        return (self._ends - time.perf_counter()) * 1000

    def result(self) -> Poll:
        """Return the votes of all who were asked and answer before the deadline."""
        for gate in self._gates.values():
            gate.acquire(timeout=_bearable(self._ends - time.perf_counter()))
        result = Poll()
        for ballot in self._box:  # who is late may still be writing
            _count(result, ballot)
        reason = f"no answer within {self._deadline_ms:g} ms"
        result.degraded += [
            Degraded(name, reason) for name in sorted(self._gates.keys() - result.timings_ms.keys())
        ]
        return result


class Begun(Generic[T]):
    """A piece of work that somebody else does meanwhile."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: tuple[T | None, Exception | None] = (None, None)
        self._done = crew.closed_gate()
        crew.do(self._do)

    def result(self, budget_ms: float = math.inf) -> T | None:
        """Return what it comes to; None when it takes longer, and then nobody waits for it.

        Raises:
            Exception: whatever the work raises in time.
        """
        if not self._done.acquire(timeout=_bearable(budget_ms / 1000)):
            return None
        self._done.release()  # it stays open for whoever asks again
        value, fault = self._outcome
        if fault is not None:
            raise fault
        return value

    def _do(self) -> None:
        try:
            self._outcome = (self._work(), None)
        except Exception as fault:  # raised again by whoever waits
            self._outcome = (None, fault)
        self._done.release()


def bounded(work: Callable[[], T], budget_ms: float) -> T | None:
    """Return what a piece of work comes to; None when it takes longer, and then nobody waits for it.

    Raises:
        Exception: whatever the work raises in time.
    """
    return Begun(work).result(budget_ms)


def _bearable(seconds: float) -> float:
    """Return how long a thread can be told to wait."""
    return max(0.0, min(seconds, TIMEOUT_MAX))


def _cast(strategy: Strategy, query: Query, box: list[_Ballot], cast: Lock) -> None:
    box.append(_vote(strategy, query))
    cast.release()


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
