"""One organisation's storage in an SQL engine: the parts that all engines share, put together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import starmap
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from concord.core.errors import BadValue, StoreError
from concord.store.catalog import SqlCatalog
from concord.store.contract import Backend, Catalog, EmbeddingCache, Journal, Links, Models, Outbox, Store
from concord.store.embeddings import SqlCache
from concord.store.links import SqlLinks
from concord.store.models import SqlModels, SqlOutbox
from concord.store.sql import Database, VectorTables, WordTables, override
from concord.types import Access, Feedback

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState

_OF_USERS = ("kb_sources", "kb_models", "kb_feedback")
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


class SqlStore(Backend):
    """The parts of a store that all engines share, and an engine that needs no care."""

    def __init__(self, database: Database, words: WordTables, tables: VectorTables) -> None:
        self._database = database
        self._word_tables = words
        self._vector_tables = tables
        self.catalog: Catalog = SqlCatalog(database, words)
        self.models: Models = SqlModels(database, tables)
        self.cache: EmbeddingCache = SqlCache(database, tables)
        self.outbox: Outbox = SqlOutbox(database)
        self.links: Links = SqlLinks(database)
        self.journal: Journal = SqlJournal(database)

    @override
    def lock(self, name: str, doing: str, *, wait_s: float) -> AbstractContextManager[None]:
        return self._database.lock(name, doing, wait_s)

    @override
    def copy(self, origin: Store, progress: Progress) -> None:
        from concord.store.contents import copy_into  # late: no search needs it

        with self._database.transaction() as session:
            if any(session.value(f"SELECT count(*) FROM {table}") for table in _OF_USERS):
                raise BadValue(
                    "the target holds a knowledge base of its own",
                    hint="choose an empty store (another folder, file or database), or delete that one, if it"
                    " is an earlier copy, or one that was not compared to its end",
                )
            before, dialect = origin.catalog.snapshot().generation, self._database.dialect
            copy_into(session, origin, self._vector_tables, self._word_tables, dialect, progress)
            if origin.catalog.snapshot().generation != before:
                raise StoreError(
                    "something changed while it was copied; nothing of the copy was kept",
                    hint="run the same command again",
                )

    @override
    def check(self) -> list[Finding]:
        return []

    @override
    def repair(self, findings: Sequence[Finding]) -> None:
        pass

    @override
    def maintain(self, progress: Progress) -> None:
        pass

    @override
    def vector_index_state(self) -> VectorIndexState | None:
        return None


class SqlJournal(Journal):
    """The journal of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        with self._database.transaction() as session:
            session.run(_RECORD_ACCESS, {"ids": list(document_ids), "at": float(at)})

    @override
    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        rows = self._database.rows(_ACCESSES, {"ids": list(document_ids)})
        return {document_id: Access(count, last_at) for document_id, count, last_at in rows}

    @override
    def feedback(self) -> list[Feedback]:
        return list(starmap(Feedback, self._database.rows(FEEDBACK)))

    @override
    def record_feedback(self, feedback: Feedback) -> None:
        values = asdict(feedback)
        with self._database.transaction() as session:
            session.run(_FORGET_FEEDBACK, values)
            session.run(PUT_FEEDBACK, values)
