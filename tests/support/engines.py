"""Engines in tests: none by default, and none that stays."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

NO_ENGINE = "KB_ENGINE_START"  # `conftest` sets it to never
PATIENCE_S = 30.0


def our_variables() -> list[str]:
    """Return the variables that tests must not see, as they may be those of the machine's user."""
    kept = ("KB_ENGINE_", "KB_READER_", "KB_OCR_")  # which `conftest` sets
    return [name for name in os.environ if name.startswith("KB_") and not name.startswith(kept)]


def plain_environment() -> dict[str, str]:
    """Return the environment without them."""
    return {name: value for name, value in os.environ.items() if name not in our_variables()}


@contextmanager
def engines(below: Path, idle_s: float = 1.0) -> Iterator[None]:
    """Let programs start engines, which end soon after their last client; none is left of a home below."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(NO_ENGINE, "search")
        patched.setenv("KB_ENGINE_IDLE_S", str(idle_s))
        try:
            yield
            assert wait_until(lambda: not running(below)), "an engine stays"
        finally:
            for process in running(below):
                os.kill(process, signal.SIGKILL)


def running(below: Path) -> list[int]:
    """Return the processes of engines whose home is below a folder."""
    return [int(found.name) for found in Path("/proc").glob("[0-9]*") if _is_engine(found, str(below))]


def _is_engine(process: Path, below: str) -> bool:
    with suppress(OSError):  # it has just ended
        if b"concord.engine.server" in (process / "cmdline").read_bytes():
            return f"\0KB_HOME={below}/".encode() in b"\0" + (process / "environ").read_bytes()
    return False


def wait_until(is_so: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Wait for something to come true; return whether it has."""
    until = time.monotonic() + patience_s
    while not (found := is_so()) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(found)
