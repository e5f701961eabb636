"""One organisation in a schema of a PostgreSQL database: what `postgresql://` URLs open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from concord.core.errors import BadValue
from concord.core.reports import Finding, VectorIndexState
from concord.store import upkeep
from concord.store.contract import Place
from concord.store.postgres.connections import Connections, Location, locate
from concord.store.postgres.database import PostgresDatabase, PostgresSession
from concord.store.postgres.migrations import bring_up_to_date, make
from concord.store.postgres.postings import POSTING_BYTES, BlockTables, index_words
from concord.store.postgres.vectors import (
    CURE,
    PostgresVectorTables,
    build_indexes,
    index_state,
    missing_indexes,
)
from concord.store.postgres.words import BlockWords, NativeWords
from concord.store.sql import Session, VectorTables, override
from concord.store.store import SqlStore
from concord.store.upkeep import repairable

if TYPE_CHECKING:
    from concord.core.protocols import Progress


_GROWN = 1.5  # times what the server knows of: then it is made to look

# Every token of every chunk is one posting.
_WORDS_IN_STEP = f"""
SELECT coalesce((SELECT sum(octet_length(postings)) FROM kb_postings), 0) / {POSTING_BYTES}
    = coalesce((SELECT sum(length(words)) FROM kb_chunk_words), 0)
    AND NOT EXISTS (SELECT id FROM kb_chunks EXCEPT SELECT chunk FROM kb_chunk_words)
    AND NOT EXISTS (SELECT chunk FROM kb_chunk_words EXCEPT SELECT id FROM kb_chunks)
    AND (SELECT value FROM kb_meta WHERE key = 'chunks') = (SELECT count(*) FROM kb_chunk_words)
    AND (SELECT value FROM kb_meta WHERE key = 'tokens') = (
        SELECT coalesce(sum(length), 0) FROM kb_chunk_words)"""
_DELETE_WORDS = """
DELETE FROM kb_postings; DELETE FROM kb_chunk_words;
UPDATE kb_meta SET value = 0 WHERE key IN ('chunks', 'tokens')"""

# The server looks at new rows by itself, but only after a minute; until then it plans for an empty table.
_KNOWN_SIZE = "SELECT reltuples FROM pg_class WHERE oid = 'kb_chunks'::regclass"
_ANALYZE = """
ANALYZE kb_documents, kb_chunks, kb_chunk_words, kb_postings, kb_chunk_vectors, kb_embeddings, kb_links,
    kb_titles"""


class PostgresStore(SqlStore):
    """The storage of one organisation, until it is closed."""

    _database: PostgresDatabase

    def __init__(self, location: Location, is_made: bool, options: Mapping[str, Any] | None = None) -> None:
        self._connections = Connections(location)
        database = PostgresDatabase(self._connections, None if is_made else partial(make, location))
        # What building an index may use; None leaves it to the server.
        self._index_memory_mb: int | None = options["store.index_memory_mb"] if options else None
        self._tables = PostgresVectorTables()
        super().__init__(database, BlockTables(), self._tables)
        is_native = options is not None and options["postgres.words"] == "native"
        self.words = (NativeWords if is_native else BlockWords)(database)

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> PostgresStore:
        location = locate(url, org)
        return cls(location, bring_up_to_date(location), options)

    @property
    @override
    def place(self) -> Place:
        if not self._database.is_made:
            return Place(None, False, "")
        is_begun = self.catalog.snapshot().generation > 0
        return Place(None, is_begun, self._database.unique_id())

    @override
    def check(self) -> list[Finding]:
        with self._database.read() as session:
            return list(_find_faults(session, self._tables))

    @override
    def repair(self, findings: Sequence[Finding]) -> None:
        upkeep.put_right(findings, self._database, self._tables, {"words": _rebuild_words})
        if any(finding.fault == "index" for finding in findings):
            self._build_indexes()

    @override
    def maintain(self, progress: Progress) -> None:
        with self._database.read() as session:
            chunks = session.value("SELECT value FROM kb_meta WHERE key = 'chunks'")
            if chunks > _GROWN * max(session.value(_KNOWN_SIZE), 0):
                session.run(_ANALYZE)
        self._build_indexes()

    @override
    def vector_index_state(self) -> VectorIndexState | None:
        with self._database.read() as session:
            return index_state(session)

    @override
    def backup(self, path: str, progress: Progress) -> None:
        raise BadValue("a store in PostgreSQL is no file", hint="`pg_dump` copies it: docs/postgresql.md")

    @override
    def close(self) -> None:
        self._connections.close()

    def _build_indexes(self) -> None:
        with self._database.read() as session:
            build_indexes(session, self._index_memory_mb)


def _find_faults(session: PostgresSession, tables: PostgresVectorTables) -> Iterator[Finding]:
    if not session.value(_WORDS_IN_STEP):
        yield repairable("words", "the word index does not match the chunks", "builds it anew")
    yield from upkeep.find_faults(session, tables)
    if missing_indexes(session):
        message = "there is no vector index: every search compares all vectors"
        yield Finding("index", message, CURE, is_repairable=True)


def _rebuild_words(session: Session, tables: VectorTables) -> None:
    assert isinstance(session, PostgresSession)
    session.run(_DELETE_WORDS)
    index_words(session, [chunk_id for (chunk_id,) in session.rows("SELECT id FROM kb_chunks ORDER BY id")])
