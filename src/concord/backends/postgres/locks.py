"""A lock that processes share: an advisory lock of the server, freed when its holder's connection ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.errors import LockNotAvailable

from concord.backends.postgres.connections import Connection, Connections
from concord.errors import StoreBusy


@contextmanager
def shared_lock(connections: Connections, name: str, doing: str, wait_s: float) -> Iterator[None]:
    """Hold an organisation's lock of this name; whoever is refused is told what its holder is doing.

    Raises:
        StoreBusy: somebody else holds it for longer than `wait_s`.
    """
    key = _key(connections.org, name)
    with connections.session() as connection:
        if not _is_acquired(connection, key, wait_s):
            raise StoreBusy(f"another process is {doing}", hint="wait for it to finish, then try again")
        try:
            yield
        finally:
            with suppress(psycopg.Error):  # a connection that is lost has let go already
                connection.execute("SELECT pg_advisory_unlock(%s)", (key,))


def _is_acquired(connection: Connection, key: int, wait_s: float) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
    if (row and row[0]) or wait_s <= 0:
        return bool(row and row[0])
    connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{max(1, round(wait_s * 1000))}",))
    try:
        connection.execute("SELECT pg_advisory_lock(%s)", (key,))
        return True
    except LockNotAvailable:
        return False
    finally:
        connection.execute("SELECT set_config('lock_timeout', '0', false)")


def _key(org: int, name: str) -> int:
    """Return the number of a lock: the server knows them by nothing else."""
    digest = hashlib.sha256(f"{org}\n{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)
