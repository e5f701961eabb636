"""Which spaces of vectors an organisation has, row by row, inside a transaction that the caller holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from concord.backends.postgres.cache import identity_column, identity_of
from concord.backends.postgres.connections import Connection
from concord.backends.postgres.schema import vector_table, vectors
from concord.store.vector_checks import check_identity
from concord.types import Identity

_ROW = "SELECT key, identity, dimension, is_active FROM kb_spaces WHERE org = %s AND "
_LOCK = "SELECT FROM kb_orgs WHERE key = %s FOR UPDATE"
_COUNT_VECTORS = """
SELECT o.chunks - (SELECT count(*) FROM kb_pending WHERE org = %(org)s AND space = %(space)s)
FROM kb_orgs AS o WHERE o.key = %(org)s"""
_GIVE = "UPDATE kb_spaces SET identity = %s, dimension = %s WHERE org = %s AND key = %s"
_ACTIVATE = """
UPDATE kb_spaces SET is_active = (key = %(key)s), was_active = was_active OR key = %(key)s
WHERE org = %(org)s"""
_ADD = """
INSERT INTO kb_spaces (org, key, identity, dimension)
SELECT %(org)s, 1 + max(key), %(identity)s, %(dimension)s FROM kb_spaces WHERE org = %(org)s RETURNING key"""
_ALL_WAIT = "INSERT INTO kb_pending SELECT org, %(key)s, id FROM kb_chunks WHERE org = %(org)s"

_GRANTS = """
SELECT format(
    'GRANT %%s ON %%I TO %%s', string_agg(DISTINCT a.privilege_type, ', '), %s::text,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
WHERE c.oid = 'kb_chunks'::regclass AND pg_get_userbyid(a.grantee) <> current_user GROUP BY a.grantee"""


class SpaceRow(NamedTuple):
    """A space; the one that is there from the start has no identity until the first embedder is known."""

    key: int
    identity: str | None
    dimension: int | None
    is_active: bool


def find_space(connection: Connection, org: int, identity: Identity | None) -> SpaceRow | None:
    """Return the space of an identity, or without one the active space."""
    if identity is None:
        row = connection.execute(_ROW + "is_active", (org,)).fetchone()
    else:
        row = connection.execute(_ROW + "identity = %s", (org, identity_column(identity))).fetchone()
    return SpaceRow(*row) if row else None


def count_vectors(connection: Connection, org: int, key: int) -> int:
    """Return how many chunks have a vector in a space, wherever it is kept."""
    row = connection.execute(_COUNT_VECTORS, {"org": org, "space": key}).fetchone()
    return int(row[0]) if row else 0


def take_over(connection: Connection, org: int, identity: Identity) -> None:
    """Make the active space that of an identity; refused while it holds vectors of another."""
    connection.execute(_LOCK, (org,))
    active, own = find_space(connection, org, None), find_space(connection, org, identity)
    assert active is not None  # there is always one
    if count_vectors(connection, org, active.key):
        check_identity(identity_of(active.identity), identity)
    if own is None:
        give(connection, org, active.key, identity)
    elif own.key != active.key:
        make_active(connection, org, own.key)
        forget_space(connection, org, active)


def give(connection: Connection, org: int, key: int, identity: Identity) -> None:
    """Let an empty space be that of an identity."""
    make_table(connection, identity.dimension)
    connection.execute(_GIVE, (identity_column(identity), identity.dimension, org, key))


def add_space(connection: Connection, org: int, identity: Identity) -> int:
    """Add a space in which every chunk waits for a vector; the first one is the active one."""
    active = find_space(connection, org, None)
    if active is not None and active.identity is None:
        give(connection, org, active.key, identity)
        return active.key
    make_table(connection, identity.dimension)
    values: dict[str, Any] = {"org": org, "dimension": identity.dimension}
    row = connection.execute(_ADD, {**values, "identity": identity_column(identity)}).fetchone()
    assert row is not None
    connection.execute(_ALL_WAIT, {"org": org, "key": row[0]})
    return int(row[0])


def make_active(connection: Connection, org: int, key: int) -> None:
    """Let searches use a space."""
    connection.execute(_ACTIVATE, {"org": org, "key": key})


def forget_space(connection: Connection, org: int, space: SpaceRow) -> int:
    """Delete a space and all that is in it; return how many vectors. Its row goes first: see `put`."""
    connection.execute("DELETE FROM kb_spaces WHERE org = %s AND key = %s", (org, space.key))
    gone = count_vectors(connection, org, space.key)
    connection.execute("DELETE FROM kb_pending WHERE org = %s AND space = %s", (org, space.key))
    if space.dimension is not None:
        table = vector_table(space.dimension)
        connection.execute(f"DELETE FROM {table} WHERE org = %s AND space = %s", (org, space.key))
    return gone


def lock_spaces(connection: Connection, org: int) -> None:
    """Wait for one's turn to change the spaces of an organisation."""
    connection.execute(_LOCK, (org,))


def make_table(connection: Connection, dimension: int) -> None:
    """Make the table for vectors of a dimension, where no organisation needed it before.

    Whoever may use the other tables may use it as well: they were made, and rights for them given, before.
    """
    exists = "SELECT to_regclass(%s) IS NOT NULL"
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('kb_vectors'))")  # two may need it at once
    if connection.execute(exists, (vector_table(dimension),)).fetchone() == (False,):
        connection.execute(vectors(dimension))
        for (grant,) in connection.execute(_GRANTS, (vector_table(dimension),)).fetchall():
            connection.execute(grant)
