"""Connections to the schema of one organisation, which are kept for the next call.

Statements take no longer than the caller waits: the server breaks off what takes longer, and one that does
not even do that is given up a moment later. Searches mostly allow the same time, so a connection is told only
when that changes: no search pays a trip for it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import selectors
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import FloatLoader
from psycopg.types.string import TextLoader

from concord.core.call_limit import limit_ms
from concord.core.errors import BackendDown, BadValue, StoreBusy
from concord.core.values import check_org
from concord.store.postgres.errors import translated

# It warns of everything that a stopped server takes along; the caller gets an error anyway.
logging.getLogger("psycopg").setLevel(logging.ERROR)

Connection = psycopg.Connection[tuple[Any, ...]]

# A search asks at most four things at once and a sync holds two connections; a server has 100 by default.
MOST_CONNECTIONS = 12
KEPT_CONNECTIONS = 4  # while nobody uses them
WAIT_S = 10.0  # for a connection that somebody else uses
_GRACE_S = 1.0  # for the server to break off by itself, which keeps the connection
_TICK_S = 0.1  # between two looks at the clock while nothing arrives
_LONGEST_MS = 2**31 - 1  # that the server can be told
# A server that does not answer must be told from a slow one before a tool call gives up (10 s).
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 30,
    "application_name": "concord",
    "client_encoding": "UTF8",
}
# The type and the operators of pgvector are found where the role looks for them otherwise. Our statements run
# in one way whatever the values, and planning one takes 0.8 ms: it is planned once. A limit of time that an
# administrator has set for the role is kept where the caller sets none.
_BEGIN = """
SELECT set_config('search_path', %s || ', ' || current_setting('search_path'), false),
    set_config('jit', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('statement_timeout', coalesce(%s, current_setting('statement_timeout')), false)"""
_LONGEST_ORG = 60  # letters: a name in PostgreSQL has 63


class Location(NamedTuple):
    """How to connect, and to which schema."""

    conninfo: str
    server: str  # for messages: without user and password
    org: str
    schema: str


def locate(url: str, org: str) -> Location:
    """Return where an organisation is kept: `postgresql://user:password@host:5432/database?option=value`."""
    check_org(org)
    try:
        given = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
        conninfo = make_conninfo(**{**_DEFAULTS, **given})
        int(given.get("connect_timeout", 0))  # the one number that psycopg reads itself
    except (psycopg.Error, ValueError) as error:
        raise BadValue(
            "the store's URL is not one that PostgreSQL understands",
            hint="write postgresql://user@host:5432/database",
        ) from error
    place = f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}"
    database = given.get("dbname") or given.get("user") or ""
    return Location(conninfo, f"{place}/{database}", org, schema_of(org))


def schema_of(org: str) -> str:
    """Return the name of an organisation's schema; PostgreSQL would cut a long one short."""
    if len(org) <= _LONGEST_ORG:
        return f"kb_{org}"
    return f"kb_{org[:40]}~{hashlib.sha256(org.encode()).hexdigest()[:16]}"  # no organisation has a ~


class Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows how long its statements may take."""

    _bound_ms: int | None = None

    def begin(self, location: Location, allowed_ms: float | None) -> None:
        """Make the settings of a new connection, how long statements may take among them."""
        bound = _whole(allowed_ms)
        values = (f'"{location.schema}"', None if bound is None else str(bound))
        self.execute(_BEGIN, values)
        self._bound_ms = bound
        self.adapters.register_loader("json", TextLoader)
        self.adapters.register_loader("numeric", FloatLoader)

    def bind(self, allowed_ms: float | None) -> None:
        """Let each statement from now on take no longer; None for as long as it takes."""
        bound = _whole(allowed_ms)
        if bound == self._bound_ms:
            return
        self._bound_ms = bound  # already while the server is told
        try:
            self.execute("RESET statement_timeout" if bound is None else f"SET statement_timeout = {bound}")
        except psycopg.Error:
            self.close()  # nobody knows whether it was
            raise

    def wait(self, gen: PQGen[RV], interval: float = _TICK_S, *more: Any, **named: Any) -> RV:
        """Wait for the server, as psycopg does everywhere; one that keeps silent for too long is given up."""
        if self._bound_ms is None:
            return super().wait(gen, interval, *more, **named)
        ends = time.monotonic() + self._bound_ms / 1000 + _GRACE_S
        try:
            return super().wait(_answered(gen, ends), interval, *more, **named)
        except _Unanswered:
            self.close()  # whatever comes now would be taken for the answer to another question
            raise

    @property
    def can_be_used(self) -> bool:
        """Whether it waits for a statement: what a server sends unasked is that it has ended."""
        if self.closed or self.info.transaction_status != TransactionStatus.IDLE:
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno(), selectors.EVENT_READ)
            return not selector.select(0)


class _Unanswered(psycopg.OperationalError):
    """The server keeps silent for longer than the caller waits."""


def _answered(gen: PQGen[RV], ends: float) -> PQGen[RV]:
    """Pass on what arrives, until nothing has for too long."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise _Unanswered("nothing came for too long")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result


def _whole(allowed_ms: float | None) -> int | None:
    return None if allowed_ms is None else math.ceil(min(allowed_ms, _LONGEST_MS))


def connect(location: Location) -> Bounded:
    """Return a new connection, in autocommit."""
    connection = Bounded.connect(location.conninfo, autocommit=True)
    connection.begin(location, limit_ms())
    return connection


def _wait_s() -> float:
    allowed_ms = limit_ms()
    return WAIT_S if allowed_ms is None else min(WAIT_S, allowed_ms / 1000)


class Connections:
    """The connections of one store."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._idle: list[Bounded] = []  # those used last come last; append and pop are atomic
        self._is_closed = False

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection for a transaction; it is committed when the block ends, all of it or nothing."""
        with self.session() as connection, connection.transaction():
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Lend a connection for as long as the block takes, each statement a transaction of its own."""
        server = self.location.server
        if self._is_closed:
            raise BackendDown(f"the connection to {server} was closed", hint="open it again")
        if not self._places.acquire(timeout=_wait_s()):
            raise StoreBusy(f"all connections to PostgreSQL at {server} are in use", hint="try again later")
        try:
            with translated(server), self._lent() as connection:
                yield connection
        finally:
            self._places.release()

    @contextmanager
    def _lent(self) -> Iterator[Bounded]:
        connection = self._kept() or connect(self.location)
        try:
            connection.bind(limit_ms())
            yield connection
        except psycopg.Error as error:  # what was prepared in a pipeline that broke off, one side knows only
            connection.close()
            if error.sqlstate is None:  # what has ended this one has ended the others: nobody waits for each
                self._close_kept()
            raise
        finally:
            if len(self._idle) < KEPT_CONNECTIONS and connection.can_be_used and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close all connections; those that are lent follow."""
        self._is_closed = True
        self._close_kept()

    def _close_kept(self) -> None:
        while connection := self._popped():
            connection.close()

    def _kept(self) -> Bounded | None:
        while connection := self._popped():
            if connection.can_be_used:
                return connection
            connection.close()
        return None

    def _popped(self) -> Bounded | None:
        try:
            return self._idle.pop()
        except IndexError:  # not `if self._idle`: another thread may take the last
            return None
