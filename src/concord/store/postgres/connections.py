"""Connections to the schema of one organisation: a pool that fails at once while the server is down.

Statements take no longer than the caller waits: the server breaks off what takes longer, and one that does
not even do that is given up a moment later. Searches mostly allow the same time, so a connection is told only
when that changes: no search pays a trip for it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import RV, Buffer, PQGen
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format
from psycopg.types.numeric import FloatLoader
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown
from psycopg_pool import ConnectionPool

from concord.core.call_limit import limit_ms
from concord.core.errors import BadValue
from concord.core.values import check_org
from concord.store.files import locked
from concord.store.postgres.errors import Unanswered, is_crowded, is_full, is_lost, translated

# It warns of everything that a stopped server takes along, connections of the pool and pipelines; the caller
# who needs one gets an error anyway.
logging.getLogger("psycopg").setLevel(logging.ERROR)

Connection = psycopg.Connection[tuple[Any, ...]]

# A search asks at most four things at once and a sync holds two connections; a server has 100 by default.
MOST_CONNECTIONS = 12
WAIT_S = 10.0  # for a connection that somebody else uses
_GRACE_S = 1.0  # for the server to break off by itself, which keeps the connection
_TICK_S = 0.1  # between two looks at the clock while nothing arrives
_LONGEST_MS = 2**31 - 1  # that the server can be told
# A connection that was closed counts until its process has ended: a role of few would now and then not be let
# in right after its own last command.
_PAUSES_S = (0.02, 0.08, 0.2, 0.7)
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
_ESCAPE = "\x1b"
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


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return _unescaped(str(data, "utf-8"))


class _TextBinaryLoader(_TextLoader):
    format = Format.BINARY


class _JsonLoader(Loader):
    """Lists of texts, or of lists of them, that the server has made."""

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return json.dumps(_all_unescaped(json.loads(text))) if r"\u001b" in text else text


def _all_unescaped(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_all_unescaped, value)]
    return _unescaped(value) if isinstance(value, str) else value


# PostgreSQL's text holds every character but NUL: ESC 0 stands for it, and ESC e for ESC itself.
def _unescaped(text: str) -> str:
    if _ESCAPE in text:
        return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "e", _ESCAPE)
    return text


def escaped(text: str) -> str:
    """Return a text in a form that PostgreSQL can keep; what is read has its own form again."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ESCAPE + "e").replace("\0", _ESCAPE + "0")
    return text


class _StrDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj))


class _StrBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj))


_LOADERS: tuple[tuple[str, type[Loader]], ...] = (
    ("text", _TextLoader),
    ("text", _TextBinaryLoader),
    ("json", _JsonLoader),
    ("numeric", FloatLoader),
)


class Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows how long its statements may take."""

    _bound_ms: int | None = None

    def begin(self, location: Location, allowed_ms: float | None) -> None:
        """Make the settings of a new connection, how long statements may take among them."""
        bound = _whole(allowed_ms)
        values = (f'"{location.schema}"', None if bound is None else str(bound))
        self.execute(_BEGIN, values)
        self._bound_ms = bound
        for dumper in (_StrBinaryDumper, _StrDumper):  # the last one is the default
            self.adapters.register_dumper(str, dumper)
        for name, loader in _LOADERS:
            self.adapters.register_loader(name, loader)

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
        """Wait for the server, as psycopg does everywhere; raises Unanswered when it is given up."""
        if self._bound_ms is None:
            return super().wait(gen, interval, *more, **named)
        allowed_s = self._bound_ms / 1000 + _GRACE_S
        try:
            return super().wait(_answered(gen, allowed_s), interval, *more, **named)
        except Unanswered:
            self.close()  # whatever comes now would be taken for the answer to another question
            raise


def _answered(gen: PQGen[RV], allowed_s: float) -> PQGen[RV]:
    """Pass on what arrives, until nothing has for too long."""
    ends = time.monotonic() + allowed_s
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise Unanswered(f"nothing came within {allowed_s:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result


def _whole(allowed_ms: float | None) -> int | None:
    return None if allowed_ms is None else math.ceil(min(allowed_ms, _LONGEST_MS))


def connect(location: Location) -> Bounded:
    """Open a connection of its own, in autocommit; a server that has no connection left is tried again."""
    for pause in (*_PAUSES_S, None):
        try:
            connection = Bounded.connect(location.conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            if pause is None or not is_crowded(error):
                raise
            time.sleep(pause)
        else:
            connection.begin(location, limit_ms())
            return connection
    raise AssertionError  # the last try returns or raises


class Connections:
    """The pool of one store."""

    def __init__(self, location: Location, options: Mapping[str, Any] | None = None) -> None:
        self.location = location
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
            configure=lambda connection: connection.begin(location, self._usual_ms),
            open=True,
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection for a transaction; it is committed when the block ends, all of it or nothing."""
        with self.session() as connection, connection.transaction():
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Lend a connection for as long as the block takes, each statement a transaction of its own."""
        with translated(self.location.server):
            connection = self._borrow()
            try:
                with self.watching(connection):
                    connection.bind(limit_ms())
                    yield connection
            finally:
                self._pool.putconn(connection)

    @contextmanager
    def watching(self, connection: Connection) -> Iterator[None]:
        """Say what became of a statement on a connection that was lent before."""
        with translated(self.location.server):
            try:
                yield
            except BaseException as error:
                self.note_loss(connection, error)
                raise

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _borrow(self) -> Bounded:
        self._make_sure()
        allowed = limit_ms()
        # One that has yet to be opened takes a while, however little the first search allows.
        return self._pool.getconn(WAIT_S if allowed is None else min(WAIT_S, allowed / 1000 + _GRACE_S))

    def note_loss(self, connection: Connection, error: BaseException) -> None:
        """Take note of an error: if it means that a connection is gone, the server may be down."""
        if connection.closed or is_lost(error):
            self._is_doubtful.set()

    def _make_sure(self) -> None:
        """After a loss, ask the server before the pool: a refusal takes no time, the pool would wait."""
        if not self._is_doubtful.is_set():
            return
        try:
            connect(self.location).close()
        except psycopg.OperationalError as error:
            if not is_full(error):
                raise
            self._pool.check()  # it answers: those that live stay ours, whoever else wants their places
        else:
            self._pool.drain()  # those that died with the server are replaced; asking them may take long
        self._is_doubtful.clear()


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
    """The locks of one store, all on one connection, which the pool lends while any is held.

    The server gives a connection the same lock twice; who holds which in this process is therefore kept here.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = threading.Lock()  # for everything below
        self._held: set[int] = set()
        self._connection: Connection | None = None
        self._lent = ExitStack()

    @contextmanager
    def hold(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        """Hold an organisation's lock of this name; the error of a caller who is refused names `doing`."""
        key = _key(self._connections.location.schema, name)
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
        with self._turn, self._in_use() as connection:
            if key in self._held:
                return None
            with self._connections.watching(connection):
                taken, _ = connection.execute(_TRY, (key,)).fetchone() or (False, "")
            if taken:
                self._held.add(key)
            return connection if taken else None

    def _release(self, key: int, holder: Connection) -> bool:
        """Let go of a lock; return whether it was ours until now."""
        with self._turn:
            self._held.discard(key)
            is_ours = False
            with suppress(psycopg.Error):  # a connection that is lost has let go already
                is_ours = holder.execute("SELECT pg_advisory_unlock(%s)", (key,)).fetchone() == (True,)
            if not self._held:
                self._give_back()
            return is_ours

    @contextmanager
    def _in_use(self) -> Iterator[Connection]:
        """Lend the connection of all locks: another one after it was lost, and its locks with it."""
        if self._connection is None or self._connection.closed:
            self._give_back()
            self._connection = self._lent.enter_context(self._connections.session())
        try:
            yield self._connection
        finally:
            if not self._held:
                self._give_back()

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
