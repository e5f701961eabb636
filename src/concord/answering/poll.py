"""Asks all strategies at once, and waits for none of them longer than the deadline.

A strategy that fails or is late is named in the answer and stops nobody.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from concord import worker_threads
from concord.answering.deadline import Deadline
from concord.errors import reason_of
from concord.types import Candidate, Degraded, Query

if TYPE_CHECKING:
    from concord.protocols import Strategy


class Poll(Struct, frozen=True):
    """The votes that came in time, and who did not vote."""

    votes: dict[str, list[Candidate]]
    degraded: list[Degraded]
    timings_ms: dict[str, float]


class _Ballot(Struct, frozen=True):
    strategy: str
    candidates: list[Candidate] | None
    reason: str
    took_ms: float


def poll(strategies: Sequence[Strategy], query: Query, deadline: Deadline) -> Poll:
    """Return the votes of all strategies that answer before the deadline."""
    polling = Polling(deadline)
    polling.ask(strategies, query)
    return polling.result()


def merged(first: Poll, second: Poll) -> Poll:
    """Return two polls as one: of a strategy that was asked twice, the second votes count."""
    took_ms = {name: first.timings_ms.get(name, 0.0) + ms for name, ms in second.timings_ms.items()}
    return Poll(
        {**first.votes, **second.votes},
        [*first.degraded, *second.degraded],
        {**first.timings_ms, **took_ms},
    )


class Polling:
    """A poll under way, with one deadline: some strategies can be asked before others have all they need."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._gates: dict[str, Lock] = {}
        self._box: list[_Ballot] = []

    def ask(self, strategies: Sequence[Strategy], query: Query) -> list[list[Candidate]]:
        """Ask strategies without waiting; return the votes of those that have everything in memory.

        These vote on this thread, after the others have been started on threads of their own.
        """
        at_hand: list[_Ballot] = []
        is_at_hand = {strategy.name: strategy.is_at_hand(query) for strategy in strategies}
        for strategy in sorted(strategies, key=lambda one: is_at_hand[one.name]):
            if is_at_hand[strategy.name]:
                at_hand.append(_vote(strategy, query))
            else:
                gate = self._gates[strategy.name] = worker_threads.closed_gate()
                worker_threads.start(partial(_cast, strategy, query, self._box, gate))
        self._box.extend(at_hand)
        return [ballot.candidates for ballot in at_hand if ballot.candidates]

    def result(self) -> Poll:
        """Return the votes of all who were asked and answer before the deadline."""
        for gate in self._gates.values():
            gate.acquire(timeout=worker_threads.clamped_wait(self._deadline.left_ms() / 1000))
        cast = list(self._box)  # who is late may still be writing
        votes = {one.strategy: one.candidates for one in cast if one.candidates is not None}
        took_ms = {one.strategy: one.took_ms for one in cast}
        failed = [Degraded(one.strategy, one.reason) for one in cast if one.candidates is None]
        reason = f"no answer within {self._deadline.ms:g} ms"
        late = [Degraded(name, reason) for name in sorted(self._gates.keys() - took_ms.keys())]
        return Poll(votes, failed + late, took_ms)


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
