"""What was read and what was judged: kept beside the catalog, searched by nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.backends.postgres.connections import Connections
from concord.backends.postgres.rows import feedback_of, feedback_values, loaded, stored_all
from concord.types import Access, Feedback

_RECORD_ACCESS = """
INSERT INTO kb_accesses AS a SELECT org, id, 1, %(at)s FROM kb_documents
WHERE org = %(org)s AND id = ANY(%(ids)s) ORDER BY id
ON CONFLICT (org, document) DO UPDATE
SET count = a.count + 1, last_at = greatest(a.last_at, excluded.last_at)"""
_PUT_ACCESSES = """
INSERT INTO kb_accesses
SELECT d.org, d.id, given.count, given.last_at
FROM unnest(%s::text[], %s::bigint[], %s::float8[]) AS given (id, count, last_at)
JOIN kb_documents AS d ON d.org = %s AND d.id = given.id ORDER BY d.id
ON CONFLICT (org, document) DO UPDATE SET count = excluded.count, last_at = excluded.last_at"""
_ACCESSES = "SELECT document, count, last_at FROM kb_accesses WHERE org = %s AND document = ANY(%s)"
_RECORD_FEEDBACK = """
INSERT INTO kb_feedback (org, document_id, citation, opinion, query, at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (org, kb_hash(query), document_id) DO UPDATE
SET citation = excluded.citation, opinion = excluded.opinion, at = excluded.at"""
_FEEDBACK = """
SELECT document_id, citation, opinion, query, at FROM kb_feedback WHERE org = %s
ORDER BY at, query, document_id"""


class PostgresJournal:
    """The journal of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._org = connections.org

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Count one more reading of each document that exists."""
        values = {"org": self._org, "ids": stored_all(document_ids), "at": float(at)}
        with self._connections.transaction() as connection:
            connection.execute(_RECORD_ACCESS, values)

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often and when last each of these documents was read; those never read are left out."""
        values = (self._org, stored_all(document_ids))
        rows = self._connections.read(lambda connection: connection.execute(_ACCESSES, values).fetchall())
        return {loaded(document_id): Access(count, last_at) for document_id, count, last_at in rows}

    def put_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Write down how often documents that exist were read, in place of what is known."""
        counts = [access.times for access in accesses.values()]
        times = [float(access.last_at) for access in accesses.values()]
        with self._connections.transaction() as connection:
            connection.execute(_PUT_ACCESSES, (stored_all(accesses), counts, times, self._org))

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep an opinion, in place of an earlier one on the same document for the same query."""
        with self._connections.transaction() as connection:
            connection.execute(_RECORD_FEEDBACK, (self._org, *feedback_values(feedback)))

    def feedback(self) -> list[Feedback]:
        """Return all opinions, oldest first."""
        return self._connections.read(
            lambda connection: list(map(feedback_of, connection.execute(_FEEDBACK, (self._org,))))
        )
