"""What PostgreSQL's errors mean to a user: the one place where they become ours.

An error of connecting has no SQLSTATE, so the server's words have to do. What a server says in another
language than English is quoted, with a hint that covers the usual reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from concord.core.call_limit import limit_ms
from concord.core.errors import (
    Action,
    BackendDown,
    BadValue,
    CorruptStore,
    Hint,
    KBError,
    StoreBusy,
    StoreError,
    joined,
)
from concord.store.sql import Explanations, explained, says

_CONNECTING = "connection failed: "  # as psycopg begins: a connection that is cut off later was let in
_SERVER_WORDS = re.compile(r"\bFATAL:\s*([^\n]+)")  # in most languages; libpq's own errors have no such word
_WRONG_URL = re.compile(r"^connection is bad: (invalid [^\n]+)")  # libpq has not even tried
_DENIED = re.compile(r"permission denied for (table|schema|database) (\S+)")
_RIGHTS = {
    "table": "SELECT, INSERT, UPDATE, DELETE ON",
    "schema": "USAGE, CREATE ON SCHEMA",
    "database": "CREATE ON DATABASE",
}
_ENDED = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)


class Unanswered(psycopg.OperationalError):
    """The server keeps silent for longer than the caller waits."""


def translated(server: str) -> AbstractContextManager[None]:
    """Turn what psycopg raises in the block into a KBError; what only a fault of ours can cause passes."""
    return explained((psycopg.Error, PoolClosed), _EXPLANATIONS, server)


def is_lost(error: BaseException) -> bool:
    """Whether an error means that the connection is gone, not that a statement was refused."""
    if isinstance(error, _ENDED):
        return True
    if isinstance(error, Unanswered | PoolTimeout):  # to ask again would take as long again
        return False
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not error.sqlstate


def is_full(error: Exception) -> bool:
    """Whether a server that runs has refused a connection, as far as its language tells: it has enough."""
    words = _server_words(error)
    return bool(words) and _refusal(words) in (_CROWDED, _REFUSING)


def is_crowded(error: Exception) -> bool:
    """Whether a server has refused a connection because there are as many as there may be."""
    return _refusal(_server_words(error)) is _CROWDED


def _server_words(error: Exception) -> str:
    words = _SERVER_WORDS.search(str(error)) if _CONNECTING in str(error) else None
    return words[1] if words else ""


def _refusal(words: str) -> Callable[[object, str], KBError]:
    return next((explain for pattern, explain in _REFUSALS if pattern.search(words)), _REFUSING)


_CROWDED = says(
    StoreBusy,
    "all connections to PostgreSQL at {place} are in use",
    "wait a moment, then try again; if that never helps, the role is allowed too few: whoever writes"
    " needs 2 at once (ALTER ROLE … CONNECTION LIMIT)",
)
_NOT_LET_IN = says(
    StoreError,
    "PostgreSQL at {place} does not let us in: {fault}",
    "check the user and the password in store.url (or ~/.pgpass), and what the server's pg_hba.conf allows",
)
_NO_DATABASE = says(
    StoreError,
    "PostgreSQL at {place} has no such database: {fault}",
    "check the name at the end of store.url, or let an administrator make it: docs/postgresql.md",
)
_NOT_READY = says(
    BackendDown,
    "PostgreSQL at {place} takes no connections now: {fault}",
    "nothing was lost: wait a moment, then repeat the command",
)
_REFUSING = says(
    StoreError,
    "PostgreSQL at {place} refuses the connection: {fault}",
    "check the user, the password and the database in store.url, and the server's log",
)
_SILENT = says(
    BackendDown,
    "PostgreSQL at {place} does not answer: {fault}",
    "nothing was lost: start it again or check the network, then repeat the command",
)
_WRONG = says(
    BadValue,
    "the URL of PostgreSQL at {place} is wrong: {fault}",
    "check what follows the database in store.url",
)
_REFUSALS: tuple[tuple[re.Pattern[str], Callable[[object, str], KBError]], ...] = (
    (re.compile(r"too many (clients|connections)|connection slots"), _CROWDED),
    (re.compile(r'database ".*" does not exist'), _NO_DATABASE),
    (re.compile(r"starting up|shutting down|recovery mode|not (yet|currently) accepting"), _NOT_READY),
    (re.compile(r'authentication failed|role ".*" does not exist|permitted to log in'), _NOT_LET_IN),
    (re.compile(r"pg_hba\.conf|permission denied for database"), _NOT_LET_IN),
)


def _down(error: Exception, server: str) -> KBError:
    if getattr(getattr(error, "pgconn", None), "needs_password", False):
        return _NOT_LET_IN("it asks for a password, and there is none", server)
    if wrong := _WRONG_URL.search(str(error)):
        return _WRONG(wrong[1], server)
    if words := _server_words(error):
        return _refusal(words)(words, server)
    return _SILENT(error, server)


def _late(error: Exception, server: str) -> KBError:
    more: str = Hint(Action.DEADLINE, "allow a search more time with {deadline}")
    if limit_ms() is None:  # nothing of ours: the server's own limit, for the role or the database
        more = "raise statement_timeout, which is not ours: ALTER ROLE … SET statement_timeout = 0"
    slow = "it is slow, or somebody keeps a table locked (pg_stat_activity tells who): try again later"
    message = "PostgreSQL at {place} broke off what took too long: {fault}"
    return says(StoreBusy, message, joined(", or ", slow, more))(error, server)


def _refused(error: Exception, server: str) -> KBError:
    hint = "give the role what it needs, or let an administrator run the command once"
    if denied := _DENIED.search(str(error)):
        kind, name = denied.groups()
        hint = f"let the role that owns it, or an administrator, run GRANT {_RIGHTS[kind]} {name} TO the role"
    return says(StoreError, "PostgreSQL at {place} does not allow it: {fault}", hint)(error, server)


_ALTERED = says(
    CorruptStore,
    "the tables in PostgreSQL at {place} are not as they were made: {fault}",
    Hint(
        Action.NOTE_EXPORT,
        "restore them from a backup, or try {note_export}, then drop the kb_ tables and run {add} again:"
        " all but notes is built from your files",
    ),
)
_BUSY = says(
    StoreBusy,
    "another process keeps what is to be changed locked",
    "wait for it to finish, then try again",
)
_FULL = says(
    BackendDown,
    "PostgreSQL at {place} has no room left: {fault}",
    "free some space there, then run the command again",
)
_READ_ONLY = says(
    BackendDown, "PostgreSQL at {place} is read-only", "write to the primary server, not to a replica"
)
_NO_EXTENSION = says(
    StoreError,
    "PostgreSQL at {place} lacks an extension: {fault}",
    "install pgvector (0.8 or newer) and the contrib package on the server",
)
_UNSTORABLE = says(BadValue, "PostgreSQL cannot store a value: {fault}", "rename or convert it")
_TOO_LARGE = says(
    BadValue, "a path, a text or a value is too large to be stored", "split the file, or leave it out"
)
_PATTERN = says(BadValue, "the path pattern is too long or too complex", "use fewer wildcards")

_EXPLANATIONS: Explanations[str] = (
    ((PoolTimeout, TooManyRequests, errors.TooManyConnections), _CROWDED),
    ((errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure), _BUSY),
    (errors.QueryCanceled, _late),
    ((errors.DiskFull, errors.OutOfMemory), _FULL),
    (errors.ReadOnlySqlTransaction, _READ_ONLY),
    (errors.InsufficientPrivilege, _refused),
    ((errors.FeatureNotSupported, errors.UndefinedFile), _NO_EXTENSION),
    ((errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction), _ALTERED),
    (errors.InvalidRegularExpression, _PATTERN),
    (errors.ProgramLimitExceeded, _TOO_LARGE),
    ((psycopg.OperationalError, psycopg.InterfaceError, PoolClosed), _down),
    (psycopg.DataError, _UNSTORABLE),
)
