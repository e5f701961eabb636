"""What has become of a source's files since they were indexed? Size and time tell as a rule, else content.

A file that is gone is taken for deleted only where its source is still there: if that is out of reach too (a
disk that is not mounted, a knowledge base filled on another machine), nothing is known. A disk that was
unmounted leaves an empty folder of the same name, so a folder that holds nothing at all is out of reach, too.

What a sync writes down for the next one is JSON, which a store keeps without reading it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from concord import __version__
from concord.core.errors import Action, Hint, Unreadable
from concord.types import Document, FileState, Freshness, Source

if TYPE_CHECKING:
    from concord.files.walk import Found

Entry = list[int | str]  # the state of a file, then why it holds no text

MAX_HASHED = 1_000_000  # bytes; a larger file whose stat changed is taken as changed, to answer in time
RACY_NS = 2_000_000_000  # a file saved this shortly before it was read may be saved again with the same time
# Taken off the time that is remembered of such a file: the next sync looks inside, filters by date hold good.
UNSETTLED_NS = 1
# Files may claim to be of any year. Stores keep 64 bits of nanoseconds: September 1677 to April 2262.
_EARLIEST_NS, _LATEST_NS = -(2**63), 2**63 - 1
_GONE = (FileNotFoundError, NotADirectoryError)


class Files:
    """The files behind the documents of one answer, each looked at once."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = {source.id: source for source in sources}
        self._stats: dict[str, os.stat_result | None] = {}  # by document; None where there is no file
        self._is_there: dict[str, bool] = {}  # by source

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
        return source.id in self._is_there if status is None else not _is_read(document, status)

    def is_deleted(self, document: Document) -> bool:
        """Whether a document had a file that is gone while its source is still there; never opens a file."""
        source = self._sources[document.source_id]
        return source.path is not None and self._stat(document) is None and self._has_root(source)

    def freshness(self, document: Document) -> Freshness | None:
        """Return what has become of a document's file; None where its whole source is out of reach."""
        source = self._sources[document.source_id]
        status = self._stat(document)
        if source.path is None:
            return "fresh"
        if status is None:
            return "deleted" if self._has_root(source) else None
        return _compared(document, source.file_of(document.path) or "", status)

    def _stat(self, document: Document) -> os.stat_result | None:
        """Return a file's state; None if it is gone, an empty state if it cannot be looked at."""
        if document.id not in self._stats:
            path, status = self._sources[document.source_id].file_of(document.path), None
            try:
                status = os.lstat(path) if path is not None else None
            except _GONE:
                pass
            except OSError:
                status = os.stat_result((0,) * 10)  # size 0, which no indexed file has
            self._stats[document.id] = status
        return self._stats[document.id]

    def _has_root(self, source: Source) -> bool:
        if source.id not in self._is_there:
            self._is_there[source.id] = _holds_anything(source)
        return self._is_there[source.id]


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
    try:
        return "fresh" if _hash(path) == document.file_hash else "changed"
    except _GONE:
        return "deleted"
    except OSError:  # forbidden, or a folder or a link by now: nothing there can be read as the document
        return "changed"


def _hash(path: str) -> str:
    import hashlib  # 3 ms, which most answers need not pay

    from concord.files.opening import open_of_source

    with open(path, "rb", opener=open_of_source) as file:
        return hashlib.sha256(file.read()).hexdigest()


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
    return found.mtime_ns if _is_settled(found) else found.mtime_ns - UNSETTLED_NS


def _is_settled(found: Found) -> bool:
    """Whether another save would show by the file's modification time."""
    return time.time_ns() - found.mtime_ns >= RACY_NS


class Memo(Struct, frozen=True):
    """What the last complete sync of a source saw, and how that sync, or one begun since, chunks files."""

    readers: list[str] = field(default_factory=list)  # the extractors that looked for text, see `textless`
    textless: dict[str, Entry] = field(default_factory=dict)  # by path within the source
    chunking: list[int] = field(default_factory=list, name="cut")  # what decides which chunks a file has
    # Anything indexed before this moment may be chunked in another way.
    chunking_since: float = field(default=0.0, name="cut_since")
    scans: list[str] = field(default_factory=list)  # files with pages that show text and hold none
    declares: bool = False  # some file says that it was replaced, or that it replaces another


def read_memo(written: str) -> Memo:
    """Return what a sync wrote down, without the mark behind it of whoever wants to remove the source."""
    return msgspec.json.decode(written.partition("\n")[0] or "{}", type=Memo)


def write_memo(memo: Memo) -> str:
    """Return a memo as a store keeps it."""
    return msgspec.json.encode(memo).decode()


class Textless:
    """The textless files of one source: those known before, and those met by this sync."""

    def __init__(self, memo: Memo) -> None:
        self._known = memo.textless if memo.readers == readers() else {}
        self.met: dict[str, Entry] = {}

    def reason(self, found: Found) -> str | None:
        """Return why a file holds no text; None if it has changed since, or was never found to hold none."""
        entry = self._known.get(found.relative)
        if entry is None or entry[:-1] != [found.size, found.mtime_ns, found.ctime_ns]:
            return None
        self.met[found.relative] = entry
        return str(entry[-1])

    def add(self, found: Found, reason: str) -> None:
        """Remember a file, unless another save might not show by its modification time."""
        if _is_settled(found):
            self.met[found.relative] = [found.size, found.mtime_ns, found.ctime_ns, reason]


def readers() -> list[str]:
    """Return what decides whether a file holds text: this version, and the extractors that are installed."""
    from concord.core import plugins

    return [__version__, *plugins.names("extractors")]


def root_folder(source: Source) -> str:
    """Return the folder that a source's files are in."""
    path = source.path or ""
    return os.path.dirname(path) if source.kind == "file" else path


def check_disk(source: Source) -> None:
    """Check that a source of which something is indexed has not lost its disk."""
    if not _holds_anything(source):
        raise Unreadable(
            f"{source.path} is empty, as if its disk were not mounted",
            hint=Hint(
                Action.REMOVE, "mount it again, or {remove}; its index is kept until then", source=source.name
            ),
        )


def _holds_anything(source: Source) -> bool:
    """Whether there is anything in a source's folder."""
    try:
        with os.scandir(root_folder(source)) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def is_as_indexed(found: Found, state: FileState) -> bool:
    """Whether size and times say for sure that a file holds what was indexed."""
    is_same = (state.size, state.mtime_ns) == (found.size, found.mtime_ns)
    return is_same and not may_be_another(found.ctime_ns, state.indexed_at)
