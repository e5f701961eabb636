"""Connections: many that read, at once and from any thread; one that writes, one transaction at a time.

Readers cannot take the write lock: they are opened read-only. sqlite-vec is loaded by the path of its library
(importing its package would import numpy) and only into connections that meet vectors. Both kinds are opened
anew where another file has taken the place of theirs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

from concord.core.errors import BackendDown
from concord.store.sql import NOTHING, Duplicate, Values
from concord.store.sqlite import dialect
from concord.store.sqlite.dialect import bound
from concord.store.sqlite.file import FileId, Location, OpenedFile, lacks_room, mark_as_begun, translated
from concord.text.globs import glob_matches

if TYPE_CHECKING:
    from concord.store.sqlite.note_log import NoteLog

_MAX_IDLE = 8  # connections kept for the next caller: more than the strategies that are polled at once
_NOT_UNIQUE = (apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_PRIMARYKEY)
_WAL_LIMIT_BYTES = 64 << 20  # a write-ahead log that one huge transaction made is cut back to this


class Connection(apsw.Connection):
    """A session that knows its file, whether sqlite-vec is loaded into it, and whether it may be kept."""

    file: FileId | None = None
    has_vec0 = False
    is_frozen = False  # opened as immutable: it will not see what others write later

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.create_scalar_function("kb_glob", _kb_glob, 2, deterministic=True)

    def rows(self, statement: str, values: Values = NOTHING) -> list[Any]:
        """Return all rows."""
        return list(self.iterate(statement, values))

    def several(self, *statements: str) -> list[list[Any]]:
        """Return the rows of several statements."""
        return [*map(self.rows, statements)]

    def iterate(self, statement: str, values: Values = NOTHING) -> apsw.Cursor:
        """Return the rows one by one."""
        try:
            return self.execute(dialect.translated(statement), bound(values))
        except apsw.ConstraintError as fault:
            raise _told(fault) from fault

    def value(self, statement: str, values: Values = NOTHING) -> Any:
        """Return the first column of the first row; None if there is no row."""
        rows = self.rows(statement, values)  # to the end: a cursor that is dropped earlier hides faults
        return rows[0][0] if rows else None

    def run(self, statement: str, values: Values = NOTHING) -> None:
        """Run a statement, or a script."""
        self.iterate(statement, values)

    def run_many(self, statement: str, values: Iterable[Values]) -> None:
        """Run a statement once for each of several values."""
        self.executemany(dialect.translated(statement), map(bound, values))

    def insert_many(self, statement: str, values: Sequence[Values]) -> list[Any]:
        """Insert several rows; return what the statement returns of each."""
        try:
            return [row[0] for row in self.executemany(dialect.translated(statement), map(bound, values))]
        except apsw.ConstraintError as fault:
            raise _told(fault) from fault

    def load_vec0(self) -> None:
        """Make `vec0` tables usable; does nothing the second time."""
        if not self.has_vec0:
            self.enable_load_extension(True)
            self.load_extension(_vec0_library())
            self.enable_load_extension(False)
            self.has_vec0 = True

    def shut(self) -> None:
        """Close, whatever goes wrong: a log that cannot be written back stays for whoever opens it next."""
        with suppress(apsw.Error):
            self.close(force=True)


def _told(fault: apsw.ConstraintError) -> Exception:
    return Duplicate(str(fault)) if getattr(fault, "extendedresult", None) in _NOT_UNIQUE else fault


class Readers:
    """A pool of read-only connections, each used by one caller at a time."""

    def __init__(self, location: Location, file: OpenedFile) -> None:
        self._location = location
        self._file = file
        self._idle: list[Connection] = []
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection for the block; its statements see the same state."""
        with translated(self._location.path):
            if self._is_closed:
                raise BackendDown(f"{self._location.path} has been closed", hint="open the store again")
            file = self._file.current()
            connection = self._idle_in(file) or self._opened(file)
            with closed_on_failure(connection):
                connection.execute("BEGIN")
                yield connection
                with suppress(apsw.Error):  # what the block met in a damaged file was enough
                    connection.execute("COMMIT")
            is_usable = not connection.is_frozen and not connection.in_transaction
            if self._is_closed or not is_usable or len(self._idle) >= _MAX_IDLE:
                connection.shut()
            else:
                self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle now, and what is lent as soon as it comes back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().shut()

    def _idle_in(self, file: FileId | None) -> Connection | None:
        """Return a connection that waits, closing those to a file that was replaced."""
        while True:
            try:
                connection = self._idle.pop()  # not `if self._idle`: another thread may take the last
            except IndexError:
                return None
            if connection.file == file:
                return connection
            connection.shut()

    def _opened(self, file: FileId | None) -> Connection:
        is_missing = file is None and self._file.is_missing()
        connection = open_nothing() if is_missing else open_to_read(self._location)
        connection.file = file
        return connection


