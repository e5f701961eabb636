"""The processor time of a server on this machine, which does its work in processes of its own."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

from benchmarks.measure import Clock

_TICKS = os.sysconf("SC_CLK_TCK")


def clock_with_server(process: int) -> Clock:
    """Return a clock of the processor time of this process and of the server to which the other belongs."""
    return partial(_together, int(_status(process)[1]))


def _together(parent: int) -> float:
    """Add up: the parent of all the server's processes also counts those that have ended."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    living = sum(sum(map(int, _status(int(child))[11:13])) for child in children)
    return time.process_time() + (living + sum(map(int, _status(parent)[11:15]))) / _TICKS


def _status(process: int) -> list[str]:
    """Return what the kernel says of a process from its state on: parent at 1, processor times from 11."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
