"""From a file that was read to documents that are stored together, and what is counted on the way."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from concord.core.errors import BadValue
from concord.core.reports import FILE_COUNTS, Failure, PartlyRead, SyncReport, partly_read
from concord.files.state import may_be_another, settled_mtime
from concord.files.walk import Found
from concord.store.contract import Catalog
from concord.text.chunk import ChunkSize
from concord.types import Document, Extracted, FileState, Piece, Source

# Raise it when the same file would give another text or other chunks. Chunks of an earlier one serve until
# their file changes; collections that measure the quality of answers are chunked anew.
READER_VERSION = 13

# Documents stored in one transaction. A transaction waits for the disk, and leaves the full-text index one
# more part to merge: 400 Markdown pages take a fifth less work in such groups than one by one.
GROUP_DOCUMENTS = 256
GROUP_CHUNKS = 2048  # chunks in a transaction, which keeps other writers waiting
WHOLE_DOCUMENTS = 64  # in memory with all their chunks at a time, where nobody counts these
# Documents whose labels change in one transaction, their texts staying as they are. An index rewrites a tag
# once for all of them; meanwhile other writers wait.
UPDATED_AT_ONCE = 1000


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
    """A file whose content was read, and when that began."""

    path: str  # of its document
    found: Found
    known: FileState | None  # its document; None for a new file
    read_at: float
    file_hash: str

    def tells_more_than(self, known: FileState) -> bool:
        """Whether the state of an unchanged file is worth storing again, to spare the next sync a look."""
        ctime_ns = self.found.ctime_ns
        has_settled = may_be_another(ctime_ns, known.indexed_at) > may_be_another(ctime_ns, self.read_at)
        return has_settled or (known.size, known.mtime_ns) != (self.found.size, settled_mtime(self.found))

    def state(self) -> dict[str, Any]:
        """Return the fields of its document that tell the next sync whether to read it again."""
        return {
            "size": self.found.size,
            "mtime_ns": settled_mtime(self.found),
            "indexed_at": self.read_at,
        }


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


class Prepared(NamedTuple):
    """A document that is ready to be stored, and as what it is counted."""

    document: Document
    pieces: list[Piece]
    counted_as: str


def is_full(pieces: Sequence[Sequence[Piece]]) -> bool:
    """Whether documents, given by the pieces of each, are enough for one transaction."""
    return len(pieces) >= GROUP_DOCUMENTS or sum(map(len, pieces)) >= GROUP_CHUNKS


class Tally:
    """Counts of what was done, and the files that were left out or failed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.skipped: list[Failure] = []
        self.partly_read: dict[str, PartlyRead] = {}
        self.failed: list[Failure] = []

    def store(self, group: Sequence[Prepared], catalog: Catalog) -> None:
        """Store documents together, and count them; one that no store can keep does not keep others out."""
        try:
            catalog.put_documents((prepared.document, prepared.pieces) for prepared in group)
        except BadValue as fault:
            if len(group) == 1:
                self.failed.append(Failure(group[0].document.path, fault.message))
                return
            for prepared in group:
                self.store([prepared], catalog)
            return
        for document, pieces, counted_as in group:
            self.counts.update({counted_as: 1, "chunks": len(pieces)})
            self.partly_read.pop(document.path, None)  # pictures may have been read since
            self.partly_read |= {part.path: part for part in partly_read([document])}

    def report(self, source: Source) -> SyncReport:
        """Return what has been done."""
        report = SyncReport(
            source,
            skipped=Counter(left_out.reason for left_out in self.skipped),
            skipped_files=tuple(self.skipped),
            partly_read=tuple(self.partly_read.values()),
            failed=tuple(self.failed),
        )
        return replace(report, **{name: self.counts[name] for name in (*FILE_COUNTS, "chunks")})
