"""Locks that processes share: advisory locks of the server, freed when their holder's connection ends."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg

from concord.store.postgres.connections import Connection, Connections
from concord.store.store_errors import locked

# Between two tries. Most locks are held for moments or for minutes.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5

# Whoever holds a lock works on other connections: this one is idle, which a server may be set to take ill.
_TRY = "SELECT pg_try_advisory_lock(%s), set_config('idle_session_timeout', '0', false)"

_LOG = logging.getLogger(__name__)
_LOST = (
    "the connection that kept other processes out was lost on the way, so that one may have written the same:"
    " sync once more"
)


class Locks:
    """The locks of one store, all on one connection, which the pool lends while any is held or waited for.

    The server gives a connection the same lock twice; who holds which in this process is therefore kept here.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = threading.Lock()  # for everything below
        self._held: set[int] = set()
        self._users = 0
        self._connection: Connection | None = None
        self._lent = ExitStack()

    @contextmanager
    def hold(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        """Hold an organisation's lock of this name; the error of a caller who is refused names `doing`.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        key = _key(self._connections.location.schema, name)
        with self._using():
            holder = self._acquired(key, wait_s)
            if holder is None:
                raise locked(doing)
            try:
                yield
            except BaseException:
                self._release(key, holder)
                raise
            if not self._release(key, holder):
                _LOG.warning(_LOST)

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Let the connection stay until nobody needs it."""
        with self._turn:
            self._users += 1
        try:
            yield
        finally:
            with self._turn:
                self._users -= 1
                if not self._users:
                    self._give_back()

    def _acquired(self, key: int, wait_s: float) -> Connection | None:
        """Try until the wait is over; return the connection that has the lock.

        Not by one statement that waits: its snapshot would hold up an index that the holder builds
        concurrently, and the holder would be waited for in turn, which the server has no way to see.
        """
        deadline, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
        while (holder := self._try(key)) is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return holder

    def _try(self, key: int) -> Connection | None:
        with self._turn:
            if key in self._held:
                return None
            connection = self._borrowed()
            with self._connections.watching(connection):
                taken, _ = connection.execute(_TRY, (key,)).fetchone() or (False, "")
            if not taken:
                return None
            self._held.add(key)
            return connection

    def _release(self, key: int, holder: Connection) -> bool:
        """Let go of a lock; return whether it was ours until now."""
        with self._turn:
            self._held.discard(key)
            with suppress(psycopg.Error):  # a connection that is lost has let go already
                return holder.execute("SELECT pg_advisory_unlock(%s)", (key,)).fetchone() == (True,)
            return False

    def _borrowed(self) -> Connection:
        """Return the connection of all locks: another one after it was lost, and its locks with it."""
        if self._connection is None or self._connection.closed:
            self._give_back()
            self._connection = self._lent.enter_context(self._connections.session())
        return self._connection

    def _give_back(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.execute("RESET idle_session_timeout")
        self._connection = None
        self._lent.close()


def _key(schema: str, name: str) -> int:
    """Return the number of a lock: the server knows them by nothing else."""
    digest = hashlib.sha256(f"{schema}\n{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], signed=True)