class Writer:
    """The one connection of this store that writes. Opened at the first write."""

    def __init__(self, location: Location, file: OpenedFile) -> None:
        self._location = location
        self.path = location.path
        self._file = file
        self._turn = threading.Lock()
        self._connection: Connection | None = None
        self._notes: NoteLog | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block in one transaction, which holds the write lock from its start."""
        with self._turn, translated(self._location.path):
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            take_back = None
            try:
                yield connection
                take_back = self._log().keep(connection)
                connection.execute("COMMIT")
            except BaseException:
                if take_back:
                    take_back()
                if connection.in_transaction:  # SQLite has rolled back by itself when the disk failed
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection, waiting for a transaction under way."""
        with self._turn:
            if self._connection:
                self._connection.shut()
                self._connection = None

    def _log(self) -> NoteLog:
        if self._notes is None:
            from concord.store.sqlite.note_log import NoteLog  # late: no search needs it

            self._notes = NoteLog(self._location.path)
        return self._notes

    def _opened(self) -> Connection:
        file = self._file.made()
        if self._connection and self._connection.file != file:
            self._connection.shut()
            self._connection = None
        if self._connection is None:
            self._connection = open_to_write(self._location)
            self._connection.file = file
            self._log().watch(self._connection)
            mark_as_begun(self._location.path)  # not before: its tables are in the file by now
        return self._connection


def open_to_write(location: Location, *, create: bool = False) -> Connection:
    """Return a connection that can write."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = Connection(location.path, flags=flags, vfs=location.vfs)
    with closed_on_failure(connection):
        connection.set_busy_timeout(location.busy_timeout_ms)
        connection.pragma("foreign_keys", True)
        # With NORMAL, a power cut may take back a transaction that was reported as done.
        connection.pragma("synchronous", "FULL")
        connection.pragma("journal_size_limit", _WAL_LIMIT_BYTES)
    return connection


def open_to_read(location: Location) -> Connection:
    """Return a connection that can only read, also where nothing may be written beside the file."""
    try:
        connection = Connection(location.path, flags=apsw.SQLITE_OPEN_READONLY, vfs=location.vfs)
        with closed_on_failure(connection):
            connection.set_busy_timeout(location.busy_timeout_ms)
            connection.pragma("schema_version")  # SQLite reads the file now, not when it opens it
        return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as fault:
        if isinstance(fault, apsw.IOError) and not lacks_room(fault):
            raise
        return _open_frozen(location)


def open_nothing() -> Connection:
    """Return a connection to an empty store in memory, as for readers where there is no file yet."""
    from concord.store.sqlite.migrations import make_empty  # late: it imports this module

    connection = Connection(":memory:")
    with closed_on_failure(connection):
        make_empty(connection)
    return connection


@contextmanager
def closed_on_failure(connection: Connection) -> Iterator[None]:
    """Close a connection when the block fails."""
    try:
        yield
    except BaseException:
        connection.shut()
        raise


def _kb_glob(*values: apsw.SQLiteValue) -> bool:
    glob, path = values
    return glob_matches(str(glob), str(path))


def _open_frozen(location: Location) -> Connection:
    """Open a file beside which nothing can be written, so that the usual shared memory cannot be made.

    That is safe while nobody writes: a log beside the file means that somebody does or did.
    """
    log = f"{location.path}-wal"
    if os.path.exists(log) and os.path.getsize(log):
        raise BackendDown(
            f"{location.path} cannot be written and has changes that are not written back yet",
            hint="free some space, or let a process that may write there open and close it once",
        )
    quoted = location.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = Connection(f"file:{quoted}?immutable=1", flags=flags, vfs=location.vfs)
    connection.is_frozen = True
    return connection


@cache
def _vec0_library() -> str:
    from importlib.util import find_spec

    found = find_spec("sqlite_vec")
    assert found  # we depend on it
    assert found.submodule_search_locations
    return os.path.join(found.submodule_search_locations[0], "vec0")
