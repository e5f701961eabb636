"""The processor time of a server on this machine, which does its work in processes of its own."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from benchmarks.measure import TICKS, Clock, process_status


def clock_with_server(process: int) -> Clock:
    """Return a clock of the processor time of this process and of the server to which the other belongs."""
    return partial(_together, int(process_status(process)[1]))


def _together(parent: int) -> float:
    """Add up: the parent of all the server's processes also counts those that have ended."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    living = sum(sum(map(int, process_status(int(child))[11:13])) for child in children)
    return time.process_time() + (living + sum(map(int, process_status(parent)[11:15]))) / TICKS
