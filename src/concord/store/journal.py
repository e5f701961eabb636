"""Which documents were read, and which results were judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from msgspec.structs import asdict

from concord.store.sql import Database
from concord.types import Access, Feedback

_RECORD_ACCESS = """
INSERT INTO kb_accesses (document, count, last_at)
SELECT key, 1, :at FROM kb_documents WHERE id IN (:ids...)
ON CONFLICT (document) DO UPDATE SET count = kb_accesses.count + 1,
    last_at = CASE WHEN kb_accesses.last_at > excluded.last_at
        THEN kb_accesses.last_at ELSE excluded.last_at END"""
PUT_ACCESS = """
INSERT INTO kb_accesses (document, count, last_at)
SELECT key, :times, :last_at FROM kb_documents WHERE id = :id
ON CONFLICT (document) DO UPDATE SET count = excluded.count, last_at = excluded.last_at"""
_ACCESSES = """
SELECT d.id, a.count, a.last_at FROM kb_documents AS d JOIN kb_accesses AS a ON a.document = d.key
WHERE d.id IN (:ids...)"""
PUT_FEEDBACK = """
INSERT INTO kb_feedback (document_id, citation, opinion, query, at)
VALUES (:document_id, :citation, :opinion, :query, :at)"""
_FORGET_FEEDBACK = "DELETE FROM kb_feedback WHERE query = :query AND document_id = :document_id"
FEEDBACK = """
SELECT document_id, citation, opinion, query, at FROM kb_feedback ORDER BY at, query, document_id"""


class Journal:
    """The journal of one store. The generation does not grow."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Note one more reading of each document."""
        with self._database.transaction() as session:
            session.run(_RECORD_ACCESS, {"ids": list(document_ids), "at": float(at)})

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often documents were read, but of those never read."""
        rows = self._database.rows(_ACCESSES, {"ids": list(document_ids)})
        return {document_id: Access(count, last_at) for document_id, count, last_at in rows}

    def feedback(self) -> list[Feedback]:
        """Return all that was judged, oldest first, also on documents that are gone."""
        return list(starmap(Feedback, self._database.rows(FEEDBACK)))

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep a judgement, in place of one on the same document for the same query."""
        values = asdict(feedback)
        with self._database.transaction() as session:
            session.run(_FORGET_FEEDBACK, values)
            session.run(PUT_FEEDBACK, values)
