"""Connections to one organisation's rows: a pool that fails at once while the server is down, and recovers.

Every connection says for whom it works (`concord.org`), which the row-level policies read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from concord.backends.postgres.bounded import GRACE_S, Bounded
from concord.backends.postgres.connection_errors import is_full
from concord.backends.postgres.faults import is_lost, translated
from concord.backends.postgres.location import Location
from concord.backends.postgres.vector_form import register_vectors
from concord.core.call_limit import limit_ms

# It warns of everything that a stopped server takes along, connections of the pool and pipelines; whoever
# needs one is told anyway.
logging.getLogger("psycopg").setLevel(logging.ERROR)

Connection = psycopg.Connection[tuple[Any, ...]]
Rows = psycopg.Cursor[tuple[Any, ...]]  # what a statement has asked for
T = TypeVar("T")
Org = int | Callable[[], int]  # the key of an organisation, or what gives it one

# A search asks at most four things at once and a sync holds two connections; a server has 100 by default.
MOST_CONNECTIONS = 12
WAIT_S = 10.0  # for a connection that somebody else uses
# Our statements run in one way whatever the values, and planning one takes 0.8 ms: it is planned once.
_SETTINGS = (
    "SELECT set_config('concord.org', %s, false), set_config('jit', 'off', false),"
    " set_config('plan_cache_mode', 'force_generic_plan', false)"
)


def connect(location: Location) -> Bounded:
    """Open a connection of its own, in autocommit."""
    connection = Bounded.connect(location.conninfo, autocommit=True)
    connection.begin(_SETTINGS, (location.org,), limit_ms())
    return connection


class Connections:
    """The pool of one store."""

    def __init__(self, location: Location, org: Org, options: Mapping[str, Any] | None = None) -> None:
        self.location = location
        self._org = org
        # What building an index may use; None leaves it to the server.
        self.index_memory_mb: int | None = options["store.index_memory_mb"] if options else None
        # What most searches allow: a connection that begins with it need not be told.
        self._usual_ms: float | None = options["search.deadline_ms"] if options else None
        self._is_doubtful = threading.Event()  # set while the server may be down
        self._pool = ConnectionPool(
            location.conninfo,
            connection_class=Bounded,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=MOST_CONNECTIONS,
            timeout=WAIT_S,
            configure=self._configure,
            open=True,
        )

    @property
    def org(self) -> int:
        """The key of the organisation: every statement names it."""
        org = self._org  # read once: another thread may get the key at the same time
        if callable(org):
            org = self._org = org()
        return org

    @property
    def has_org(self) -> bool:
        """Whether the organisation has a key; whoever asks for one that has none gives it one."""
        return not callable(self._org)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what a piece of reading comes to; it is done again when a connection had died unnoticed."""
        with translated(self.location.server):
            try:
                return self._on_connection(work)
            except (psycopg.OperationalError, psycopg.InterfaceError) as fault:
                if not is_lost(fault):
                    raise
                return self._on_connection(work)

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about the organisation."""
        values["org"] = self.org
        return self.read(lambda connection: connection.execute(statement, values).fetchall())

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection for a transaction; it is committed when the block ends, all of it or nothing."""
        with translated(self.location.server), self._lent() as connection, connection.transaction():
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Lend a connection for as long as the block takes, each statement a transaction of its own."""
        with translated(self.location.server), self._lent() as connection:
            yield connection

    @contextmanager
    def watching(self, connection: Connection) -> Iterator[None]:
        """Say what became of a statement on a connection that was lent before."""
        with translated(self.location.server), self._noting_loss(connection):
            yield

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _on_connection(self, work: Callable[[Connection], T]) -> T:
        """Do what `_lent` does, for the trips of a search: three context managers take as long as some."""
        connection = self._borrow()
        try:
            connection.bind(limit_ms())
            return work(connection)
        except BaseException as fault:
            self._note_loss(connection, fault)
            raise
        finally:
            self._pool.putconn(connection)

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        connection = self._borrow()
        try:
            with self._noting_loss(connection):
                connection.bind(limit_ms())
                yield connection
        finally:
            self._pool.putconn(connection)

    def _borrow(self) -> Bounded:
        self._make_sure()
        allowed = limit_ms()
        # One that has yet to be opened takes a while, however little the first search allows.
        return self._pool.getconn(WAIT_S if allowed is None else min(WAIT_S, allowed / 1000 + GRACE_S))

    @contextmanager
    def _noting_loss(self, connection: Connection) -> Iterator[None]:
        try:
            yield
        except BaseException as fault:
            self._note_loss(connection, fault)
            raise

    def _note_loss(self, connection: Connection, fault: BaseException) -> None:
        if connection.closed or is_lost(fault):
            self._is_doubtful.set()

    def _make_sure(self) -> None:
        """After a loss, ask the server before the pool: a refusal takes no time, the pool would wait."""
        if self._is_doubtful.is_set():
            try:
                connect(self.location).close()
            except psycopg.OperationalError as fault:
                if not is_full(fault):
                    raise
                self._pool.check()  # it answers: those that live stay ours, whoever else wants their places
            else:
                self._pool.drain()  # those that died with the server are replaced; asking them may take long
            self._is_doubtful.clear()

    def _configure(self, connection: Bounded) -> None:
        connection.begin(_SETTINGS, (self.location.org,), self._usual_ms)
        register_vectors(connection)
