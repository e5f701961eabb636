"""A lock that processes share: an advisory lock of the server, freed when its holder's connection ends."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from concord.backends.postgres.connections import Connection, Connections
from concord.errors import StoreBusy

# Between two tries. Most locks are held for moments or for minutes.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5


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
    """Try until the wait is over.

    Not by one statement that waits: its snapshot would hold up an index that the holder builds concurrently,
    and the holder would be waited for in turn, which the server has no way to see.
    """
    deadline, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
    while not _is_given(connection, key):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return True


def _is_given(connection: Connection, key: int) -> bool:
    return connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone() == (True,)


def _key(org: int, name: str) -> int:
    """Return the number of a lock: the server knows them by nothing else."""
    digest = hashlib.sha256(f"{org}\n{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)
