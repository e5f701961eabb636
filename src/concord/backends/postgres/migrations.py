"""Bringing a database to this program's schema: from nothing, or from an older one, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from concord.backends.postgres import schema
from concord.backends.postgres.bounded import Bounded
from concord.backends.postgres.connection_errors import is_crowded
from concord.backends.postgres.connections import Connection, connect
from concord.backends.postgres.faults import translated
from concord.backends.postgres.location import Location
from concord.core.errors import Action, CorruptStore, Hint, SchemaTooNew, StoreError

_LOCK = 0x6B62636F  # one migration at a time, whoever starts it

OLDEST_PGVECTOR = (0, 8)
# A connection that was closed counts until its process has ended: a role of few would now and then
# not be let in right after its own last command.
_PAUSES_S = (0.02, 0.08, 0.2, 0.7)

# With the schema of an extension whose type is not found by its name alone, as our statements call it.
_IS_KNOWN = """
SELECT to_regclass('kb_schema') IS NOT NULL, (
    SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector' AND to_regtype('vector') IS NULL)"""
_MAKE_KNOWN = "CREATE TABLE kb_schema (version integer NOT NULL); INSERT INTO kb_schema VALUES (0)"
_FOREIGN = "SELECT to_regclass('kb_chunks') IS NOT NULL"
_PUT_ORG = "INSERT INTO kb_orgs (name) VALUES (%s) ON CONFLICT (name) DO NOTHING"
# A space of vectors is there from the start: chunks wait for a vector in it before anybody knows whose.
_PUT_SPACE = """
INSERT INTO kb_spaces (org, key, is_active, was_active) SELECT key, 1, true, true FROM kb_orgs
WHERE name = %(name)s AND NOT EXISTS (SELECT FROM kb_spaces AS s WHERE s.org = kb_orgs.key)
ON CONFLICT DO NOTHING"""
_ORG = "SELECT key FROM kb_orgs WHERE name = %s"


def _first(connection: Connection) -> None:
    connection.execute(f"CREATE EXTENSION IF NOT EXISTS {schema.EXTENSION}")
    _refuse_old_pgvector(connection)
    connection.execute(schema.FIRST)


def _ledger(connection: Connection) -> None:
    """Vectors that are kept elsewhere."""
    connection.execute(schema.LEDGER)


def _last_pages(connection: Connection) -> None:
    """Passages that end on a later page than they begin on."""
    connection.execute("ALTER TABLE kb_chunks ADD COLUMN last_page integer")


def _without_gin(connection: Connection) -> None:
    """Indexes that policies kept from being used: words are found through postings alone."""
    connection.execute(schema.WITHOUT_GIN)


def _plain_postings(connection: Connection) -> None:
    """Arrays of postings as they are, not compressed."""
    connection.execute(schema.PLAIN_POSTINGS)


def _types(connection: Connection) -> None:
    """Types of documents; policies show one organisation alone, so each finds its own later."""
    connection.execute(schema.TYPES)


def _left_behind(connection: Connection) -> None:
    """Places that vectors were moved away from."""
    connection.execute(schema.LEFT_BEHIND)


def _birthplace(connection: Connection) -> None:
    """Where the key for vectors outside was drawn; of those that there are, nobody knows."""
    connection.execute(schema.BIRTHPLACE)


def _any_query(connection: Connection) -> None:
    """Opinions on queries of any length."""
    connection.execute(schema.ANY_QUERY)


def _own_postings(connection: Connection) -> None:
    """Part of the table of postings that COPY can write to."""
    connection.execute(schema.OWN_POSTINGS)


def _names(connection: Connection) -> None:
    """Names of chunks, and columns; there are none until chunks are indexed anew."""
    connection.execute(schema.NAMES)


def _refuse_old_pgvector(connection: Connection) -> None:
    """Refuse a pgvector whose graph cannot be walked on until a filter has let enough through."""
    version = str(_value(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        wanted = ".".join(map(str, OLDEST_PGVECTOR))
        raise StoreError(
            f"the server has pgvector {version}; {wanted} or newer is needed",
            hint="upgrade it, then run ALTER EXTENSION vector UPDATE",
        )


# The step at index n leads from version n to version n + 1. A step that was released never changes.
STEPS: tuple[Callable[[Connection], None], ...] = (
    _first,
    _ledger,
    _last_pages,
    _without_gin,
    _plain_postings,
    _types,
    _left_behind,
    _birthplace,
    _any_query,
    _own_postings,
    _names,
)
VERSION = len(STEPS)


def bring_up_to_date(location: Location) -> int | None:
    """Make the database usable and return the organisation's key; None when it has never kept anything.

    Raises:
        SchemaTooNew: a newer program wrote it.
        CorruptStore: it holds another program's tables.
        BackendDown: the server does not answer.
        StoreError: it lacks an extension, or the role may not make tables.
    """
    with translated(location.server), _connected(location) as connection:
        if _version(connection, location) < VERSION:
            _migrate(connection, location)
        return _org(connection, location.org)


def make_org(location: Location) -> int:
    """Return the key of an organisation, which gets one now unless it has."""
    with translated(location.server), _connected(location) as connection:
        with connection.transaction():
            connection.execute(_PUT_ORG, (location.org,))
            connection.execute(_PUT_SPACE, {"name": location.org})
        made = _org(connection, location.org)
    assert made is not None
    return made


def _connected(location: Location) -> Bounded:
    for pause in _PAUSES_S:
        try:
            return connect(location)
        except psycopg.OperationalError as fault:
            if not is_crowded(fault):
                raise
            time.sleep(pause)
    return connect(location)


def _migrate(connection: Bounded, location: Location) -> None:
    # Freed when the connection ends. Not inside the transaction: one that has begun may go on believing that
    # there are no tables while another process makes them.
    connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    connection.bind(None)  # waiting may be cut off, migrating takes as long as it takes
    with connection.transaction():
        # Read again under the lock: another process may have done the work meanwhile.
        version = _version(connection, location)
        if not version:
            _refuse_foreign(connection, location)
            connection.execute(_MAKE_KNOWN)
        for step in STEPS[version:]:
            step(connection)
        connection.execute("UPDATE kb_schema SET version = %s", (VERSION,))


def _version(connection: Connection, location: Location) -> int:
    is_known, hidden_in = connection.execute(_IS_KNOWN).fetchone() or (False, None)
    if hidden_in is not None:
        raise _hidden_pgvector(hidden_in, location)
    if not is_known:
        return 0
    version = int(_value(connection, "SELECT version FROM kb_schema"))
    if version > VERSION:
        raise SchemaTooNew(
            f"PostgreSQL at {location.server} has schema {version}; this program knows up to {VERSION}",
            hint=Hint(Action.UPGRADE, package="concord-kb"),
        )
    return version


def _hidden_pgvector(where: str, location: Location) -> StoreError:
    return StoreError(
        f"PostgreSQL at {location.server} has pgvector in the schema {where}, where the role does not look",
        hint=f"let an administrator run GRANT USAGE ON SCHEMA {where} TO the role, and ALTER ROLE … SET"
        f' search_path = "$user", public, {where}; or ALTER EXTENSION vector SET SCHEMA public',
    )


def _refuse_foreign(connection: Connection, location: Location) -> None:
    if _value(connection, _FOREIGN):
        raise CorruptStore(
            f"PostgreSQL at {location.server} holds another program's tables",
            hint="use another database, or drop its kb_ tables",
        )


def _org(connection: Connection, name: str) -> int | None:
    found = connection.execute(_ORG, (name,)).fetchone()
    return int(found[0]) if found else None


def _value(connection: Connection, statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    return row[0] if row else 0
