"""Files that turned out to hold no text, remembered so that the next sync need not read them again.

What is remembered holds for one state of a file and for the extractors that were asked: a newer program, or a
package that reads further formats, looks again.
"""

from __future__ import annotations

import json

from concord import __version__, plugins
from concord.file_times import is_settled
from concord.protocols import Catalog
from concord.walk import Found

_Entry = list[int | str]  # the state of a file, then the reason: as JSON has it


class Textless:
    """The textless files of one source: those known before, and those met by this sync."""

    def __init__(self, catalog: Catalog, source_id: str) -> None:
        self._catalog = catalog
        self._source_id = source_id
        self._known = _parsed(catalog.memo(source_id))
        self._met: dict[str, _Entry] = {}

    def reason(self, found: Found) -> str | None:
        """Return why a file holds no text; None if that is not known of the state it is in."""
        entry = self._known.get(found.relative)
        if entry is None or entry[:-1] != _state(found):
            return None
        self._met[found.relative] = entry
        return str(entry[-1])

    def add(self, found: Found, reason: str) -> None:
        """Remember a file, unless it may be saved again without a trace."""
        if is_settled(found):
            self._met[found.relative] = [*_state(found), reason]

    def save(self) -> None:
        """Store what this sync has met; files that it has not are forgotten."""
        if self._met != self._known:
            self._catalog.put_memo(
                self._source_id, json.dumps({"readers": _readers(), "textless": self._met})
            )


def _state(found: Found) -> list[int]:
    return [found.size, found.mtime_ns, found.ctime_ns]


def _parsed(memo: str) -> dict[str, _Entry]:
    if not memo:
        return {}
    kept = json.loads(memo)
    textless: dict[str, _Entry] = kept.get("textless", {})  # others may have left a memo
    return textless if kept.get("readers") == _readers() else {}


def _readers() -> list[str]:
    return [__version__, *plugins.names("extractors")]
