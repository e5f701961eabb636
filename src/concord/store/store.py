"""One organisation's storage in an SQL engine: the parts that all engines share, put together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from concord.core.errors import BadValue, StoreError
from concord.store.catalog import Catalog
from concord.store.contract import Backend, Models, Store
from concord.store.embeddings import EmbeddingCache
from concord.store.journal import Journal
from concord.store.links import Links
from concord.store.models import Outbox, SqlModels
from concord.store.sql import Database, VectorTables, WordTables, override

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState

_OF_USERS = ("kb_sources", "kb_models", "kb_feedback")


class SqlStore(Backend):
    """The parts of a store that all engines share, and an engine that needs no care."""

    def __init__(self, database: Database, words: WordTables, tables: VectorTables) -> None:
        self._database = database
        self._word_tables = words
        self._vector_tables = tables
        self.catalog = Catalog(database, words)
        self.models: Models = SqlModels(database, tables)
        self.cache = EmbeddingCache(database, tables)
        self.outbox = Outbox(database)
        self.links = Links(database)
        self.journal = Journal(database)

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
