"""Which known files were saved, if that is all that happened? Then a sync need not walk the whole source.

Notices name paths. A path that is neither indexed nor there any more (an editor's temporary file) is ignored;
an indexed file that is there was saved. Anything else takes a walk: a new or deleted file, a folder, an
ignore file. So does a folder that was moved away, because no notice names what was indexed below it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from typing import NamedTuple

from concord.files.ignore import IGNORE_FILES
from concord.files.walk import Found
from concord.index.sources import path_filter
from concord.store.contract import Catalog, Select
from concord.types import FileState, Filter, Source

MOST = 32  # paths; to look up more of them is no quicker than a walk


class Saved(NamedTuple):
    """A file that was saved, and what is stored of it."""

    found: Found
    state: FileState


def saved_files(
    source: Source, paths: Collection[str], catalog: Catalog, max_bytes: int
) -> list[Saved] | None:
    """Return the files that were saved; None where only a walk can tell what happened."""
    if source.kind != "directory" or not 0 < len(paths) <= MOST:
        return None
    saved = []
    for path in sorted(paths):
        relative = os.path.relpath(path, source.path).replace(os.sep, "/")
        document = next(iter(list(catalog.documents(Select(path=source.path_of(relative))))), None)
        status = _status(path)
        if document is None and status is None and not _mattered(relative, source, catalog):
            continue
        if document is None or status is None or not _is_readable(status, max_bytes):
            return None
        saved.append(Saved(Found.of(source.path or "", relative, status), document.file_state()))
    return saved


def _mattered(relative: str, source: Source, catalog: Catalog) -> bool:
    """Whether a path that is gone mattered: a file of ignore rules, or a folder with documents below it."""
    if os.path.basename(relative) in IGNORE_FILES:
        return True
    below = path_filter(source.path_of(relative), is_folder=True)
    return catalog.count_documents(Filter(source_id=source.id, path=below, include_superseded=True)) > 0


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _is_readable(status: os.stat_result, max_bytes: int) -> bool:
    return stat.S_ISREG(status.st_mode) and 0 < status.st_size <= max_bytes
