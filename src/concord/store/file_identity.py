"""Which file does a path lead to? Links, mounts and spelling give one file many paths."""

from __future__ import annotations

import os


def file_identity(path: str) -> str:
    """Return what the system knows a file or a folder by; before there is one, its path without links."""
    try:
        found = os.stat(path)
    except OSError:
        return f"file {os.path.realpath(path)}"
    return f"file {found.st_dev}:{found.st_ino}"
