"""Long work under a short call: indexing has a thread of its own, and a call waits for it only so long.

A call that runs out of time leaves the work running and says so. The same call made again is worked on after
that: whoever has written a file meanwhile wants it looked at, and work under way may have passed it already.
A call that is cancelled stops the work at the next file or batch, and what is stored by then stays: the next
one goes on from there.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from concord.core.errors import Action, Hint, Unavailable
from concord.core.protocols import WAITING, Progress
from concord.text.json_safe import JsonObject

ENDING = "the server is ending"
MOST_ENDED = 50  # jobs that are remembered after their end, for those who ask what came of them
REPORT_EVERY_S = 0.25  # often enough to be seen moving, seldom enough to cost nothing


class Cancelled(Exception):
    """Raised inside the work when it is cancelled. No KBError, so that no stage takes it for a fault."""


class Step(NamedTuple):
    """How far the work is."""

    stage: str = WAITING
    done: int = 0
    total: int | None = None

    def __str__(self) -> str:
        return f"{self.stage}: {self.done}" + (f"/{self.total}" if self.total else "")


class Extent(NamedTuple):
    """Which sources some work is about: one of an organisation's, or all of them."""

    org: str
    source: str | None = None  # its path, or its id if it has no path; None means all


class Plan(NamedTuple):
    """Work to be done: two calls with the same key want the same."""

    key: Hashable
    label: str
    work: Callable[[Progress], JsonObject]
    extent: Extent
    doing: str = "indexing"
    is_once: bool = False  # a repeated call joins work that has begun: doing it again would change nothing
    if_stopped: str = Hint(Action.SYNC, "nothing that was stored is lost; {sync} goes on from there")


class Job:
    """Work that waits for its turn, is running, or has just ended."""

    def __init__(self, plan: Plan, behind: Job | None = None) -> None:
        self.plan = plan
        self.id = secrets.token_hex(8)
        self.step = Step()
        self.result: Future[JsonObject] = Future()
        self.waiting = 0  # how many calls wait for the result
        self.is_cancelled = False
        self._why_stopped = ENDING
        self._begun = False
        self.thread = threading.Thread(
            target=self._run, args=(behind,), name=f"job {plan.label}", daemon=True
        )
        self.thread.start()

    @property
    def is_running(self) -> bool:
        """Whether there is no result yet."""
        return not self.result.done()

    @property
    def is_yet_to_begin(self) -> bool:
        """Whether it has not begun, so that it will look at all that has been written until now."""
        return not (self._begun or self.is_cancelled)

    @property
    def stopped(self) -> Unavailable:
        """What is said to those who wait for work that was stopped."""
        message = f"{self.plan.doing} {self.plan.label} was stopped: {self._why_stopped}"
        return Unavailable(message, hint=self.plan.if_stopped)

    def outcome(self) -> JsonObject:
        """Return the result of work that has ended.

        Raises:
            Unavailable: it was stopped.
        """
        try:
            return self.result.result(0)
        except Cancelled as fault:
            raise self.stopped from fault

    def cancel(self, why: str = ENDING) -> None:
        """Ask the work to stop at its next step."""
        self._why_stopped, self.is_cancelled = why, True

    def _run(self, behind: Job | None) -> None:
        try:
            if behind:
                behind.thread.join()
            self._begun = True
            if self.is_cancelled:
                raise Cancelled
            self.result.set_result(self.plan.work(self._progress))
        except BaseException as fault:  # told to whoever waits for the result
            self.result.set_exception(fault)

    def _progress(self, stage: str, done: int, total: int | None) -> None:
        if self.is_cancelled:
            raise Cancelled
        self.step = Step(stage, done, total)


Report = Callable[[int, Step], Awaitable[None]]  # takes a growing number


class Jobs:
    """The work that is running or waits for its turn, and what ended last."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._lock = threading.Lock()

    def start_or_join(self, plan: Plan) -> Job:
        """Return a job for the plan: one that has not begun yet, or a new one that waits for its predecessor.

        If the plan is to be done only once (`is_once`), a job that has begun is joined, too.
        """
        with self._lock:
            forgotten = [job for job in self._jobs if not job.is_running][:-MOST_ENDED]
            self._jobs = [job for job in self._jobs if job not in forgotten]
            alike = (job for job in reversed(self._jobs) if job.is_running and job.plan.key == plan.key)
            last = next(alike, None)
            if last and (last.is_yet_to_begin or (plan.is_once and not last.is_cancelled)):
                return last
            self._jobs.append(Job(plan, last))
            return self._jobs[-1]

    def known_to(self, org: str) -> list[Job]:
        """Return an organisation's work, oldest first: what is running and what ended last."""
        with self._lock:
            return [job for job in self._jobs if job.plan.extent.org == org]

    def running(self, org: str | None = None) -> list[Job]:
        """Return what has not ended, oldest first, of one organisation or of all."""
        with self._lock:
            return [job for job in self._jobs if job.is_running and org in (None, job.plan.extent.org)]

    def stop(self, extent: Extent, why: str) -> None:
        """Stop the work on one source that can be done again; work on all sources goes on."""
        for job in self.running():
            if job.plan.extent == extent and not job.plan.is_once:
                job.cancel(why)

    def close(self, seconds: float) -> bool:
        """Cancel everything and wait a little; return whether all of it has stopped."""
        for job in self.running():
            job.cancel()
        for job in self.running():
            job.thread.join(seconds)
        return not self.running()

    async def wait(self, job: Job, seconds: float, report: Report | None = None) -> bool:
        """Wait for a job, reporting its steps; return whether it has ended.

        When the caller is cancelled and nobody else waits, so is the job.
        """
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        job.result.add_done_callback(lambda _: _tell(loop, ended))
        # The present step of a job that is under way already is news to this caller.
        number, told, until = 0, Step(), time.monotonic() + seconds
        job.waiting += 1
        try:
            while not ended.is_set() and (left := until - time.monotonic()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), min(left, REPORT_EVERY_S))
                if report and job.step != told:
                    number, told = number + 1, job.step
                    await report(number, told)
        except asyncio.CancelledError:
            if job.waiting == 1:
                job.cancel()
            raise
        finally:
            job.waiting -= 1
        return not job.is_running


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop is closed: the server has gone
        loop.call_soon_threadsafe(ended.set)
