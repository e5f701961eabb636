"""Runs to disturb, and what they must come to in the end."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from support.kb_process import assert_sound, database, state
from support.small_library import opened

FILES = 160


class Reference(NamedTuple):
    """A folder, what an undisturbed run makes of it, and how long that takes once the store is there."""

    folder: Path
    state: dict[str, Any]
    took_s: float


def wait_for_store(process: subprocess.Popen[str], path: Path, *, and_s: float = 0.0) -> None:
    """Wait until a run has begun to store things, and some time longer, or until it has ended."""
    while not path.exists() and process.poll() is None:
        wait(process, 0.002)
    wait(process, and_s)


def wait(process: subprocess.Popen[str], most_s: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=most_s)


def said_in_one_line(err: str) -> bool:
    """Whether a failure was told in a sentence and a hint, without a traceback."""
    error, *rest = [line for line in err.splitlines() if not line.startswith(("embedding", "indexing"))]
    return error.startswith("error: ") and len(rest) == 1 and rest[0].startswith("hint: ")


def completes(reference: Reference, home: Path) -> None:
    """Assert that what is left is sound and that the next sync makes it whole."""
    with opened(f"sqlite://{home}/data") as kb:
        is_known = bool(kb.sources())  # opening also finishes a store that was killed while it was made
        assert_sound(database(home))
        reports = kb.sync() if is_known else [kb.add(reference.folder)]
        assert [report.failed for report in reports] == [()]
    assert_sound(database(home))
    assert state(database(home)) == reference.state
