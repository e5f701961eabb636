"""How long may it take? One deadline for all stages, threads to wait for no longer than that, and a breaker.

Threads wait for work, because starting one for each piece would cost a quick search a tenth of its time.
They are daemons: a finished command never waits for one that hangs. A bare lock tells the end of a task:
events take several times as long to wake somebody.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

from concord.core.errors import Unavailable, reason_of

T = TypeVar("T")
Work = Callable[[], None]  # raises nothing: there is nobody to catch it

MAX_IDLE = 8  # threads; a burst of searches may need more, which end when it is over
LATE_S = 5.0  # without an answer count as a failure; more where search.deadline_ms allows more
FAILURES = 3  # in a row open the breaker: one may be a server that restarts, three are an outage


class Deadline:
    """The end of the time that something may take, which begins when this is made."""

    __slots__ = ("_ends", "ms")

    def __init__(self, ms: float) -> None:
        self.ms = ms
        self._ends = time.perf_counter() + ms / 1000

    def left_ms(self) -> float:
        """Return how many milliseconds are left; 0 once it has passed."""
        return max(0.0, self._ends - time.perf_counter()) * 1000


class Stages:
    """How long each stage of a search took: `with stages("fuse"): …`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.ms: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        began = time.perf_counter()
        yield
        self.ms[name] = (time.perf_counter() - began) * 1000

    def total_ms(self) -> float:
        """Return how long the search has taken so far."""
        return (time.perf_counter() - self._began) * 1000


class WorkerThreads:
    """Does pieces of work at once, each on a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # What each thread without work waits for. The one that worked last comes first: its memory is warm,
        # and work that goes round all of them leaves some in each.
        self._idle: list[SimpleQueue[Work]] = []

    def start(self, work: Work) -> None:
        """Have a piece of work done, without waiting for it."""
        with self._lock:
            given = self._idle.pop() if self._idle else None
        if given is None:  # first: what no thread can be started for must not wait for one
            given = SimpleQueue()
            threading.Thread(target=self._live, args=(given,), daemon=True).start()
        given.put(partial(copy_context().run, work))

    def _live(self, given: SimpleQueue[Work]) -> None:
        while True:
            given.get()()
            with self._lock:
                if len(self._idle) >= MAX_IDLE:
                    return
                self._idle.append(given)


_workers = WorkerThreads()


def _start_anew() -> None:
    """Forget the threads of the process that this one was forked from: they are not here."""
    global _workers
    _workers = WorkerThreads()


os.register_at_fork(after_in_child=_start_anew)


class Task(Generic[T]):
    """A piece of work that another thread does meanwhile."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._value: T | None = None
        self._error: Exception | None = None
        self._done = threading.Lock()
        self._done.acquire()
        self.took_ms = 0.0
        self._began = time.perf_counter()
        _workers.start(self._run)

    def result(self, budget_ms: float = math.inf) -> T | None:
        """Return the result; None if it takes longer than the budget: the work then goes on alone."""
        if not self._done.acquire(timeout=max(0.0, min(budget_ms / 1000, threading.TIMEOUT_MAX))):
            return None
        self._done.release()  # for whoever asks again
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._work()
        except Exception as error:  # raised again by whoever waits
            self._error = error
        self.took_ms = (time.perf_counter() - self._began) * 1000
        self._done.release()


def run_within(work: Callable[[], T], budget_ms: float) -> T | None:
    """Return the result of some work; None if it takes longer than the budget: it then goes on alone."""
    return Task(work).result(budget_ms)


class Breaker:
    """Stops asking a part that keeps failing, for a while.

    A few failures in a row open it; then searches answer from words at once, and say when meaning is tried
    again. After a delay one call tries, and closes it or leaves it open. A call that takes longer than
    `late_s` has failed, whatever it returns. An outage is logged once, when it begins.
    """

    def __init__(
        self, what: str, *, retry_s: float, late_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._retry_s, self._late_s, self._clock = what, retry_s, late_s, clock
        self._lock = threading.Lock()
        self._started: dict[object, float] = {}  # calls under way
        self._failures = 0
        self._reason = ""
        self._retry_at = 0.0
        self._trial: object | None = None  # the call that may find out whether it works again

    def call(self, work: Callable[[], T]) -> T:
        """Return what a piece of work returns."""
        call, reason = object(), ""
        with self._lock:
            self._admit(call)
        try:
            return work()
        except Exception as error:
            reason = reason_of(error)
            raise
        finally:
            with self._lock:
                self._end(call, reason)

    def close(self) -> None:
        """Count no call that is under way: one that ends late finds everything closed, which is no outage."""
        with self._lock:
            self._started.clear()

    def _admit(self, call: object) -> None:
        now = self._clock()
        for late in [other for other, began in self._started.items() if now - began > self._late_s]:
            self._end(late)
        if self._failures >= FAILURES:
            if self._trial or now < self._retry_at:
                when = "right now" if self._trial else f"in {self._retry_at - now:.0f} s"
                raise Unavailable(
                    f"{self._what} has failed {self._failures} times in a row ({self._reason});"
                    f" it is tried again {when}",
                    hint="until then answers come from words alone",
                )
            self._trial = call
        self._started[call] = now

    def _end(self, call: object, reason: str = "") -> None:
        """Count a call as failed, as late, or as a success, which ends an outage."""
        began = self._started.pop(call, None)
        if began is None:  # it was given up already
            return
        self._trial = None if call is self._trial else self._trial
        now = self._clock()
        if not reason and now - began > self._late_s:
            reason = f"no answer within {self._late_s:g} s"
        if not reason:
            self._failures = 0
            return
        self._failures += 1
        self._reason, self._retry_at = reason, now + self._retry_s
        if self._failures == 1:
            import logging  # 5 ms, for those who need it

            message = "%s is unavailable, answering from words alone: %s"
            logging.getLogger(__name__).warning(message, self._what, reason)
