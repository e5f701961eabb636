"""What may be wrong with an organisation's tables beside what `upkeep` finds, and what keeps searches fast.

The server looks after its pages itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from concord.core.reports import FaultName, Finding
from concord.store import upkeep
from concord.store.models import all_models
from concord.store.postgres.database import PostgresSession
from concord.store.postgres.postings import POSTING_BYTES, index_words
from concord.store.postgres.shared_tables import drop_left, find_left
from concord.store.postgres.vectors import MOST_DIMENSIONS, PostgresVectorTables, hnsw_state
from concord.store.sql import Session, VectorTables
from concord.store.upkeep import repairable

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
_ROLE = "SELECT quote_ident(current_user) FROM pg_roles WHERE rolname = current_user AND rolsuper"

# The server looks at new rows by itself, but only after a minute; until then it plans for an empty table.
_KNOWN_SIZE = "SELECT reltuples FROM pg_class WHERE oid = 'kb_chunks'::regclass"
_ANALYZE = """
ANALYZE kb_documents, kb_chunks, kb_chunk_words, kb_postings, kb_chunk_vectors, kb_embeddings, kb_links,
    kb_titles"""


def find_faults(session: PostgresSession, tables: PostgresVectorTables) -> Iterator[Finding]:
    """Run every check; nothing is changed."""
    if not session.value(_WORDS_IN_STEP):
        yield repairable("words", "the word index does not match the chunks", "builds it anew")
    elif not session.value(_COUNTED):
        yield repairable("counter", "the stored number of chunks is wrong", "counts them anew")
    yield from upkeep.find_faults(session, tables)
    for model in all_models(session):
        index = hnsw_state(session, model)
        if model.identity.dimension <= MOST_DIMENSIONS and index.is_missing:
            message = "there is no vector index: every search compares all vectors"
            if index.is_valid is False:
                message = "the vector index was not finished"
            yield Finding("index", message, index.cure, is_repairable=index.is_ours_to_build)
    with session.connection.transaction(force_rollback=True):
        has_left = find_left(session) is not None
    if has_left:
        message = "tables of an earlier version, which every organisation has left"
        yield repairable("old-tables", message, "drops them")
    if role := session.value(_ROLE):
        yield Finding(
            "policies",
            f"the role {role} is a superuser: nothing keeps it out of the schemas of other organisations",
            "connect as a role that is none: docs/postgresql.md",
        )


def rebuild_words(session: Session, tables: VectorTables | None = None) -> None:
    """Index all chunks anew."""
    assert isinstance(session, PostgresSession)
    session.run("DELETE FROM kb_postings; DELETE FROM kb_chunk_words")
    session.run(_COUNT_ANEW)
    index_words(session, [chunk_id for (chunk_id,) in session.rows("SELECT id FROM kb_chunks ORDER BY id")])


REPAIRS: Mapping[FaultName, upkeep.Repair] = {
    "words": rebuild_words,
    "counter": lambda session, tables: session.run(_COUNT_ANEW),
    "old-tables": lambda session, tables: drop_left(session),
}


def analyze(session: Session) -> None:
    """Let the server look at tables that have grown a lot."""
    chunks = session.value("SELECT value FROM kb_meta WHERE key = 'chunks'")
    if chunks > _GROWN * max(session.value(_KNOWN_SIZE), 0):
        session.run(_ANALYZE)
