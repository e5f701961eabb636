"""What a sync writes down about a source for the next one: JSON, which a store keeps without reading it.

A migration leaves its marks in the same place: whether a copy is finished, and what it was like then.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field, to_builtins

Entry = list[int | str]  # the state of a file, then why it holds no text
_UNFINISHED, _FINISHED = "unfinished copy", "finished copy"  # keys of marks; the value is a generation


class Memo(Struct, frozen=True):
    """What the last complete sync of a source saw, and how that sync, or one begun since, chunks files."""

    mount: str | None = None  # where the disk with its files was mounted
    readers: list[str] = field(default_factory=list)  # the extractors that looked for text, see `textless`
    textless: dict[str, Entry] = field(default_factory=dict)  # by path within the source
    chunking: list[int] = field(default_factory=list, name="cut")  # what decides which chunks a file has
    # Anything indexed before this moment may be chunked in another way.
    chunking_since: float = field(default=0.0, name="cut_since")
    declares: bool = False  # some file says that it was replaced, or that it replaces another


def read_memo(written: str) -> Memo:
    """Return what a sync wrote down; an empty memo where something else is written there."""
    kept = _plain(written)
    names = zip(Memo.__struct_fields__, Memo.__struct_encode_fields__, strict=True)
    return Memo(**{name: kept[stored] for name, stored in names if stored in kept})


def write_memo(memo: Memo) -> str:
    """Return a memo as a store keeps it."""
    return json.dumps(to_builtins(memo))


def unfinished_copy(generation: int) -> str:
    """Return the memo of an unfinished copy of this generation: any other change would raise that number."""
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
