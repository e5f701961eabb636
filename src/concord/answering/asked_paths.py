"""What does a path in a request stand for? People name files, folders and places on disk, engines globs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from concord.errors import NotFound
from concord.text.pattern import pattern
from concord.types import Source

MOST_NAMED = 4  # beginnings of paths shown to whoever has typed another
_WILDCARD = pattern(r"[*?]")


def asked_glob(path: str, sources: Sequence[Source], is_folder: Callable[[str], bool]) -> str:
    """Return the glob over citation paths that a path stands for; a folder is all that lies below it.

    Raises:
        NotFound: an absolute path that no source holds.
    """
    is_place = path.startswith(("/", "~/")) and "\0" not in path
    glob = _cited(os.path.expanduser(path), sources) if is_place else path
    while glob.startswith("./"):
        glob = glob[2:].lstrip("/")
    if path and glob in ("", "."):  # where everything is
        return "**"
    if glob.endswith("/"):
        return glob + "**"
    return f"{glob}/**" if not _WILDCARD.search(glob) and is_folder(glob) else glob


def known_beginnings(sources: Sequence[Source]) -> str:
    """Return how citation paths begin, as a hint for whoever has typed a path that fits none."""
    known = [source.prefix if source.kind == "file" else f"{source.prefix}/" for source in sources]
    shown = ", ".join(known[:MOST_NAMED]) + (" …" if len(known) > MOST_NAMED else "")
    return f"paths begin with {shown}" if known else "nothing is indexed yet"


def _cited(path: str, sources: Sequence[Source]) -> str:
    """Return the citation path, or the glob, of a place on disk."""
    from concord.sources import holder  # late: most paths are no places on disk

    place = _without_links(path)
    source = holder(place, sources)
    if source is None or source.path is None:
        raise NotFound(f"{path} is in no source", hint=known_beginnings(sources))
    inside = place[len(source.path) :].lstrip("/")
    return source.path_of(inside)


def _without_links(path: str) -> str:
    """Return a place on disk with links resolved, as in the paths of sources, up to the first wildcard."""
    wildcard = _WILDCARD.search(path)
    cut = path.rindex("/", 0, wildcard.start()) if wildcard else len(path.rstrip("/"))
    return os.path.realpath(path[:cut] or "/").rstrip("/") + path[cut:]
