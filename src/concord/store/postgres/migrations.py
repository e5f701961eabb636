"""Making the schema of an organisation and leading it here from an earlier version.

What versions up to 12 kept in shared tables is moved there.
"""

from __future__ import annotations

from concord.core.errors import Action, CorruptStore, Hint, SchemaTooNew, StoreError
from concord.store.links import name_all
from concord.store.postgres import postings
from concord.store.postgres.connections import Bounded, Connection, Location, connect
from concord.store.postgres.database import DIALECT, PostgresSession, origin_of
from concord.store.postgres.errors import translated
from concord.store.postgres.shared_tables import find_shared, move
from concord.store.postgres.vectors import PostgresVectorTables
from concord.store.postgres.words import Scopes
from concord.store.schema import LINKS, create

VERSION = 15
# What leads from a version to the next, from the first in which an organisation had a schema of its own.
_FIRST = 13
_STEPS = ("ALTER TABLE kb_sources ADD COLUMN about text NOT NULL DEFAULT ''", LINKS.format(**DIALECT.types))
OLDEST_PGVECTOR = (0, 8)
_LOCK = 0x6B62636F  # one at a time makes or moves tables

_LOOK = """
SELECT to_regclass(%(own)s || '.kb_meta') IS NOT NULL, to_regclass(%(own)s || '.kb_chunks') IS NOT NULL"""
# Whose base it is: that of the tables that organisations shared, or else of where the role looks first.
_PUT_BASE = """
INSERT INTO kb_vec_meta SELECT 'base', coalesce(
    (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.oid = to_regclass('kb_schema')),
    (array_remove(current_schemas(false), %s))[1], '')"""
_BASE = """
SELECT value, value = '' OR value = ANY(current_schemas(false)) FROM kb_vec_meta WHERE key = 'base'"""
_EXTENSION = """
SELECT e.extversion, n.nspname, to_regtype('vector') IS NOT NULL
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"""


def bring_up_to_date(location: Location) -> bool:
    """Make what is stored usable; return whether anything is."""
    with translated(location.server), connect(location) as connection:
        is_made, _ = _look(connection, location)
        if is_made:
            version = _checked_version(connection, location)
            _check_base(connection, location)
            if version < VERSION:
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
            is_made, has_chunks = _look(connection, location)
            if has_chunks and not is_made:
                raise CorruptStore(
                    f"the schema {location.schema} in PostgreSQL at {location.server} holds another program's"
                    " tables",
                    hint="use another organisation or database, or drop its kb_ tables",
                )
            if not is_made:
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
    _make_extension(connection, location)
    if connection.execute("SELECT to_regnamespace(%s)", (f'"{location.schema}"',)).fetchone() == (None,):
        connection.execute(f'CREATE SCHEMA "{location.schema}"')
    connection.execute(create(DIALECT))
    connection.execute(postings.TABLES)
    connection.execute("INSERT INTO kb_meta VALUES ('schema', %s)", (VERSION,))
    connection.execute(_PUT_BASE, (location.schema,))
    session = PostgresSession(connection)
    if shared := find_shared(session, location.org):
        move(session, shared, PostgresVectorTables(Scopes()), origin_of(session, location.schema))
        session.finish()


def _make_extension(connection: Connection, location: Location) -> None:
    """Make pgvector usable: where the role looks for tables of its own, not in one organisation's schema."""
    if connection.execute(_EXTENSION).fetchone() is None:
        (path,) = connection.execute("SELECT current_setting('search_path')").fetchone() or ("",)
        connection.execute("SET LOCAL search_path TO DEFAULT; CREATE EXTENSION vector")
        connection.execute("SELECT set_config('search_path', %s, true)", (path,))
    version, schema, is_seen = connection.execute(_EXTENSION).fetchone() or ("0.0", "", False)
    if not is_seen:
        raise StoreError(
            f"PostgreSQL at {location.server} has pgvector in the schema {schema}, where the role does not"
            " look",
            hint=f"let an administrator run GRANT USAGE ON SCHEMA {schema} TO the role, and ALTER ROLE … SET"
            f' search_path = "$user", public, {schema}',
        )
    if tuple(map(int, version.split(".")[:2])) < OLDEST_PGVECTOR:
        wanted = ".".join(map(str, OLDEST_PGVECTOR))
        raise StoreError(
            f"the server has pgvector {version}; {wanted} or newer is needed",
            hint="upgrade it, then run ALTER EXTENSION vector UPDATE",
        )


def _look(connection: Connection, location: Location) -> tuple[bool, bool]:
    """Return whether an organisation's tables are there, and whether a table is that is called as ours."""
    row = connection.execute(_LOOK, {"own": f'"{location.schema}"'}).fetchone()
    return (row[0], row[1]) if row else (False, False)


def _checked_version(connection: Connection, location: Location) -> int:
    row = connection.execute("SELECT value FROM kb_meta WHERE key = 'schema'").fetchone()
    version = int(row[0]) if row else 0
    if version > VERSION:
        raise SchemaTooNew(
            f"PostgreSQL at {location.server} has schema {version}; this program knows up to {VERSION}",
            hint=Hint(Action.UPGRADE, package="concord-kb"),
        )
    return version


def _check_base(connection: Connection, location: Location) -> None:
    """Refuse the schema of a base that is told apart from ours by nothing but where its role looks."""
    base, is_ours = connection.execute(_BASE).fetchone() or ("", True)
    if not is_ours:
        raise StoreError(
            f"the schema {location.schema} in PostgreSQL at {location.server} is of the knowledge base that"
            f" was made in the schema {base}, where the role does not look",
            hint=f"use another organisation or database; or, if it is yours, let the role look there: ALTER"
            f" ROLE … SET search_path = {base}, …",
        )
