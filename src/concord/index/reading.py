"""How is one file read, and what is known of it then? Limits, the file as it was read, and its document."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from concord.core.protocols import FileBeingRead
from concord.files.freshness import may_be_another, settled_mtime
from concord.files.walk import Found
from concord.text.chunk import ChunkSize
from concord.types import Document, Extracted, FileState, Source

# Raise it when the same file would give another text or other chunks. Chunks of an earlier one serve until
# their file changes; collections that measure the quality of answers are chunked anew.
READER_VERSION = 11


class ReadLimits(Struct, frozen=True):
    """How files are read and chunked."""

    max_bytes: int
    chunk: ChunkSize

    def chunking_key(self) -> list[int]:
        """Return what decides, beside a file itself, which chunks it has."""
        return [READER_VERSION, *astuple(self.chunk)]

    def is_met_by(self, key: list[int]) -> bool:
        """Whether chunks that were made by this key serve; they do whichever version of ours made them."""
        return not key or key[1:] == self.chunking_key()[1:]


class ReadFile(NamedTuple):
    """A file that was read, and when that began."""

    path: str  # of its document
    found: Found
    read_at: float
    file_hash: str

    def tells_more_than(self, state: FileState) -> bool:
        """Whether the state of an unchanged file is worth storing again, to spare the next sync a look."""
        ctime_ns = self.found.ctime_ns
        has_settled = may_be_another(ctime_ns, state.indexed_at) > may_be_another(ctime_ns, self.read_at)
        return has_settled or (state.size, state.mtime_ns) != (self.found.size, settled_mtime(self.found))

    def state(self) -> dict[str, Any]:
        """Return the fields of its document that tell the next sync whether to read it again."""
        return {
            "size": self.found.size,
            "mtime_ns": settled_mtime(self.found),
            "indexed_at": self.read_at,
        }


class Reading(NamedTuple):
    """A file that is being read."""

    read: ReadFile
    state: FileState | None  # of its document; None for a new file
    file: FileBeingRead


def new_document(source: Source, read: ReadFile, extracted: Extracted) -> Document:
    """Return the document for a file, under a new id."""
    return Document(
        id=secrets.token_hex(8),
        source_id=source.id,
        path=read.path,
        type=extracted.type,
        title=extracted.title or read.found.path.stem,
        tags=tuple(dict.fromkeys((*source.tags, *extracted.tags))),
        details=extracted.details,
        file_hash=read.file_hash,
        content_hash=hashlib.sha256(extracted.text.encode("utf-8", "replace")).hexdigest(),
        **read.state(),
    )


def renamed_title(title: str, old: Path, new: Path) -> str:
    """Return the title of a renamed file: changed only if it was, or began with, the name."""
    if title == old.stem:
        return new.stem
    return new.name + title.removeprefix(old.name) if title.startswith(old.name) else title
