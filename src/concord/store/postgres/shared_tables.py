"""Up to schema 12 all organisations shared tables, kept apart by row-level policies: moving one out of them.

Rows are copied into the organisation's own schema, in the transaction that makes it: whatever interrupts that
leaves everything as it was. Words are indexed from the stored texts, vectors are copied, nothing is embedded.
The shared tables stay as they are until every organisation has moved, and are then dropped by a repair; older
programs refuse them from now on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import Any, NamedTuple

from concord.store.contents import Contents, ModelContents, fill
from concord.store.postgres.connections import schema_of
from concord.store.postgres.database import DIALECT, PostgresSession
from concord.store.postgres.postings import BlockTables
from concord.store.postgres.vectors import PostgresVectorTables, from_wire
from concord.store.rows import chunk_of, document_of, identity_of, source_of
from concord.store.sql import Session
from concord.types import Access, ChunkId, Feedback, Identity, Vector

_FIND = """
SELECT quote_ident(n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('kb_schema')"""
_COLUMNS = """
SELECT a.attname FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped"""
_ORG = "SELECT key FROM {old}.kb_orgs WHERE name = :name"

_SOURCES = """
SELECT id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at, '', memo
FROM {old}.kb_sources WHERE org = {org} ORDER BY name"""
_DOCUMENTS = """
SELECT id, source, path, type, title, array_to_json(tags), details, file_hash, content_hash, size, mtime_ns,
    superseded_by, indexed_at, fields FROM {old}.kb_documents WHERE org = {org} ORDER BY path"""
_CHUNKS = """
SELECT id, document, position, content, start_offset, end_offset, start_line, end_line, page, heading,
    {last_page}, {start_column}, {end_column} FROM {old}.kb_chunks WHERE org = {org} ORDER BY id"""
_ACCESSES = "SELECT document, count, last_at FROM {old}.kb_accesses WHERE org = {org}"
_FEEDBACK = """
SELECT document_id, citation, opinion, query, at FROM {old}.kb_feedback WHERE org = {org} ORDER BY at"""
_COUNTERS = """
SELECT generation, last_chunk, (SELECT hits FROM {old}.kb_cache_usage WHERE org = {org}),
    (SELECT misses FROM {old}.kb_cache_usage WHERE org = {org}),
    {home}, {home_key}, {birthplace}, {left_behind}
FROM {old}.kb_orgs WHERE key = {org}"""
_SPACES = """
SELECT key, identity, recipe, is_active, was_active FROM {old}.kb_spaces
WHERE org = {org} AND identity IS NOT NULL ORDER BY key"""
_CACHED = """
SELECT identity, text_hash, vector FROM {old}.kb_embedding_cache WHERE org = {org}
ORDER BY used, identity, text_hash"""
_VECTORS = """
SELECT chunk, vector_send(embedding) FROM {old}.kb_vectors_{dimension:d}
WHERE org = {org} AND space = :space ORDER BY chunk"""
_OUTSIDE = """
SELECT id, NULL FROM {old}.kb_chunks WHERE org = {org} AND id NOT IN (
    SELECT chunk FROM {old}.kb_pending WHERE org = {org} AND space = :space) ORDER BY id"""
_CHANGES = """
SELECT row_number() OVER (ORDER BY turn), chunk FROM {old}.kb_unsettled WHERE org = {org} ORDER BY turn"""
_OLD_ORIGIN = """
SELECT '/' || d.oid || '/' || to_regclass(:tables)::oid || '/' || {org} FROM pg_database AS d
WHERE d.datname = current_database()"""
_OWNED = f"{_FIND} AND pg_has_role(c.relowner, 'USAGE')"
_MADE = """
SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'kb_meta'"""
_DROP = """
SELECT format('DROP TABLE %s CASCADE', string_agg(format('%I.%I', n.nspname, c.relname), ', '))
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE quote_ident(n.nspname) = :old AND c.relname LIKE 'kb\\_%' AND c.relkind IN ('r', 'p')"""
_DROP_FUNCTIONS = """
SELECT format('DROP FUNCTION %s CASCADE', string_agg(p.oid::regprocedure::text, ', '))
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE quote_ident(n.nspname) = :old AND p.proname LIKE 'kb\\_%' HAVING count(*) > 0"""


class SharedTables(NamedTuple):
    """Where an organisation is among others."""

    old: str  # the schema, quoted
    org: int

    def filled(self, statement: str, **more: Any) -> str:
        """Return a statement about the organisation's rows."""
        return statement.format(old=self.old, org=self.org, **more)


def find_shared(session: PostgresSession, name: str) -> SharedTables | None:
    """Return where an organisation is; None where it is in no shared tables."""
    old = session.value(_FIND)
    if old is None:
        return None
    session.run("SELECT set_config('concord.org', :name, false)", {"name": name})  # policies ask for it
    org = session.value(_ORG.format(old=old), {"name": name})
    return None if org is None else SharedTables(old, org)


def find_left(session: Session) -> str | None:
    """Return the schema of shared tables that every organisation has left and that are the role's to drop.

    Policies hide organisations from each other: within the transaction, they do not from the tables' owner.
    """
    old = session.value(_OWNED)
    if old is None:
        return None
    session.run(f"ALTER TABLE {old}.kb_orgs NO FORCE ROW LEVEL SECURITY")
    orgs = {schema_of(name) for (name,) in session.rows(f"SELECT name FROM {old}.kb_orgs")}
    return str(old) if orgs <= {schema for (schema,) in session.rows(_MADE)} else None


def drop_left(session: Session) -> None:
    """Drop the shared tables once every organisation has left them."""
    if old := find_left(session):
        for statement in (_DROP, _DROP_FUNCTIONS):
            if drop := session.value(statement, {"old": old}):
                session.run(drop)


def move(session: PostgresSession, shared: SharedTables, tables: PostgresVectorTables, origin: str) -> None:
    """Copy an organisation's rows into tables that have just been made."""
    fill(session, _contents(session, shared, origin), tables, BlockTables(), DIALECT)
    session.run(f"UPDATE {shared.old}.kb_schema SET version = 13 WHERE version < 13")


def _contents(session: PostgresSession, shared: SharedTables, origin: str) -> Contents:
    def rows(statement: str, *optional: str, table: str = "") -> Iterable[Any]:
        named = _columns(session, shared, table, *optional) if table else {}
        return session.iterate(shared.filled(statement, **named))

    kept = ("home", "home_key", "birthplace", "left_behind")
    ((generation, last, hits, misses, url, key, birthplace, left),) = rows(_COUNTERS, *kept, table="kb_orgs")
    ending = session.value(shared.filled(_OLD_ORIGIN), {"tables": f"{shared.old}.kb_orgs"})
    if birthplace and birthplace.endswith(ending):  # drawn in these tables
        birthplace = origin
    changes = list(rows(_CHANGES)) if url else []
    return Contents(
        sources=[(source_of(row[:-1]), row[-1]) for row in rows(_SOURCES)],
        documents=[*map(document_of, rows(_DOCUMENTS))],
        chunks=map(chunk_of, rows(_CHUNKS, "last_page", "start_column", "end_column", table="kb_chunks")),
        accesses=[(id, Access(times, at)) for id, times, at in rows(_ACCESSES)],
        feedback=[*starmap(Feedback, rows(_FEEDBACK))],
        numbers={"generation": generation, "cache_hits": hits or 0, "cache_misses": misses or 0},
        texts={"home": url or "", "key": key or "", "birthplace": birthplace or "", "left": left or ""},
        changes=changes,
        models=[
            ModelContents(identity_of(identity), recipe, is_active, was_active, vectors)
            for space, identity, recipe, is_active, was_active in list(rows(_SPACES))
            for vectors in [_vectors(session, shared, space, identity_of(identity), bool(url))]
        ],
        cached=((identity_of(identity), key, vector) for identity, key, vector in rows(_CACHED)),
        last={"kb_chunks": last, "kb_outbox": len(changes)},
    )


def _columns(session: PostgresSession, shared: SharedTables, table: str, *names: str) -> dict[str, str]:
    """Return columns of a shared table by name, or what stands for those that it lacks."""
    rows = session.rows(_COLUMNS, {"table": f"{shared.old}.{table}"})
    known = {name for (name,) in rows}
    return {name: name if name in known else "NULL" for name in names}


def _vectors(
    session: PostgresSession, shared: SharedTables, space: int, identity: Identity, is_outside: bool
) -> Iterator[tuple[ChunkId, Vector | None]]:
    """Yield the vectors by which chunks were searched."""
    if is_outside:
        yield from session.iterate(shared.filled(_OUTSIDE), {"space": space})
        return
    statement = shared.filled(_VECTORS, dimension=identity.dimension)
    for chunk, sent in session.iterate(statement, {"space": space}):
        yield chunk, from_wire(sent, identity.dimension)[0]
