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
from concurrent.futures import wait as wait_for_futures
from contextlib import suppress
from typing import NamedTuple

from concord.core.errors import Action, Hint
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
    ticks: int = 0  # how many steps there have been, in all stages
    at: float = 0.0  # when it was taken, by time.monotonic

    def __str__(self) -> str:
        return f"{self.stage}: {self.done}" + (f"/{self.total}" if self.total else "")

    @property
    def is_work(self) -> bool:
        """Whether something was done, other than to wait."""
        return self.stage != WAITING


class Extent(NamedTuple):
    """Which sources some work is about: one of an organisation's, or all of them."""

    org: str
    source: str | None = None  # its path, or its id if it has no path; None means all

    def meets(self, other: Extent) -> bool:
        """Whether two extents share a source: then one job waits for the other."""
        return self.org == other.org and (None in (self.source, other.source) or self.source == other.source)


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
        self._behind = behind
        self._lock = threading.Lock()
        self._begun = False
        self._cancelled = False
        self.why_stopped = ENDING
        self._thread = threading.Thread(target=self._run, name=f"job {plan.label}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether there is no result yet."""
        return not self.result.done()

    @property
    def is_yet_to_begin(self) -> bool:
        """Whether it has not begun, so that it will look at all that has been written until now."""
        with self._lock:
            return not (self._begun or self._cancelled)

    @property
    def is_cancelled(self) -> bool:
        """Whether it was asked to stop."""
        with self._lock:
            return self._cancelled

    def cancel(self, why: str = ENDING) -> None:
        """Ask the work to stop at its next step, with what it waits for unless others want that."""
        with self._lock:
            self._cancelled, self.why_stopped, behind = True, why, self._behind
        if behind and not behind.waiting:
            behind.cancel(why)

    def wait(self, seconds: float) -> None:
        """Wait for the result, if it comes by then."""
        wait_for_futures([self.result], seconds)

    def join(self, seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        self.result.set_running_or_notify_cancel()
        try:
            self._take_turn()
            self.result.set_result(self.plan.work(self._progress))
        except BaseException as fault:  # told to whoever waits for the result
            self.result.set_exception(fault)

    def _take_turn(self) -> None:
        if self._behind:
            wait_for_futures([self._behind.result])
        with self._lock:
            self._behind = None
            if self._cancelled:
                raise Cancelled
            self._begun = True

    def _progress(self, stage: str, done: int, total: int | None) -> None:
        if self._cancelled:
            raise Cancelled
        self.step = Step(stage, done, total, self.step.ticks + 1, time.monotonic())


Report = Callable[[int, Job], Awaitable[None]]  # takes a growing number, and the job that made a step


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
            ended = [job for job in self._jobs if not job.is_running][-MOST_ENDED:]
            self._jobs = [job for job in self._jobs if job.is_running or job in ended]
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

    def running(self) -> list[Job]:
        """Return what has not ended, oldest first."""
        with self._lock:
            return [job for job in self._jobs if job.is_running]

    def running_for(self, org: str) -> list[Job]:
        """Return what has not ended of an organisation's work, oldest first."""
        return [job for job in self.running() if job.plan.extent.org == org]

    def stop(self, extent: Extent, why: str) -> None:
        """Stop the work on one source that can be done again; work on all sources goes on."""
        for job in self.running():
            if job.plan.extent == extent and not job.plan.is_once:
                job.cancel(why)

    def moving(self, job: Job) -> Job:
        """Return the job whose progress to report: this one, or another that it waits for."""
        extent = job.plan.extent
        others = [other for other in self.running() if other is not job and other.plan.extent.meets(extent)]
        return max([job, *others], key=lambda other: (other.step.is_work, other.step.at))

    def close(self, seconds: float) -> bool:
        """Cancel everything and wait a little; return whether all of it has stopped."""
        for job in self.running():
            job.cancel()
        for job in self.running():
            job.join(seconds)
        return not self.running()

    async def wait(self, job: Job, seconds: float, report: Report, every: float = REPORT_EVERY_S) -> bool:
        """Wait for a job, reporting its steps; return whether it has ended.

        When the caller is cancelled and nobody else waits, so is the job.
        """
        job.waiting += 1
        try:
            await asyncio.wait_for(self._reported(job, report, every), seconds)
        except TimeoutError:
            return not job.is_running
        except asyncio.CancelledError:
            if job.waiting == 1:
                job.cancel()
            raise
        finally:
            job.waiting -= 1
        return True

    async def _reported(self, job: Job, report: Report, every: float) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        job.result.add_done_callback(lambda _: _tell(loop, ended))
        # The present step of a job that is under way already is news to this caller.
        number, told = 0, Step()
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), every)
            moving = self.moving(job)
            if moving.step != told:
                number, told = number + 1, moving.step
                await report(number, moving)


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop is closed: the server has gone
        loop.call_soon_threadsafe(ended.set)
