"""Up to schema 12 all organisations shared tables, kept apart by row-level policies: moving one out of them.

Rows are copied into the organisation's own schema, in the transaction that makes it: whatever interrupts that
leaves everything as it was. Words are indexed from the stored texts, vectors are copied, nothing is embedded.
The shared tables stay as they are until every organisation has moved, and are then dropped by a repair; older
programs refuse them from now on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from concord.store.embeddings import EMBEDDED, new_embeddings, pending_of, text_hash
from concord.store.models import Model, find_model, forget_if_empty, new_model
from concord.store.postgres.connections import schema_of
from concord.store.postgres.database import DIALECT, PostgresSession
from concord.store.postgres.postings import index_words
from concord.store.postgres.vectors import PostgresVectorTables, from_wire
from concord.store.rows import columns_of, identity_of, list_of
from concord.store.sql import Session
from concord.types import FLOAT_BYTES, ChunkId, Vector

_AT_ONCE = 500  # chunks or vectors

_FIND = """
SELECT quote_ident(n.nspname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass('kb_schema')"""
_COLUMNS = """
SELECT a.attname FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped"""
_ORG = "SELECT key FROM {old}.kb_orgs WHERE name = :name"

# As texts are stored in the same form, they need not come here.
_CATALOG = (
    """
    INSERT INTO kb_sources (id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at,
        sync_state)
    SELECT id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at, memo
    FROM {old}.kb_sources WHERE org = {org} ORDER BY name""",
    """
    INSERT INTO kb_documents (id, source, path, type, title, details, file_hash, content_hash, size, mtime_ns,
        superseded_by, indexed_at, fields)
    SELECT d.id, s.key, d.path, d.type, d.title, d.details, d.file_hash, d.content_hash, d.size, d.mtime_ns,
        d.superseded_by, d.indexed_at, d.fields
    FROM {old}.kb_documents AS d JOIN kb_sources AS s ON s.id = d.source
    WHERE d.org = {org} ORDER BY d.path""",
    """
    INSERT INTO kb_document_tags SELECT n.key, t.tag, t.at - 1
    FROM {old}.kb_documents AS d JOIN kb_documents AS n ON n.id = d.id
    CROSS JOIN LATERAL unnest(d.tags) WITH ORDINALITY AS t (tag, at) WHERE d.org = {org}""",
    """
    INSERT INTO kb_accesses SELECT d.key, a.count, a.last_at
    FROM {old}.kb_accesses AS a JOIN kb_documents AS d ON d.id = a.document WHERE a.org = {org}""",
    """
    INSERT INTO kb_feedback (query, document_id, citation, opinion, at)
    SELECT query, document_id, citation, opinion, at FROM {old}.kb_feedback WHERE org = {org}""",
)
_TEXTS = """
SELECT c.id, d.title, array_to_json(d.tags), c.heading, c.content
FROM {old}.kb_chunks AS c JOIN {old}.kb_documents AS d ON d.org = c.org AND d.id = c.document
WHERE c.org = {org} AND c.id > :after ORDER BY c.id LIMIT :most"""
_CHUNKS = """
INSERT INTO kb_chunks (id, document, position, start_offset, end_offset, start_line, end_line, page,
    last_page, start_column, end_column, heading, title, tags, terms, content)
SELECT c.id, d.key, c.position, c.start_offset, c.end_offset, c.start_line, c.end_line, c.page,
    {last_page}, {start_column}, {end_column}, c.heading, g.title, g.tags, g.terms, c.content
FROM unnest(:ids::bigint[], :titles::text[], :tags::text[], :terms::text[]) AS g (id, title, tags, terms)
JOIN {old}.kb_chunks AS c ON c.org = {org} AND c.id = g.id JOIN kb_documents AS d ON d.id = c.document"""
_NAMES = """
INSERT INTO kb_names (token, chunk) SELECT n.token, n.chunk
FROM {old}.kb_names AS n JOIN kb_chunks AS c ON c.id = n.chunk WHERE n.org = {org}"""
_COUNTERS = """
UPDATE kb_meta SET value = o.generation FROM {old}.kb_orgs AS o
WHERE kb_meta.key = 'generation' AND o.key = {org};
UPDATE kb_meta SET value = u.hits FROM {old}.kb_cache_usage AS u WHERE key = 'cache_hits' AND u.org = {org};
UPDATE kb_meta SET value = u.misses FROM {old}.kb_cache_usage AS u
WHERE key = 'cache_misses' AND u.org = {org};
SELECT setval(pg_get_serial_sequence('kb_chunks', 'id'), greatest(o.last_chunk, 1)) FROM {old}.kb_orgs AS o
WHERE o.key = {org}"""

_SPACES = """
SELECT key, identity, recipe, is_active, was_active FROM {old}.kb_spaces
WHERE org = {org} AND identity IS NOT NULL ORDER BY key"""
_DESCRIBE = "UPDATE kb_models SET recipe = :recipe, was_active = :was_active WHERE key = :key"
_USE = "INSERT INTO kb_meta VALUES ('active_model', :key)"
_CACHED_MODELS = "SELECT DISTINCT identity FROM {old}.kb_embedding_cache WHERE org = {org}"
_CACHED = """
SELECT text_hash, vector, used FROM {old}.kb_embedding_cache
WHERE org = {org} AND identity = :identity AND text_hash > :after ORDER BY text_hash LIMIT :most"""
_VECTORS = """
SELECT array_agg(chunk), string_agg(vector_send(embedding), '') FROM (
    SELECT chunk, embedding FROM {old}.kb_vectors_{dimension:d}
    WHERE org = {org} AND space = :space AND chunk > :after ORDER BY chunk LIMIT :most) AS few"""
_EMBEDDED = f"""
SELECT {EMBEDDED} FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE c.id IN (:chunks...)"""
_KNOWN = "SELECT text_hash, id FROM kb_embeddings WHERE model = :model AND text_hash IN (:keys as bytes...)"
_LINK = "INSERT INTO kb_chunk_vectors (chunk, model, embedding) VALUES (:chunk, :model, :embedding)"
_OUTSIDE = """
INSERT INTO kb_chunk_vectors (chunk, model, embedding) SELECT c.id, :model, NULL FROM kb_chunks AS c
WHERE NOT EXISTS (SELECT FROM {old}.kb_pending AS p
    WHERE p.org = {org} AND p.space = :space AND p.chunk = c.id)"""
_HOME = "SELECT home, home_key, {birthplace}, {left_behind} FROM {old}.kb_orgs WHERE key = {org}"
_PUT_HOME = "INSERT INTO kb_vec_meta (key, value) VALUES (:key, :value)"
_OUTBOX = "INSERT INTO kb_outbox (chunk) SELECT chunk FROM {old}.kb_unsettled WHERE org = {org} ORDER BY turn"
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
    for statement in _CATALOG:
        session.run(shared.filled(statement))
    _move_chunks(session, shared)
    session.run(shared.filled(_COUNTERS))
    url = _move_home(session, shared, origin)
    models = _move_models(session, shared, tables)
    _move_cache(session, shared, tables)
    for space, model in models.items():
        if url:
            values = {"model": model.key, "space": space}
            session.run(shared.filled(_OUTSIDE), values)
        else:
            _move_vectors(session, shared, tables, space, model)
    session.run(f"UPDATE {shared.old}.kb_schema SET version = 13 WHERE version < 13")


def _columns(session: PostgresSession, shared: SharedTables, table: str, *names: str) -> dict[str, str]:
    """Return columns of a shared table by name, or what stands for those that it lacks."""
    rows = session.rows(_COLUMNS, {"table": f"{shared.old}.{table}"})
    known = {name for (name,) in rows}
    return {name: name if name in known else "NULL" for name in names}


def _move_chunks(session: PostgresSession, shared: SharedTables) -> None:
    optional = _columns(session, shared, "kb_chunks", "last_page", "start_column", "end_column")
    texts, insert = shared.filled(_TEXTS), shared.filled(_CHUNKS, **optional)
    after: ChunkId = 0
    while rows := session.rows(texts, {"after": after, "most": _AT_ONCE}):
        ids = [row[0] for row in rows]
        columns = [
            columns_of(title, list_of(tags), list_of(heading), text) for _, title, tags, heading, text in rows
        ]
        titles, _, tags, terms = zip(*columns, strict=True)
        session.run(insert, {"ids": ids, "titles": [*titles], "tags": [*tags], "terms": [*terms]})
        index_words(session, ids)
        after = ids[-1]
    if _columns(session, shared, "kb_names", "token")["token"] != "NULL":
        session.run(shared.filled(_NAMES))


def _move_home(session: PostgresSession, shared: SharedTables, origin: str) -> str:
    """Write down where vectors are kept; return the URL, which is empty if that is here."""
    optional = _columns(session, shared, "kb_orgs", "home", "home_key", "birthplace", "left_behind")
    if optional["home"] == "NULL":
        return ""
    ((url, key, birthplace, left),) = session.rows(shared.filled(_HOME, **optional))
    ending = session.value(shared.filled(_OLD_ORIGIN), {"tables": f"{shared.old}.kb_orgs"})
    if birthplace and birthplace.endswith(ending):  # drawn in these tables
        birthplace = origin
    kept = {"home": url, "key": key, "birthplace": birthplace or "", "left": left or ""}
    session.run_many(_PUT_HOME, [{"key": name, "value": value} for name, value in kept.items() if value])
    if url:
        session.run(shared.filled(_OUTBOX))
        session.run(DIALECT.watch)
    return str(url)


def _move_models(
    session: PostgresSession, shared: SharedTables, tables: PostgresVectorTables
) -> dict[int, Model]:
    """Make the models; return them by the keys of their spaces."""
    models: dict[int, Model] = {}
    for space, identity, recipe, is_active, was_active in session.rows(shared.filled(_SPACES)):
        models[space] = model = new_model(session, tables, identity_of(identity))
        values = {"key": model.key, "recipe": recipe, "was_active": int(was_active)}
        session.run(_DESCRIBE, values)
        if is_active:
            session.run(_USE, {"key": model.key})
    return models


def _move_cache(session: PostgresSession, shared: SharedTables, tables: PostgresVectorTables) -> None:
    for (name,) in session.rows(shared.filled(_CACHED_MODELS)):
        identity = identity_of(name)
        model = find_model(session, identity) or new_model(session, tables, identity, is_added=False)
        values = {"identity": name, "after": b"", "most": _AT_ONCE}
        while rows := session.rows(shared.filled(_CACHED), values):
            size = identity.dimension * FLOAT_BYTES
            new_embeddings(session, tables, model, [row for row in rows if len(row[1]) == size])
            values["after"] = rows[-1][0]
        forget_if_empty(session, tables, model)


def _move_vectors(
    session: PostgresSession, shared: SharedTables, tables: PostgresVectorTables, space: int, model: Model
) -> None:
    """Give chunks the vectors that the cache has for their texts, or else the ones that they had."""
    for vectors in _vectors(session, shared, space, model):
        texts = map(pending_of, session.rows(_EMBEDDED, {"chunks": list(vectors)}))
        keys = {text.chunk_id: text_hash(text) for text in texts}
        known = dict(session.rows(_KNOWN, {"model": model.key, "keys": [*keys.values()]}))
        missing = {key: vectors[chunk] for chunk, key in keys.items() if key not in known}
        ids = new_embeddings(session, tables, model, [(key, vector, 0) for key, vector in missing.items()])
        known |= dict(zip(missing, ids, strict=True))
        links = [{"chunk": chunk, "model": model.key, "embedding": known[key]} for chunk, key in keys.items()]
        session.run_many(_LINK, links)


def _vectors(
    session: PostgresSession, shared: SharedTables, space: int, model: Model
) -> Iterator[dict[ChunkId, Vector]]:
    """Yield the vectors of a space, some at a time."""
    dimension = model.identity.dimension
    statement = shared.filled(_VECTORS, dimension=dimension)
    values = {"space": space, "after": 0, "most": _AT_ONCE}
    while True:
        chunks, sent = session.execute(statement, values, binary=True).fetchone() or (None, b"")
        if not chunks:
            return
        yield dict(zip(chunks, from_wire(sent, dimension), strict=True))
        values["after"] = max(chunks)
