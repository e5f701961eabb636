"""Files that turned out to hold no text, remembered so that the next sync need not read them again.

This holds for one state of a file and for the extractors of that time: a newer version, or a new package that
reads further formats, looks again.
"""

from __future__ import annotations

from concord import __version__, plugins
from concord.files.file_times import is_settled
from concord.files.memos import Entry, Memo
from concord.files.walk import Found


class Textless:
    """The textless files of one source: those known before, and those met by this sync."""

    def __init__(self, memo: Memo) -> None:
        self._known = memo.textless if memo.readers == readers() else {}
        self.met: dict[str, Entry] = {}

    def reason(self, found: Found) -> str | None:
        """Return why a file holds no text; None if it has changed since, or was never found to hold none."""
        entry = self._known.get(found.relative)
        if entry is None or entry[:-1] != _state(found):
            return None
        self.met[found.relative] = entry
        return str(entry[-1])

    def add(self, found: Found, reason: str) -> None:
        """Remember a file, unless another save might not show by its modification time."""
        if is_settled(found):
            self.met[found.relative] = [*_state(found), reason]


def readers() -> list[str]:
    """Return what decides whether a file holds text: this version, and the extractors that are installed."""
    return [__version__, *plugins.names("extractors")]


def _state(found: Found) -> list[int]:
    return [found.size, found.mtime_ns, found.ctime_ns]
