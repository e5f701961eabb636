"""Which documents are stored together? A group is one transaction, and no document waits in it for long."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.errors import BadValue
from concord.core.reports import FILE_COUNTS, Failure, PartlyRead, SyncReport, partly_read
from concord.store.contract import Catalog
from concord.types import Document, Piece, Source

# Documents stored in one transaction. A transaction waits for the disk, and leaves the full-text index one
# more part to merge: 400 Markdown pages take a fifth less work in such groups than one by one.
GROUP_DOCUMENTS = 256
GROUP_CHUNKS = 2048  # chunks in a transaction, which keeps other writers waiting
GROUP_S = 0.5  # how long a document may wait to be searchable
WHOLE_DOCUMENTS = 64  # in memory with all their chunks at a time, where nobody counts these
# Documents whose labels change in one transaction, their texts staying as they are. An index rewrites a tag
# once for all of them; meanwhile other writers wait.
UPDATED_AT_ONCE = 1000


def is_full(pieces: Sequence[Sequence[Piece]]) -> bool:
    """Whether documents, given by the pieces of each, are enough for one transaction."""
    return len(pieces) >= GROUP_DOCUMENTS or sum(map(len, pieces)) >= GROUP_CHUNKS


class Prepared(NamedTuple):
    """A document that is ready to be stored, and whether it is new."""

    document: Document
    pieces: list[Piece]
    kind: str  # added or changed


Stored = tuple[Sequence[Prepared], Sequence[Failure]]  # what was stored, and what could not be


class Group:
    """Documents that wait to be stored together."""

    def __init__(self) -> None:
        self._waiting: list[Prepared] = []
        self._since = 0.0

    def add(self, prepared: Prepared) -> None:
        """Let a document wait for others."""
        self._since = self._since if self._waiting else time.monotonic()
        self._waiting.append(prepared)

    def is_due(self) -> bool:
        """Whether enough documents wait, or wait long enough, to be stored."""
        is_late = time.monotonic() - self._since >= GROUP_S
        return bool(self._waiting) and (is_late or is_full([prepared.pieces for prepared in self._waiting]))

    def store(self, catalog: Catalog) -> Stored:
        """Store those that wait, and begin anew."""
        group, self._waiting = self._waiting, []
        try:
            if group:
                catalog.put_documents((waiting.document, waiting.pieces) for waiting in group)
        except BadValue:  # one of them cannot be stored, and must not keep the others out
            return _stored_one_by_one(group, catalog)
        return group, []


def _stored_one_by_one(group: Sequence[Prepared], catalog: Catalog) -> Stored:
    documents, failed = list[Prepared](), list[Failure]()
    for prepared in group:
        try:
            catalog.put_documents([(prepared.document, prepared.pieces)])
            documents.append(prepared)
        except BadValue as fault:
            failed.append(Failure(prepared.document.path, fault.message))
    return documents, failed


class Tally:
    """Counts of what was done, and the files that were left out or failed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.skipped_files: list[Failure] = []
        self.partly_read: list[PartlyRead] = []
        self.failed: list[Failure] = []

    def add_stored(self, stored: Stored) -> None:
        """Count documents that were stored, and those that could not be."""
        prepared, failed = stored
        self.counts.update(item.kind for item in prepared)
        self.counts["chunks"] += sum(len(item.pieces) for item in prepared)
        self.partly_read += partly_read(item.document for item in prepared)
        self.failed += failed

    def add_skipped(self, path: str, reason: str) -> None:
        """Count a file that is left out."""
        self.skipped[reason] += 1
        self.skipped_files.append(Failure(path, reason))

    def withdraw(self, path: str) -> None:
        """Take back that a file was left out: it is looked at once more."""
        for failure in [left_out for left_out in self.skipped_files if left_out.path == path]:
            self.skipped_files.remove(failure)
            self.skipped[failure.reason] -= 1
        self.skipped = +self.skipped
        self.partly_read = [part for part in self.partly_read if part.path != path]

    def report(self, source: Source) -> SyncReport:
        """Return what has been done."""
        report = SyncReport(
            source,
            skipped=dict(self.skipped),
            skipped_files=tuple(self.skipped_files),
            partly_read=tuple(self.partly_read),
            failed=tuple(self.failed),
        )
        return replace(report, **{name: self.counts[name] for name in (*FILE_COUNTS, "chunks")})
