"""Which documents were read and which results were judged: kept beside the catalog, never searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap

from msgspec.structs import astuple

from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Readers, Writer
from concord.types import Access, Feedback

_RECORD_ACCESS = """
INSERT INTO kb_accesses (document, count, last_at)
SELECT d.key, 1, :at FROM json_each(:ids) AS wanted JOIN kb_documents AS d ON d.id = wanted.value WHERE TRUE
ON CONFLICT (document) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)"""
_PUT_ACCESS = """
INSERT OR REPLACE INTO kb_accesses (document, count, last_at)
SELECT key, ?, ? FROM kb_documents WHERE id = ?"""
_ACCESSES = """
SELECT d.id, a.count, a.last_at FROM json_each(?) AS wanted
CROSS JOIN kb_documents AS d ON d.id = wanted.value CROSS JOIN kb_accesses AS a ON a.document = d.key"""
_RECORD_FEEDBACK = """
INSERT OR REPLACE INTO kb_feedback (document_id, citation, opinion, query, at) VALUES (?, ?, ?, ?, ?)"""
_FEEDBACK = """
SELECT document_id, citation, opinion, query, at FROM kb_feedback ORDER BY at, query, document_id"""


class SQLiteJournal:
    """The journal of one file."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Count one more reading of each document that exists."""
        ids = list_column(list(dict.fromkeys(document_ids)))
        with self._writer.transaction() as connection:
            connection.execute(_RECORD_ACCESS, {"ids": ids, "at": float(at)})

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often and when last each of these documents was read; those never read are left out."""
        with self._readers.connection() as connection:
            rows = connection.execute(_ACCESSES, (list_column(document_ids),))
            return {document_id: Access(count, last_at) for document_id, count, last_at in rows}

    def put_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Write down how often documents that exist were read, in place of what is known."""
        rows = ((one.times, float(one.last_at), i) for i, one in accesses.items())
        with self._writer.transaction() as connection:
            connection.executemany(_PUT_ACCESS, rows)

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep an opinion, in place of an earlier one on the same document for the same query."""
        with self._writer.transaction() as connection:
            connection.execute(_RECORD_FEEDBACK, (*astuple(feedback)[:-1], float(feedback.at)))

    def feedback(self) -> list[Feedback]:
        """Return all opinions, oldest first."""
        with self._readers.connection() as connection:
            return list(starmap(Feedback, connection.execute(_FEEDBACK)))
