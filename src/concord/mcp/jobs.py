"""Long work under a short call: indexing has a thread of its own, and a call waits for it only so long.

A call that runs out of time leaves the work running and says so; the same call made again joins it. A call
that is cancelled stops the work at the next file or batch, and what is stored by then stays: the next one
goes on from there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from concord.protocols import Progress
from concord.types import Json

JsonObject = dict[str, Json]
REPORT_EVERY_S = 0.25  # often enough to be seen moving, seldom enough to cost nothing


class Cancelled(Exception):
    """Raised inside the work when nobody wants it any more. No KBError: no stage may take it for a fault."""


class Step(NamedTuple):
    """How far the work is."""

    stage: str = "waiting"
    done: int = 0
    total: int | None = None
    ticks: int = 0  # grows with every step, whatever the stage counts


Report = Callable[[Step], Awaitable[None]]


class Plan(NamedTuple):
    """Work to be done: two calls with the same key want the same."""

    key: Hashable
    label: str
    work: Callable[[Progress], JsonObject]


class Job:
    """Work that is running, or has ended and not been told to its callers yet."""

    def __init__(self, plan: Plan) -> None:
        self.label = plan.label
        self.step = Step()
        self.result: Future[JsonObject] = Future()
        self.waiting = 0
        self._cancelled = threading.Event()
        self._plan = plan
        self._thread = threading.Thread(target=self._run, name=f"job {plan.label}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether there is no result yet."""
        return not self.result.done()

    def cancel(self) -> None:
        """Ask the work to stop at its next step."""
        self._cancelled.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        self.result.set_running_or_notify_cancel()
        try:
            self.result.set_result(self._plan.work(self._progress))
        except BaseException as fault:  # told to whoever waits for the result
            self.result.set_exception(fault)

    def _progress(self, stage: str, done: int, total: int | None) -> None:
        if self._cancelled.is_set():
            raise Cancelled
        self.step = Step(stage, done, total, self.step.ticks + 1)


class Jobs:
    """The work that is running."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Job] = {}
        self._lock = threading.Lock()

    def start_or_join(self, plan: Plan) -> Job:
        """Return the job with the plan's key, started now if it is not running."""
        with self._lock:
            self._running = {key: job for key, job in self._running.items() if job.is_running}
            if plan.key not in self._running:
                self._running[plan.key] = Job(plan)
            return self._running[plan.key]

    def running(self) -> list[Job]:
        """Return what is still running."""
        with self._lock:
            return [job for job in self._running.values() if job.is_running]

    def close(self, seconds: float) -> bool:
        """Cancel everything and wait a little; return whether all of it has stopped."""
        for job in self.running():
            job.cancel()
        for job in self.running():
            job.join(seconds)
        return not self.running()


async def wait(job: Job, seconds: float, report: Report, every: float = REPORT_EVERY_S) -> bool:
    """Wait for a job, reporting its steps; return whether it has ended.

    When the caller is cancelled and nobody else waits, so is the job.
    """
    job.waiting += 1
    try:
        await asyncio.wait_for(_reported(job, report, every), seconds)
    except TimeoutError:
        return not job.is_running
    except asyncio.CancelledError:
        if job.waiting == 1:
            job.cancel()
        raise
    finally:
        job.waiting -= 1
    return True


async def _reported(job: Job, report: Report, every: float) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    job.result.add_done_callback(lambda _: _tell(loop, ended))
    told = 0  # of a job that is under way already, its present step is news to this caller
    while not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), every)
        if job.step.ticks > told:
            told = job.step.ticks
            await report(job.step)


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop is closed: the server has gone
        loop.call_soon_threadsafe(ended.set)
