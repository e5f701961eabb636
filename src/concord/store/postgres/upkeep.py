"""What may be wrong with an organisation's tables, how it is put right, and what keeps searches fast.

The server looks after its pages itself; tables that only this program has written fail none of the checks.
Only data that can be made again from the rest is ever deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from concord.core.errors import Action, Hint
from concord.core.reports import FaultName, Finding
from concord.store.embeddings import delete_embeddings, is_intact
from concord.store.models import Model, all_models
from concord.store.postgres.database import PostgresDatabase, PostgresSession
from concord.store.postgres.postings import POSTING_BYTES, index_words
from concord.store.postgres.shared_tables import drop_left, find_left
from concord.store.postgres.vectors import MOST_DIMENSIONS, PostgresVectorTables, hnsw_state, table_of
from concord.store.sql import Session

_READ_AT_ONCE = 1000  # vectors
_GROWN = 1.5  # times what the server knows of: then it is made to look

# Every token of every chunk is one posting.
_WORDS_IN_STEP = f"""
SELECT coalesce((SELECT sum(octet_length(postings)) FROM kb_postings), 0) / {POSTING_BYTES}
    = coalesce((SELECT sum(length(words)) FROM kb_chunk_words), 0)
    AND NOT EXISTS (SELECT id FROM kb_chunks EXCEPT SELECT chunk FROM kb_chunk_words)
    AND NOT EXISTS (SELECT chunk FROM kb_chunk_words EXCEPT SELECT id FROM kb_chunks)"""
_COUNTED = """
SELECT (SELECT value FROM kb_meta WHERE key = 'chunks') = (SELECT count(*) FROM kb_chunk_words)
    AND (SELECT value FROM kb_meta WHERE key = 'tokens') = (
        SELECT coalesce(sum(length), 0) FROM kb_chunk_words)"""
_COUNT_ANEW = """
UPDATE kb_meta SET value = (SELECT count(*) FROM kb_chunk_words) WHERE key = 'chunks';
UPDATE kb_meta SET value = (SELECT coalesce(sum(length), 0) FROM kb_chunk_words) WHERE key = 'tokens'"""
_HIDDEN = """
FROM kb_documents WHERE superseded_by IS NOT NULL AND superseded_by NOT IN (SELECT id FROM kb_documents)"""
_UNKNOWN = "FROM {table} AS v WHERE NOT EXISTS (SELECT FROM kb_embeddings AS e WHERE e.id = v.id)"
_LOST = """
FROM kb_embeddings AS e
WHERE e.model = :model AND NOT EXISTS (SELECT FROM {table} AS v WHERE v.id = e.id)"""
_CRCS = "SELECT id, crc FROM kb_embeddings WHERE model = :model AND id > :after ORDER BY id LIMIT :most"
_ROLE = "SELECT quote_ident(current_user) FROM pg_roles WHERE rolname = current_user AND rolsuper"

# The server looks at new rows by itself, but only after a minute; until then it plans for an empty table.
_KNOWN_SIZE = "SELECT reltuples FROM pg_class WHERE oid = 'kb_chunks'::regclass"
_ANALYZE = "ANALYZE kb_documents, kb_chunks, kb_chunk_words, kb_postings, kb_chunk_vectors, kb_embeddings"


def find_faults(database: PostgresDatabase, tables: PostgresVectorTables) -> list[Finding]:
    """Run every check; nothing is changed."""
    with database.read() as session:
        return list(_faults(session, tables))


def _faults(session: PostgresSession, tables: PostgresVectorTables) -> Iterator[Finding]:
    if not session.value(_WORDS_IN_STEP):
        yield _repairable("words", "the word index does not match the chunks", "builds it anew")
    elif not session.value(_COUNTED):
        yield _repairable("counter", "the stored number of chunks is wrong", "counts them anew")
    for model in all_models(session):
        yield from _vector_faults(session, tables, model)
    if hidden := session.value(f"SELECT count(*) {_HIDDEN}"):
        message = f"{hidden:,} documents superseded by one that is gone"
        yield _repairable("superseded", message, "brings them back")
    with session.connection.transaction(force_rollback=True):
        has_left = find_left(session) is not None
    if has_left:
        message = "tables of an earlier version, which every organisation has left"
        yield _repairable("old-tables", message, "drops them")
    if role := session.value(_ROLE):
        yield Finding(
            "policies",
            f"the role {role} is a superuser: nothing keeps it out of the schemas of other organisations",
            "connect as a role that is none: docs/postgresql.md",
        )


def _vector_faults(session: PostgresSession, tables: PostgresVectorTables, model: Model) -> Iterator[Finding]:
    table, values = table_of(model), {"model": model.key}
    if unknown := session.value(f"SELECT count(*) {_UNKNOWN.format(table=table)}"):
        yield _repairable("vectors", f"{unknown:,} vectors that belong to no chunk", "deletes them")
    if lost := session.value(f"SELECT count(*) {_LOST.format(table=table)}", values):
        yield _repairable("lost-vectors", f"{lost:,} chunks that have lost their vector", "embeds them again")
    if damaged := _damaged(session, tables, model):
        message = f"{len(damaged):,} vectors that are not as they were written"
        yield _repairable("damaged-vectors", message, "embeds their texts again")
    index = hnsw_state(session, model)
    if model.identity.dimension <= MOST_DIMENSIONS and index.is_missing:
        message = "there is no vector index: every search compares all vectors"
        if index.is_valid is False:
            message = "the vector index was not finished"
        yield Finding("index", message, index.cure, is_repairable=index.is_ours_to_build)


def _damaged(session: PostgresSession, tables: PostgresVectorTables, model: Model) -> list[int]:
    """Return the vectors of a model that are not as they were written."""
    damaged: list[int] = []
    after = 0
    while rows := session.rows(_CRCS, {"model": model.key, "after": after, "most": _READ_AT_ONCE}):
        vectors = tables.read(session, model, [id for id, _ in rows])
        damaged += [id for id, crc in rows if id in vectors and not is_intact(vectors[id], crc)]
        after = rows[-1][0]
    return damaged


def put_right(findings: Sequence[Finding], database: PostgresDatabase, tables: PostgresVectorTables) -> None:
    """Repair everything that was found, in one transaction; an index is built after it."""
    wanted = {finding.fault for finding in findings if finding.is_repairable}
    if not wanted & _REPAIRS.keys():
        return
    with database.transaction() as session:
        for fault, repair in _REPAIRS.items():
            if fault in wanted:
                repair(session, tables)
        session.run("UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'")


def rebuild_words(session: PostgresSession, tables: PostgresVectorTables | None = None) -> None:
    """Index all chunks anew."""
    session.run("DELETE FROM kb_postings; DELETE FROM kb_chunk_words")
    session.run(_COUNT_ANEW)
    index_words(session, [chunk_id for (chunk_id,) in session.rows("SELECT id FROM kb_chunks ORDER BY id")])


def _count_anew(session: PostgresSession, tables: PostgresVectorTables) -> None:
    session.run(_COUNT_ANEW)


def _delete_unknown(session: PostgresSession, tables: PostgresVectorTables) -> None:
    for model in all_models(session):
        session.run(f"DELETE {_UNKNOWN.format(table=table_of(model))}")


def _await_lost(session: PostgresSession, tables: PostgresVectorTables) -> None:
    for model in all_models(session):
        rows = session.rows(f"SELECT e.id {_LOST.format(table=table_of(model))}", {"model": model.key})
        _await(session, tables, model, [id for (id,) in rows])


def _await_damaged(session: PostgresSession, tables: PostgresVectorTables) -> None:
    for model in all_models(session):
        _await(session, tables, model, _damaged(session, tables, model))


def _await(session: Session, tables: PostgresVectorTables, model: Model, ids: list[int]) -> None:
    """Let the chunks that use some vectors wait for others."""
    session.run("DELETE FROM kb_chunk_vectors WHERE embedding IN (:ids...)", {"ids": ids})
    delete_embeddings(session, tables, model, ids)


def _drop_left(session: PostgresSession, tables: PostgresVectorTables) -> None:
    drop_left(session)


def _bring_back(session: PostgresSession, tables: PostgresVectorTables) -> None:
    session.run(f"UPDATE kb_documents SET superseded_by = NULL WHERE key IN (SELECT key {_HIDDEN})")


# In this order: what goes first may be the cause of what follows.
_REPAIRS: Mapping[FaultName, Callable[[PostgresSession, PostgresVectorTables], None]] = {
    "words": rebuild_words,
    "counter": _count_anew,
    "vectors": _delete_unknown,
    "lost-vectors": _await_lost,
    "damaged-vectors": _await_damaged,
    "superseded": _bring_back,
    "old-tables": _drop_left,
}


def analyze(session: Session) -> None:
    """Let the server look at tables that have grown a lot."""
    chunks = session.value("SELECT value FROM kb_meta WHERE key = 'chunks'")
    if chunks > _GROWN * max(session.value(_KNOWN_SIZE), 0):
        session.run(_ANALYZE)


def _repairable(fault: FaultName, message: str, repair: str) -> Finding:
    return Finding(fault, message, Hint(Action.REPAIR, f"{{repair}} {repair}"), is_repairable=True)
