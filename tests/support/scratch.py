"""Folders in memory where there is such a place: waiting for a disk is no part of most promises."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

RAM = Path("/dev/shm")


def scratch() -> TemporaryDirectory[str]:
    """Return a folder that is gone once it is closed."""
    return TemporaryDirectory(dir=RAM if RAM.is_dir() else None)
