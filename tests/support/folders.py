"""Where embedders and rerankers are told that our directories are."""

from __future__ import annotations

from pathlib import Path

from concord.core.config import Paths

NOWHERE = Paths("", "", "")  # for what looks into none of them


def cached_in(folder: Path) -> Paths:
    """Return directories of which the cache is a folder."""
    return Paths(str(folder / "data"), str(folder), str(folder / "config"))
