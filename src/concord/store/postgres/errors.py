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
from concord.store.sql import Explanations, explained

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
    return bool(words) and _refusal(words) in (_crowded, _refusing)


def is_crowded(error: Exception) -> bool:
    """Whether a server has refused a connection because there are as many as there may be."""
    return _refusal(_server_words(error)) is _crowded


def _server_words(error: Exception) -> str:
    words = _SERVER_WORDS.search(str(error)) if _CONNECTING in str(error) else None
    return words[1] if words else ""


def _refusal(words: str) -> Callable[[str, str], KBError]:
    return next((explain for pattern, explain in _REFUSALS if pattern.search(words)), _refusing)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _crowded(words: str, server: str) -> KBError:
    return StoreBusy(
        f"all connections to PostgreSQL at {server} are in use",
        hint="wait a moment, then try again; if that never helps, the role is allowed too few: whoever writes"
        " needs 2 at once (ALTER ROLE … CONNECTION LIMIT)",
    )


def _not_let_in(words: str, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} does not let us in: {words}",
        hint="check the user and the password in store.url (or ~/.pgpass), and what the server's pg_hba.conf"
        " allows",
    )


def _no_database(words: str, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} has no such database: {words}",
        hint="check the name at the end of store.url, or let an administrator make it: docs/postgresql.md",
    )


def _not_ready(words: str, server: str) -> KBError:
    return BackendDown(
        f"PostgreSQL at {server} takes no connections now: {words}",
        hint="nothing was lost: wait a moment, then repeat the command",
    )


def _refusing(words: str, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} refuses the connection: {words}",
        hint="check the user, the password and the database in store.url, and the server's log",
    )


_REFUSALS: tuple[tuple[re.Pattern[str], Callable[[str, str], KBError]], ...] = (
    (re.compile(r"too many (clients|connections)|connection slots"), _crowded),
    (re.compile(r'database ".*" does not exist'), _no_database),
    (re.compile(r"starting up|shutting down|recovery mode|not (yet|currently) accepting"), _not_ready),
    (re.compile(r'authentication failed|role ".*" does not exist|permitted to log in'), _not_let_in),
    (re.compile(r"pg_hba\.conf|permission denied for database"), _not_let_in),
)


def _down(error: Exception, server: str) -> KBError:
    if getattr(getattr(error, "pgconn", None), "needs_password", False):
        return _not_let_in("it asks for a password, and there is none", server)
    if wrong := _WRONG_URL.search(str(error)):
        return BadValue(
            f"the URL of PostgreSQL at {server} is wrong: {wrong[1]}",
            hint="check what follows the database in store.url",
        )
    if words := _server_words(error):
        return _refusal(words)(words, server)
    return BackendDown(
        f"PostgreSQL at {server} does not answer: {_first_line(error)}",
        hint="nothing was lost: start it again or check the network, then repeat the command",
    )


def _late(error: Exception, server: str) -> KBError:
    more: str = Hint(Action.DEADLINE, "allow a search more time with {deadline}")
    if limit_ms() is None:  # nothing of ours: the server's own limit, for the role or the database
        more = "raise statement_timeout, which is not ours: ALTER ROLE … SET statement_timeout = 0"
    return StoreBusy(
        f"PostgreSQL at {server} broke off what took too long: {_first_line(error)}",
        hint=joined(
            ", or ",
            "it is slow, or somebody keeps a table locked (pg_stat_activity tells who): try again later",
            more,
        ),
    )


def _refused(error: Exception, server: str) -> KBError:
    hint = "give the role what it needs, or let an administrator run the command once"
    if denied := _DENIED.search(_first_line(error)):
        kind, name = denied.groups()
        hint = f"let the role that owns it, or an administrator, run GRANT {_RIGHTS[kind]} {name} TO the role"
    return StoreError(f"PostgreSQL at {server} does not allow it: {_first_line(error)}", hint=hint)


def _altered(error: Exception, server: str) -> KBError:
    return CorruptStore(
        f"the tables in PostgreSQL at {server} are not as they were made: {_first_line(error)}",
        hint=Hint(
            Action.NOTE_EXPORT,
            "restore them from a backup, or try {note_export}, then drop the kb_ tables and run {add} again:"
            " all but notes is built from your files",
        ),
    )


def _explained(kind: type[KBError], message: str, hint: str) -> Callable[[Exception, str], KBError]:
    """Return what makes an error of ours; the message may name the server and the error's first line."""
    return lambda error, server: kind(message.format(server=server, error=_first_line(error)), hint=hint)


_BUSY = _explained(
    StoreBusy,
    "another process keeps what is to be changed locked",
    "wait for it to finish, then try again",
)
_FULL = _explained(
    BackendDown,
    "PostgreSQL at {server} has no room left: {error}",
    "free some space there, then run the command again",
)
_READ_ONLY = _explained(
    BackendDown, "PostgreSQL at {server} is read-only", "write to the primary server, not to a replica"
)
_NO_EXTENSION = _explained(
    StoreError,
    "PostgreSQL at {server} lacks an extension: {error}",
    "install pgvector (0.8 or newer) and the contrib package on the server",
)
_UNSTORABLE = _explained(BadValue, "PostgreSQL cannot store a value: {error}", "rename or convert it")
_TOO_LARGE = _explained(
    BadValue, "a path, a text or a value is too large to be stored", "split the file, or leave it out"
)
_PATTERN = _explained(BadValue, "the path pattern is too long or too complex", "use fewer wildcards")

_EXPLANATIONS: Explanations[str] = (
    ((PoolTimeout, TooManyRequests, errors.TooManyConnections), lambda error, server: _crowded("", server)),
    ((errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure), _BUSY),
    (errors.QueryCanceled, _late),
    ((errors.DiskFull, errors.OutOfMemory), _FULL),
    (errors.ReadOnlySqlTransaction, _READ_ONLY),
    (errors.InsufficientPrivilege, _refused),
    ((errors.FeatureNotSupported, errors.UndefinedFile), _NO_EXTENSION),
    ((errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction), _altered),
    (errors.InvalidRegularExpression, _PATTERN),
    (errors.ProgramLimitExceeded, _TOO_LARGE),
    ((psycopg.OperationalError, psycopg.InterfaceError, PoolClosed), _down),
    (psycopg.DataError, _UNSTORABLE),
)
