"""Where do relative paths begin? In the folder of the process, or in that of the client it works for.

An engine works for clients in many folders at once, and a process has one. Whoever works for a client says
so once; threads that carry the context on see the client's folder, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_folder: ContextVar[str] = ContextVar("folder", default="")  # empty: the process's own


def placed(path: str | os.PathLike[str]) -> str:
    """Return a path that begins where the client is; an absolute one stays."""
    return os.path.join(_folder.get(), path)


@contextmanager
def working_in(folder: str) -> Iterator[None]:
    """Let relative paths begin in this folder, in the block and in what it calls."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)
