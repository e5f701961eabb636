"""Making the schema of an organisation and leading it here from an earlier version.

Up to schema 12 all organisations shared tables, kept apart by row-level policies. The rows of one are copied
into its own schema, in the transaction that makes it: whatever interrupts that leaves everything as it was.
Words are indexed from the stored texts, vectors are copied, nothing is embedded. The shared tables stay as
they are; older programs refuse them from now on.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from typing import Any, NamedTuple

from concord.core.errors import Action, Hint, SchemaTooNew, StoreError
from concord.store.contents import Contents, Held, fill
from concord.store.links import name_all
from concord.store.postgres import postings
from concord.store.postgres.connections import Bounded, Connection, Location, connect
from concord.store.postgres.database import DIALECT, PostgresSession
from concord.store.postgres.errors import translated
from concord.store.postgres.postings import BlockTables
from concord.store.postgres.vectors import PostgresVectorTables, from_wire
from concord.store.rows import chunk_of, details_of, document_of, identity_of, source_of
from concord.store.schema import LINKS, create
from concord.types import Access, ChunkId, Feedback, Vector

VERSION = 15
# What leads from a version to the next, from the first in which an organisation had a schema of its own.
_FIRST = 13
_STEPS = ("ALTER TABLE kb_sources ADD COLUMN about text NOT NULL DEFAULT ''", LINKS.format(**DIALECT.types))
OLDEST_PGVECTOR = (0, 8)
_LOCK = 0x6B62636F  # one at a time makes or moves tables

_IS_MADE = "SELECT to_regclass(%s) IS NOT NULL"
_EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"

_FIND = """
SELECT quote_ident(n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('kb_schema')"""
_ORG = "SELECT key FROM {old}.kb_orgs WHERE name = :name"

_SOURCES = """
SELECT id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at, '', memo
FROM {old}.kb_sources WHERE org = {org} ORDER BY name"""
_DOCUMENTS = """
SELECT id, source, path, type, title, array_to_json(tags), details, file_hash, content_hash, size, mtime_ns,
    superseded_by, indexed_at, fields FROM {old}.kb_documents WHERE org = {org} ORDER BY path"""
# Columns that came later are read from JSON: there they may be missing.
_CHUNKS = """
SELECT id, document, position, content, start_offset, end_offset, start_line, end_line, page, heading,
    (row ->> 'last_page')::int, (row ->> 'start_column')::int, (row ->> 'end_column')::int
FROM (SELECT *, to_jsonb(c) AS row FROM {old}.kb_chunks AS c WHERE org = {org}) AS rows ORDER BY id"""
_ACCESSES = "SELECT document, count, last_at FROM {old}.kb_accesses WHERE org = {org}"
_FEEDBACK = """
SELECT document_id, citation, opinion, query, at FROM {old}.kb_feedback WHERE org = {org} ORDER BY at"""
_COUNTERS = """
SELECT generation, last_chunk, (SELECT hits FROM {old}.kb_cache_usage WHERE org = {org}),
    (SELECT misses FROM {old}.kb_cache_usage WHERE org = {org}),
    row ->> 'home', row ->> 'home_key'
FROM (SELECT *, to_jsonb(o) AS row FROM {old}.kb_orgs AS o WHERE key = {org}) AS orgs"""
_SPACES = """
SELECT key, identity, recipe, is_active FROM {old}.kb_spaces
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


def bring_up_to_date(location: Location) -> bool:
    """Make what is stored usable; return whether anything is."""
    with translated(location.server), connect(location) as connection:
        if _is_made(connection, location):
            if _checked_version(connection, location) < VERSION:
                _update(connection, location)
            return True
        is_old = find_shared(PostgresSession(connection), location.org) is not None
    if is_old:
        make(location)
    return is_old


def make(location: Location) -> None:
    """Make the tables of an organisation, and move there what it has in tables that organisations shared.

    Does nothing when another process has just done it.
    """
    with translated(location.server), connect(location) as connection:
        _lock(connection)
        with connection.transaction():
            if not _is_made(connection, location):
                _make(connection, location)


def _update(connection: Bounded, location: Location) -> None:
    """Lead a schema here from an earlier version; another process may have done so meanwhile."""
    _lock(connection)
    with connection.transaction():
        for step in _STEPS[_checked_version(connection, location) - _FIRST :]:
            connection.execute(step)
        name_all(PostgresSession(connection))
        connection.execute("UPDATE kb_meta SET value = %s WHERE key = 'schema'", (VERSION,))


def _lock(connection: Bounded) -> None:
    # Freed when the connection ends. Not inside the transaction: one that has begun may go on believing that
    # there are no tables while another process makes them.
    connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    connection.bind(None)  # waiting may be cut off, making takes as long as it takes


def _make(connection: Connection, location: Location) -> None:
    _make_extension(connection)
    if connection.execute("SELECT to_regnamespace(%s)", (f'"{location.schema}"',)).fetchone() == (None,):
        connection.execute(f'CREATE SCHEMA "{location.schema}"')
    connection.execute(create(DIALECT))
    connection.execute(postings.TABLES)
    connection.execute("INSERT INTO kb_meta VALUES ('schema', %s)", (VERSION,))
    session = PostgresSession(connection)
    if shared := find_shared(session, location.org):
        move(session, shared, PostgresVectorTables())
        session.finish()


def _make_extension(connection: Connection) -> None:
    """Make pgvector usable: where the role looks for tables of its own, not in one organisation's schema."""
    if connection.execute(_EXTENSION).fetchone() is None:
        (path,) = connection.execute("SELECT current_setting('search_path')").fetchone() or ("",)
        connection.execute("SET LOCAL search_path TO DEFAULT; CREATE EXTENSION vector")
        connection.execute("SELECT set_config('search_path', %s, true)", (path,))
    connection.execute("SELECT 'vector'::regtype")  # refused where the role does not see it
    (version,) = connection.execute(_EXTENSION).fetchone() or ("0.0",)
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        wanted = ".".join(map(str, OLDEST_PGVECTOR))
        raise StoreError(
            f"the server has pgvector {version}; {wanted} or newer is needed",
            hint="upgrade it, then run ALTER EXTENSION vector UPDATE",
        )


def _is_made(connection: Connection, location: Location) -> bool:
    return connection.execute(_IS_MADE, (f'"{location.schema}".kb_meta',)).fetchone() == (True,)


def _checked_version(connection: Connection, location: Location) -> int:
    row = connection.execute("SELECT value FROM kb_meta WHERE key = 'schema'").fetchone()
    version = int(row[0]) if row else 0
    if version > VERSION:
        raise SchemaTooNew(
            f"PostgreSQL at {location.server} has schema {version}; this program knows up to {VERSION}",
            hint=Hint(Action.UPGRADE, package="concord-kb"),
        )
    return version


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


def move(session: PostgresSession, shared: SharedTables, tables: PostgresVectorTables) -> None:
    """Copy an organisation's rows into tables that have just been made."""
    fill(session, _contents(session, shared), tables, BlockTables(), DIALECT)
    session.run(f"UPDATE {shared.old}.kb_schema SET version = 13 WHERE version < 13")


def _contents(session: PostgresSession, shared: SharedTables) -> Contents:
    def rows(statement: str) -> Iterable[Any]:
        return session.iterate(shared.filled(statement))

    ((generation, last, hits, misses, url, key),) = rows(_COUNTERS)
    changes = dict(rows(_CHANGES)) if url else {}
    sources = [(source_of(row[:-1]), row[-1]) for row in rows(_SOURCES)]
    spaces = list(rows(_SPACES))
    return Contents(
        generation=generation,
        last_chunk_id=last,
        sources=[source for source, _ in sources],
        memos={source.id: memo for source, memo in sources},
        documents=[*map(document_of, rows(_DOCUMENTS))],
        chunks=[*map(chunk_of, rows(_CHUNKS))],
        spaces=[
            (
                identity_of(identity),
                Held(details_of(recipe), _vectors(session, shared, space, identity, bool(url))),
            )
            for space, identity, recipe, _ in spaces
        ],
        active=next((identity_of(identity) for _, identity, _, is_active in spaces if is_active), None),
        cache_hits=hits or 0,
        cache_misses=misses or 0,
        cached=[(identity_of(identity), key, vector) for identity, key, vector in rows(_CACHED)],
        home=url or "",
        key=key or "",
        unsettled=changes,
        accesses={id: Access(times, at) for id, times, at in rows(_ACCESSES)},
        feedback=[*starmap(Feedback, rows(_FEEDBACK))],
        last_turn=len(changes),
    )


def _vectors(
    session: PostgresSession, shared: SharedTables, space: int, identity: str, is_outside: bool
) -> dict[ChunkId, Vector]:
    if is_outside:
        return {chunk: b"" for chunk, _ in session.iterate(shared.filled(_OUTSIDE), {"space": space})}
    dimension = identity_of(identity).dimension
    rows = session.iterate(shared.filled(_VECTORS, dimension=dimension), {"space": space})
    return {chunk: from_wire(sent, dimension)[0] for chunk, sent in rows}
