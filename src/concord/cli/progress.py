"""How far long work has come: a bar at a terminal, a line now and then elsewhere. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from concord.cli import output
from concord.core.protocols import WAITING

if TYPE_CHECKING:
    import rich.progress

PATIENCE_S = 0.5  # work that is done sooner needs no bar, and then rich is not even imported
LINE_EVERY_S = 10.0
STAGES = {
    WAITING: "waiting for another sync of this source, seconds",
    "index": "reading files",
    "embed": "embedding chunks",
    "copy": "copying documents",
    "moving": "copying vectors",
    "cache": "copying the embedding cache",
    "verify": "comparing",
    "timing": "timing each mode",
    "replay": "trying queries",
    "links": "finding links",
    "words": "indexing words",
    "vectors": "checking vectors",
    "shrink": "giving back free space",
}


class Meter(Protocol):
    """Takes note of progress until it is closed."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Note how far a stage has come."""
        ...

    def close(self) -> None:
        """Clear away what was drawn."""
        ...


@contextmanager
def progress_shown() -> Iterator[Meter]:
    """Show the progress of the work in this block."""
    meter: Meter = Bar() if output.is_terminal(sys.stderr) else Lines()
    try:
        yield meter
    finally:
        meter.close()


class Bar:
    """A bar for each stage, drawn over itself and wiped at the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._drawn: rich.progress.Progress | None = None
        self._tasks: dict[str, rich.progress.TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Draw a stage, once the work has lasted long enough to be worth it."""
        if self._drawn is None:
            if self._clock() - self._began < PATIENCE_S:
                return
            self._drawn = _start_drawing()
        if stage not in self._tasks:
            self._tasks[stage] = self._drawn.add_task(STAGES.get(stage, stage), total=total)
        self._drawn.update(self._tasks[stage], completed=done, total=total)

    def close(self) -> None:
        """Wipe the bars."""
        if self._drawn is not None:
            self._drawn.stop()


class Lines:
    """A plain line every few seconds, for logs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = clock()
        self._begun: dict[str, tuple[float, int]] = {}  # when each stage was first told of, how far

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say how far it is and how long it will take, unless that was said a moment ago."""
        now = self._clock()
        began, before = self._begun.setdefault(stage, (now, done))
        if now - self._said < LINE_EVERY_S:
            return
        self._said = now
        line = f"{STAGES.get(stage, stage)}: {done:,}"
        if total:
            line += f" of {total:,}"
            if before < done < total and now > began:
                line += f", {_about((total - done) * (now - began) / (done - before))} left"
        output.talk(line)

    def close(self) -> None:
        """Nothing was drawn."""


def _about(seconds: float) -> str:
    """Return how long something takes, no finer than anybody can foretell."""
    if seconds < 90:
        return f"about {max(10, round(seconds, -1)):.0f} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 100 else f"about {seconds / 3600:.1f} h"


def _start_drawing() -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    drawn = Progress(*columns, console=Console(stderr=True), transient=True)
    drawn.start()
    return drawn
