"""Does the file still say what was indexed? Size and time tell as a rule, the content where those differ.

A file that is gone is taken for deleted only where its source is still there: if that is out of reach too (a
disk that is not mounted, also where its empty folder is left; a knowledge base filled on another machine),
nothing is known.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from concord.types import Document, Freshness, Source

if TYPE_CHECKING:
    from concord.files.walk import Found


MAX_HASHED = 1_000_000  # bytes; a larger file whose stat changed is taken as changed, to answer in time
GONE = (FileNotFoundError, NotADirectoryError)


class Files:
    """The files behind the documents of one answer, each looked at once.

    `memo` returns what was written down of a source, by its id: if a file is gone, which disk it was on.
    """

    def __init__(self, sources: Sequence[Source], memo: Callable[[str], str]) -> None:
        self._sources = {source.id: source for source in sources}
        self._memo = memo
        self._stats: dict[str, os.stat_result | None] = {}  # by document; None where there is no file
        self._is_mounted: dict[str, bool] = {}  # by source
        self.answers = 0  # how often the disk has answered

    def knows(self, document: Document) -> bool:
        """Whether a document is of one of the sources."""
        return document.source_id in self._sources

    def needs_no_disk(self, document: Document) -> bool:
        """Whether what has become of a document's file is known without the disk."""
        source = self._sources[document.source_id]
        if source.path is None:
            return True
        if document.id not in self._stats:
            return False
        status = self._stats[document.id]
        return source.id in self._is_mounted if status is None else not _is_read(document, status)

    def is_deleted(self, document: Document) -> bool:
        """Whether a document had a file that is gone while its source is still there; never opens a file."""
        source = self._sources[document.source_id]
        is_gone = source.path is not None and self._stat(document) is None and self._has_root(source)
        self.answers += 1
        return is_gone

    def freshness(self, document: Document) -> Freshness | None:
        """Return what has become of a document's file; None where its whole source is out of reach."""
        source = self._sources[document.source_id]
        status = self._stat(document)
        if source.path is None:
            return "fresh"
        if status is None:
            return "deleted" if self._has_root(source) else None
        state = _compared(document, source.file_of(document.path) or "", status)
        self.answers += 1
        return state

    def _stat(self, document: Document) -> os.stat_result | None:
        if document.id not in self._stats:
            path = self._sources[document.source_id].file_of(document.path)
            self._stats[document.id] = None if path is None else _stat(path)
        return self._stats[document.id]

    def _has_root(self, source: Source) -> bool:
        if source.id not in self._is_mounted:
            self._is_mounted[source.id] = self._is_within_reach(source)
        return self._is_mounted[source.id]

    def _is_within_reach(self, source: Source) -> bool:
        from concord.files.state import (
            is_elsewhere,
            read_memo,  # late: most answers meet no file that is gone
            root_folder,
        )

        return os.path.isdir(root_folder(source)) and not is_elsewhere(
            source, read_memo(self._memo(source.id))
        )


def _stat(path: str) -> os.stat_result | None:
    """Return a file's state; None if it is gone, an empty state if it cannot be looked at."""
    try:
        return os.lstat(path)
    except GONE:
        return None
    except OSError:
        return os.stat_result((0,) * 10)  # size 0, which no indexed file has


def _is_read(document: Document, now: os.stat_result) -> bool:
    """Whether only its content tells if a file has changed."""
    if now.st_size != document.size or document.size > MAX_HASHED:
        return False
    is_same = storable_ns(now.st_mtime_ns) == document.mtime_ns
    return not is_same or may_be_another(now.st_ctime_ns, document.indexed_at)


def _compared(document: Document, path: str, now: os.stat_result) -> Freshness:
    if now.st_size != document.size:
        return "changed"
    since_indexed = storable_ns(now.st_mtime_ns) - document.mtime_ns
    if not _is_read(document, now):
        return "fresh" if since_indexed in (0, UNSETTLED_NS) else "changed"
    import hashlib  # 3 ms, which most answers need not pay

    from concord.files.opening import open_of_source

    try:
        with open(path, "rb", opener=open_of_source) as file:
            same = hashlib.sha256(file.read()).hexdigest() == document.file_hash
    except GONE:
        return "deleted"
    except (
        OSError
    ):  # forbidden, or a folder or a link by now: nothing there can be read as the document any more
        return "changed"
    return "fresh" if same else "changed"


RACY_NS = 2_000_000_000  # a file saved this shortly before it was read may be saved again with the same time
# Taken off the time that is remembered of such a file: the next sync looks inside, filters by date hold good.
UNSETTLED_NS = 1
# Files may claim to be of any year. Stores keep 64 bits of nanoseconds: September 1677 to April 2262.
_EARLIEST_NS, _LATEST_NS = -(2**63), 2**63 - 1


def may_be_another(ctime_ns: int, read_at: float) -> bool:
    """Whether a file with an unchanged size and modification time may still hold something else.

    A file that was moved there, unpacked or synchronised keeps its modification time; its ctime shows it.
    """
    return ctime_ns >= read_at * 1e9 - RACY_NS


def storable_ns(moment_ns: int) -> int:
    """Return a moment, or the nearest one that every store can keep.

    Both sides of a comparison have to go through it, so that equal moments stay equal.
    """
    return max(_EARLIEST_NS, min(moment_ns, _LATEST_NS))


def settled_mtime(found: Found) -> int:
    """Return the modification time to remember, which is not the file's while it may hide another save."""
    return found.mtime_ns if is_settled(found) else found.mtime_ns - UNSETTLED_NS


def is_settled(found: Found) -> bool:
    """Whether another save would show by the file's modification time."""
    return time.time_ns() - found.mtime_ns >= RACY_NS
