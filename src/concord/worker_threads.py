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

from concord.call_limit import with_callers_limit

T = TypeVar("T")

MOST_IDLE = 8  # a burst of searches may need more; they end when it is over

Work = Callable[[], None]  # raises nothing: there is nobody to tell


def closed_gate() -> threading.Lock:
    """Return a closed gate: one thread waits by acquiring it, until another opens it by releasing it."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class _IdleWorker:
    """A thread without work: the gate that it waits at, and its next work."""

    def __init__(self) -> None:
        self.gate = closed_gate()
        self.work: Work


class WorkerThreads:
    """Does pieces of work at once, each on a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_IdleWorker] = []

    def start(self, work: Work) -> None:
        """Have a piece of work done, without waiting for it."""
        work = with_callers_limit(work)
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            threading.Thread(target=self._live, args=(work,), daemon=True).start()
        else:
            worker.work = work
            worker.gate.release()

    def _live(self, work: Work) -> None:
        worker = _IdleWorker()
        work()
        while self._may_rest(worker):
            worker.gate.acquire()  # closes it again: from now on the thread is not idle
            worker.work()

    def _may_rest(self, worker: _IdleWorker) -> bool:
        with self._lock:
            if len(self._idle) >= MOST_IDLE:
                return False
            self._idle.append(worker)
            return True


_workers = WorkerThreads()


def start(work: Work) -> None:
    """Have a piece of work done by the threads of this process."""
    _workers.start(work)


class Task(Generic[T]):
    """A piece of work that somebody else does meanwhile."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._outcome: tuple[T | None, Exception | None] = (None, None)
        self._done = closed_gate()
        start(self._run)

    def result(self, budget_ms: float = math.inf) -> T | None:
        """Return the result; None if it takes longer than the budget: the work then goes on alone.

        Raises:
            Exception: whatever the work raises in time.
        """
        if not self._done.acquire(timeout=clamped_wait(budget_ms / 1000)):
            return None
        self._done.release()  # it stays open for whoever asks again
        value, fault = self._outcome
        if fault is not None:
            raise fault
        return value

    def _run(self) -> None:
        try:
            self._outcome = (self._work(), None)
        except Exception as fault:  # raised again by whoever waits
            self._outcome = (None, fault)
        self._done.release()


def run_within(work: Callable[[], T], budget_ms: float) -> T | None:
    """Return the result of a piece of work; None if it takes longer than the budget: it then goes on alone.

    Raises:
        Exception: whatever the work raises in time.
    """
    return Task(work).result(budget_ms)


def clamped_wait(seconds: float) -> float:
    """Return the nearest time to this that a thread can be told to wait."""
    return max(0.0, min(seconds, threading.TIMEOUT_MAX))


def _start_anew() -> None:
    """Forget the threads of the process that this one was forked from: they are not here."""
    global _workers
    _workers = WorkerThreads()


os.register_at_fork(after_in_child=_start_anew)
