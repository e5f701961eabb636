"""What a sync writes down about a source for the next one: JSON, which a store keeps without reading it.

A migration leaves its marks in the same place: whether a copy is finished, and what it was like then.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field, to_builtins

Entry = list[int | str]  # the state of a file, then why it holds no text
_UNFINISHED, _FINISHED = "unfinished copy", "finished copy"  # each with the generation of the copy


class Memo(Struct, frozen=True):
    """What the last sync that met every file of a source saw; how it, or one begun since, chunks files."""

    mount: str | None = None  # where the disk that its files are on was mounted
    readers: list[str] = field(default_factory=list)  # who was asked for text
    textless: dict[str, Entry] = field(default_factory=dict)  # by path within the source
    chunking: list[int] = field(default_factory=list, name="cut")  # what decides which chunks a file has
    # What was indexed before is chunked otherwise.
    chunking_since: float = field(default=0.0, name="cut_since")
    declares: bool = False  # some file says that it was replaced, or that it replaces another


def read_memo(written: str) -> Memo:
    """Return what was written down; of a memo that somebody else has left, nothing."""
    kept = _plain(written)
    names = zip(Memo.__struct_fields__, Memo.__struct_encode_fields__, strict=True)
    return Memo(**{name: kept[stored] for name, stored in names if stored in kept})


def write_memo(memo: Memo) -> str:
    """Return a memo as a store keeps it."""
    return json.dumps(to_builtins(memo))


def unfinished_copy(generation: int) -> str:
    """Return the memo of an unfinished copy; its generation stays this one as long as nobody else writes."""
    return json.dumps({_UNFINISHED: generation})


def finished_copy(written: str, generation: int) -> str:
    """Return a memo of the origin for its copy, which is finished and has this generation."""
    return json.dumps({**_plain(written), _FINISHED: generation})


def finished_at(written: str) -> int | None:
    """Return the generation that a copy had when it was finished; None where nothing says that it was."""
    return _plain(written).get(_FINISHED)


def _plain(written: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(written or "{}")
    return kept
