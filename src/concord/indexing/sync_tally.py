"""What has a sync done so far? Counted while files go by, and told in its report."""

from __future__ import annotations

from collections import Counter

from concord.indexing.document_groups import Stored
from concord.indexing.partly_read import partly_read
from concord.outcomes import Failure, PartlyRead, SyncReport
from concord.types import Source


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
        self.counts.update(one.kind for one in stored.documents)
        self.counts["chunks"] += sum(len(one.pieces) for one in stored.documents)
        self.partly_read += partly_read(one.document for one in stored.documents)
        self.failed += stored.failed

    def add_skipped(self, path: str, reason: str) -> None:
        """Count a file that is left out."""
        self.skipped[reason] += 1
        self.skipped_files.append(Failure(path, reason))

    def add_failed(self, path: str, reason: str) -> None:
        """Remember a file that could not be read or indexed."""
        self.failed.append(Failure(path, reason))

    def report(self, source: Source) -> SyncReport:
        """Return what has been done."""
        return SyncReport(
            source,
            added=self.counts["added"],
            changed=self.counts["changed"],
            removed=self.counts["removed"],
            renamed=self.counts["renamed"],
            unchanged=self.counts["unchanged"],
            skipped=dict(self.skipped),
            skipped_files=tuple(self.skipped_files),
            partly_read=tuple(self.partly_read),
            failed=tuple(self.failed),
            chunks=self.counts["chunks"],
        )
