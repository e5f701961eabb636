"""Which file does a store's path lead to, and whose stores lie beside it?

Links, mounts and spelling give one file many paths. Each organisation has a file, which is called after it.
"""

from __future__ import annotations

import os


def file_identity(path: str) -> str:
    """Return what the system knows a file or a folder by; before there is one, its path without links."""
    try:
        found = os.stat(path)
    except OSError:
        return f"file {os.path.realpath(path)}"
    return f"file {found.st_dev}:{found.st_ino}"


def organisations_beside(path: str) -> list[str]:
    """Return the names of the organisations whose files lie in the folder of a path."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1]
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(other.removesuffix(ending) for other in names if other.endswith(ending) and other != name)
