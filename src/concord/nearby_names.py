"""Which documents may be meant by a path that none has: those in such a folder, or with a like name."""

from __future__ import annotations

from collections.abc import Sequence

from concord.storage import Catalog
from concord.types import Filter

MOST_TOLD = 3
MOST_COMPARED = 20_000  # names: to compare more takes longer than to ask for a list
LEAST_ALIKE = 0.75  # of the letters of a name: redis.md is like rediss.md, not like readme.md


def paths_to_compare(catalog: Catalog) -> list[str]:
    """Return the paths of all documents, or none where there are too many of them."""
    if catalog.count_documents(Filter(include_superseded=True)) > MOST_COMPARED:
        return []
    return [document.path for document in catalog.documents()]


def inside(path: str, known: Sequence[str]) -> list[str]:
    """Return some documents of a folder; none if there is no such folder."""
    folder = f"{path.strip('/')}/"
    return [one for one in known if f"/{folder}" in f"/{one}"][:MOST_TOLD] if folder != "/" else []


def like(path: str, known: Sequence[str]) -> list[str]:
    """Return documents whose names are like the last part of a path, the likest first."""
    from difflib import get_close_matches

    by_name: dict[str, list[str]] = {}
    for one in known:
        by_name.setdefault(_name(one), []).append(one)
    near = get_close_matches(_name(path), by_name, MOST_TOLD, LEAST_ALIKE)
    return [one for name in near for one in by_name[name]][:MOST_TOLD]


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].casefold()
