"""The threads of a search: they wait for work, and whoever gives them some waits no longer than it likes.

Starting a thread for each piece would cost a quick search a tenth of its time. They are daemons: a finished
command never waits for one that hangs, and another takes its place. Pieces are passed on by bare locks: the
standard library's queues take a millisecond to import, and its events several times as long to wake somebody.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from concord.patience import handed_on

T = TypeVar("T")

MOST_IDLE = 8  # a burst of searches may need more; they end when it is over

Work = Callable[[], None]  # raises nothing: there is nobody to tell


def closed_gate() -> threading.Lock:
    """Return what one thread waits at, by acquiring it, until another opens it, by releasing it."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class _Seat:
    """Where an idle thread waits, and what it is called for."""

    def __init__(self) -> None:
        self.gate = closed_gate()
        self.work: Work


class Crew:
    """Does pieces of work at once, each on a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Seat] = []

    def do(self, work: Work) -> None:
        """Have a piece of work done, without waiting for it."""
        work = handed_on(work)
        with self._lock:
            seat = self._idle.pop() if self._idle else None
        if seat is None:
            threading.Thread(target=self._live, args=(work,), daemon=True).start()
        else:
            seat.work = work
            seat.gate.release()

    def _live(self, work: Work) -> None:
        seat = _Seat()
        work()
        while self._may_rest(seat):
            seat.gate.acquire()  # which closes it behind the thread: it is not idle, so nobody calls it now
            seat.work()

    def _may_rest(self, seat: _Seat) -> bool:
        with self._lock:
            if len(self._idle) >= MOST_IDLE:
                return False
            self._idle.append(seat)
            return True


_crew = Crew()


def do(work: Work) -> None:
    """Have a piece of work done by the crew of this process."""
    _crew.do(work)


class Begun(Generic[T]):
    """A piece of work that somebody else does meanwhile."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: tuple[T | None, Exception | None] = (None, None)
        self._done = closed_gate()
        do(self._do)

    def result(self, budget_ms: float = math.inf) -> T | None:
        """Return what it comes to; None when it takes longer, and then nobody waits for it.

        Raises:
            Exception: whatever the work raises in time.
        """
        if not self._done.acquire(timeout=bearable(budget_ms / 1000)):
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


def bearable(seconds: float) -> float:
    """Return how long a thread can be told to wait."""
    return max(0.0, min(seconds, threading.TIMEOUT_MAX))


def _start_anew() -> None:
    """Forget the crew of the process that this one was forked from: its threads are not here."""
    global _crew
    _crew = Crew()


os.register_at_fork(after_in_child=_start_anew)
