"""Whose stores lie in the same folder? Each organisation has a file there, which is called after it."""

from __future__ import annotations

import os


def organisations_beside(path: str) -> list[str]:
    """Return the names of the organisations whose files lie in the folder of a path."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1]
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(one.removesuffix(ending) for one in found if one.endswith(ending) and one != name)
