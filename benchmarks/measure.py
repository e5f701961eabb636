"""How a figure is taken, ours and its baseline in turn in one run, and the row of the table that it becomes.

Time is processor time where work is compared, because that hardly changes with what else a machine does, and
elapsed time where somebody waits for an answer. Each is the median of many.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

SMALL = "KB_BENCH_SMALL"  # when it is set, all is done with sizes of which figures mean nothing
TICKS = os.sysconf("SC_CLK_TCK")  # in which the kernel counts processor time, a second
KB = str(Path(sys.executable).with_name("kb"))  # the installed command


class Cost(NamedTuple):
    """What something took, in seconds."""

    cpu: float
    elapsed: float


Size = TypeVar("Size")


def is_small() -> bool:
    """Return whether this run is only to show that benchmarks work."""
    return bool(os.environ.get(SMALL))


def sized(full: Size, small: Size) -> Size:
    """Return the size that a figure is taken at, or in a small run one that takes no time."""
    return small if is_small() else full


Work = Callable[[], object]
Clock = Callable[[], float]


def cost_of(work: Work, processor: Clock = time.process_time) -> Cost:
    """Do it in this process, with all threads it starts, and return what it took."""
    started, cpu_started = time.perf_counter(), processor()
    work()
    return Cost(processor() - cpu_started, time.perf_counter() - started)


def await_codes() -> None:
    """Wait for the codes that earlier searches have begun to have made."""
    from concord.store.sqlite.in_memory import THREAD  # late: few figures need it

    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


def command_cost(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Run a command to its end and return what it and its children took."""
    started = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=dict(environment), stdin=quiet, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started)


def processor_s(pid: int) -> float:
    """Return how long processors have worked for a process: what a busy machine does not change."""
    return sum(map(int, process_status(pid)[11:13])) / TICKS


def process_status(pid: int) -> list[str]:
    """Return what the kernel says of a process from its state on: parent at 1, processor times from 11."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def together(costs: Sequence[Cost]) -> Cost:
    """Return what all of them took."""
    return Cost(sum(cost.cpu for cost in costs), sum(cost.elapsed for cost in costs))


def in_turn(rounds: int, works: Mapping[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
    """Take each cost once a round, in an order that changes, so that no one always comes first."""
    costs: dict[str, list[Cost]] = {name: [] for name in works}
    names = list(works)
    for _ in range(rounds):
        for name in names:
            costs[name].append(works[name]())
        names.append(names.pop(0))
    return costs


def cpu_ms(costs: Iterable[Cost]) -> float:
    """Return the median processor time."""
    return median(cost.cpu for cost in costs) * 1000


def mean_cpu_ms(costs: Sequence[Cost]) -> float:
    """Return the mean processor time: what a core can do in an hour, and right for clocks of coarse steps."""
    return together(costs).cpu / len(costs) * 1000


def elapsed_ms(costs: Iterable[Cost]) -> float:
    """Return the median elapsed time."""
    return median(cost.elapsed for cost in costs) * 1000


def p95_ms(costs: Iterable[Cost]) -> float:
    """Return the elapsed time that 95 of 100 stay under."""
    ordered = sorted(cost.elapsed for cost in costs)
    return ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)] * 1000


def quick_environment(**more: str) -> dict[str, str]:
    """Return our environment for commands that are timed: they must find their bytecode, and may write it."""
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**plain, **more}


class Row(NamedTuple):
    """One figure beside its baseline."""

    what: str
    ours: str
    baseline: str = ""
    ratio: float | None = None
    target: str = ""
    is_met: bool | None = None  # None: nothing was promised, or nothing could be measured


def at_most(what: str, ours: str, baseline: str, ratio: float, limit: float) -> Row:
    """Return a row whose ratio must not be higher."""
    return Row(what, ours, baseline, ratio, f"≤ {limit:g}", ratio <= limit)


def at_least(what: str, ours: str, baseline: str, ratio: float, limit: float) -> Row:
    """Return a row whose ratio must not be lower."""
    return Row(what, ours, baseline, ratio, f"≥ {limit:g}", ratio >= limit)


def absent(what: str, why: str) -> Row:
    """Return a row for what could not be measured here."""
    return Row(what, f"not measured: {why}")


def milliseconds(value: float) -> str:
    """Return a time for the table."""
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


HEADS = ("what", "ours", "baseline", "ratio", "target", "")


def table(rows: Sequence[Row]) -> str:
    """Return rows in columns."""
    cells = [HEADS, *map(_cells, rows)]
    # What could not be measured says why, at any length, and must not widen the column.
    widths = [max(len(row[at]) for row in cells if row[2] or at == 0) for at in range(len(HEADS))]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    verdict = {True: "ok", False: "MISS", None: ""}[row.is_met]
    return (row.what, row.ours, row.baseline, ratio, row.target, verdict)
