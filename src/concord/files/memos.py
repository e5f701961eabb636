"""What a sync writes down about a source for the next one: JSON, which a store keeps without reading it."""

from __future__ import annotations

import json

from msgspec import Struct, field
from msgspec.structs import asdict

Entry = list[int | str]  # the state of a file, then why it holds no text


class Memo(Struct, frozen=True):
    """What the last sync that met every file of a source has seen."""

    mount: str | None = None  # where the disk that its files are on was mounted
    readers: list[str] = field(default_factory=list)  # who was asked for text
    textless: dict[str, Entry] = field(default_factory=dict)  # by path within the source


def read_memo(written: str) -> Memo:
    """Return what was written down; of a memo that somebody else has left, nothing."""
    kept = json.loads(written) if written else {}
    return Memo(**{name: kept[name] for name in Memo.__struct_fields__ if name in kept})


def write_memo(memo: Memo) -> str:
    """Return a memo as a store keeps it."""
    return json.dumps(asdict(memo))
