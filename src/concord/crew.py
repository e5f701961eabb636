"""Threads that wait for work, because starting one for each piece costs a quick search a tenth of its time.

They are daemons: a finished command never waits for one that hangs, and another takes its place.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

MOST_IDLE = 8  # a burst of searches may need more; they end when it is over

Work = Callable[[], None]  # raises nothing: there is nobody to tell


class Crew:
    """Does pieces of work at once, each on a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        self._handed: queue.SimpleQueue[Work] = queue.SimpleQueue()

    def do(self, work: Work) -> None:
        """Have a piece of work done, without waiting for it."""
        with self._lock:
            is_somebody_idle = self._idle > 0
            self._idle -= is_somebody_idle
        if is_somebody_idle:
            self._handed.put(work)
        else:
            threading.Thread(target=self._live, args=(work,), daemon=True).start()

    def _live(self, work: Work) -> None:
        work()
        while self._may_rest():
            self._handed.get()()

    def _may_rest(self) -> bool:
        with self._lock:
            if self._idle >= MOST_IDLE:
                return False
            self._idle += 1
            return True


_crew = Crew()


def do(work: Work) -> None:
    """Have a piece of work done by the crew of this process."""
    _crew.do(work)


def _start_anew() -> None:
    """Forget the crew of the process that this one was forked from: its threads are not here."""
    global _crew
    _crew = Crew()


os.register_at_fork(after_in_child=_start_anew)
