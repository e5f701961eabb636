"""What was read and what was judged in a memory store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.backends.memory.contents import Contents
from concord.types import Access, Feedback


class MemoryJournal:
    """What was read and what was judged."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Count one more reading of each document that exists."""
        with self._contents.changing():
            known = self._contents.accesses
            for document_id in self._contents.documents.keys() & set(document_ids):
                before = known.get(document_id, Access(0, at))
                known[document_id] = Access(before.times + 1, max(before.last_at, at))

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often and when last each of these documents was read; those never read are left out."""
        with self._contents.reading():
            return {i: self._contents.accesses[i] for i in document_ids if i in self._contents.accesses}

    def put_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Write down how often documents that exist were read, in place of what is known."""
        with self._contents.changing() as contents:
            contents.accesses.update({i: one for i, one in accesses.items() if i in contents.documents})

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep an opinion, in place of an earlier one on the same document for the same query."""
        with self._contents.changing() as contents:
            contents.feedback[feedback.query, feedback.document_id] = feedback

    def feedback(self) -> list[Feedback]:
        """Return all opinions, oldest first."""
        with self._contents.reading() as contents:
            return sorted(contents.feedback.values(), key=lambda one: (one.at, one.query, one.document_id))
