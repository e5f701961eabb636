"""What does a path or a name mean? A path begins where the client is; a name is that of a source.

An engine works for clients in many folders at once, and a process has one. Whoever works for a client says
so once; threads that carry the context on see the client's folder, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from concord.core.errors import Action, Hint, NotFound, joined
from concord.types import Source

SHORT_ID = 4  # characters of an id that are enough, if they fit only one

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


def find_source(name: str, sources: Sequence[Source]) -> Source:
    """Return the source with this name, id or path, which may be relative to where the program runs.

    Of an id the beginning is enough, if no other begins so.

    Raises:
        NotFound: there is none.
    """
    for source in sources:
        if name in (source.name, source.id, source.path):
            return source
    path = os.path.realpath(placed(os.path.expanduser(name))) if "\0" not in name else None
    for source in sources:
        if path is not None and path == source.path:
            return source
    begun = [source for source in sources if len(name) >= SHORT_ID and source.id.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    known = ", ".join(source.name for source in sources) or Hint(Action.ADD, "none yet: {add}")
    raise NotFound(f"there is no source called {name!r}", hint=joined(": ", "sources", known))


def holder(path: str | os.PathLike[str], sources: Sequence[Source]) -> Source | None:
    """Return the source that has this path for its root, else the innermost one that contains it."""
    place = os.fspath(path) + "/"
    holding = [
        source for source in sources if source.path and place.startswith(source.path.rstrip("/") + "/")
    ]
    return max(holding, key=lambda source: len(source.path or ""), default=None)
