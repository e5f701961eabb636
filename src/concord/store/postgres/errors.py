"""What PostgreSQL's errors mean to a user: the one place where they become ours.

An error of connecting has no SQLSTATE, so the server's words have to do, and are quoted in whatever language.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

import psycopg
from psycopg import errors

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
from concord.store.sql import Explanations, Kinds, explained, says

_CONNECTING = "connection failed: "  # as psycopg begins: a connection that is cut off later was let in
_SERVER_WORDS = re.compile(r"\bFATAL:\s*([^\n]+)")  # in most languages; libpq's own errors have no such word
_CROWD = re.compile(r"too many (clients|connections)|connection slots")
_WRONG_URL = re.compile(r"^connection is bad: (invalid [^\n]+)")  # libpq has not even tried
_DENIED = re.compile(r"permission denied for (table|schema|database) (\S+)")
_RIGHTS = {
    "table": "SELECT, INSERT, UPDATE, DELETE ON",
    "schema": "USAGE, CREATE ON SCHEMA",
    "database": "CREATE ON DATABASE",
}


def translated(server: str) -> AbstractContextManager[None]:
    """Turn what psycopg raises in the block into a KBError; what only a fault of ours can cause passes."""
    return explained(psycopg.Error, _EXPLANATIONS, server)


CROWDED = says(
    StoreBusy,
    "all connections to PostgreSQL at {place} are in use",
    "wait a moment, then try again; if that never helps, the role is allowed too few: whoever writes"
    " needs 2 at once (ALTER ROLE … CONNECTION LIMIT)",
)
_NOT_READY = says(
    BackendDown,
    "PostgreSQL at {place} takes no connections now: {fault}",
    "nothing was lost: wait a moment, then repeat the command",
)
_REFUSING = says(
    StoreError,
    "PostgreSQL at {place} does not let us in: {fault}",
    "check the user, the password (or ~/.pgpass) and the database in store.url, and what the server's"
    " pg_hba.conf allows: docs/postgresql.md",
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


def is_crowded(error: Exception) -> bool:
    """Whether a server has refused a connection because there are as many as there may be."""
    return _CONNECTING in str(error) and bool(_CROWD.search(str(error)))


def _down(error: Exception, server: str) -> KBError:
    if getattr(getattr(error, "pgconn", None), "needs_password", False):
        return _REFUSING("it asks for a password, and there is none", server)
    if wrong := _WRONG_URL.search(str(error)):
        return _WRONG(wrong[1], server)
    said = _SERVER_WORDS.search(str(error)) if _CONNECTING in str(error) else None
    if said is None:
        return _SILENT(error, server)
    if _CROWD.search(said[1]):
        return CROWDED("", server)
    if re.search(r"starting up|shutting down|recovery mode|not (yet|currently) accepting", said[1]):
        return _NOT_READY(said[1], server)
    return _REFUSING(said[1], server)


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


_ALTERED_HINT = Hint(
    Action.NOTE_EXPORT,
    "restore them from a backup, or try {note_export}, then drop the kb_ tables and run {add} again: all but"
    " notes is built from your files",
)
_AT = "PostgreSQL at {place}"
# What is raised; the error that it becomes, what is said, and what to do. The first row that fits decides.
_MEANINGS: tuple[tuple[Kinds, type[KBError], str, str], ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure),
        StoreBusy,
        "another process keeps what is to be changed locked",
        "wait for it to finish, then try again",
    ),
    (
        (errors.DiskFull, errors.OutOfMemory),
        BackendDown,
        f"{_AT} has no room left: {{fault}}",
        "free some space there, then run the command again",
    ),
    (
        errors.ReadOnlySqlTransaction,
        BackendDown,
        f"{_AT} is read-only",
        "write to the primary server, not to a replica",
    ),
    (
        (errors.FeatureNotSupported, errors.UndefinedFile, errors.UndefinedObject),
        StoreError,
        f"{_AT} lacks an extension, or the role does not see it: {{fault}}",
        "install pgvector (0.8 or newer) on the server, in a schema that is on the role's search_path and"
        " that it may use: docs/postgresql.md",
    ),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction),
        CorruptStore,
        f"the tables in {_AT} are not as they were made: {{fault}}",
        _ALTERED_HINT,
    ),
    (
        (psycopg.DataError, errors.ProgramLimitExceeded, errors.InvalidRegularExpression),
        BadValue,
        "a value is too large or not what PostgreSQL stores: {fault}",
        "shorten it, or leave the file out",
    ),
)
_EXPLANATIONS: Explanations[str] = (
    (errors.TooManyConnections, CROWDED),
    (errors.QueryCanceled, _late),
    (errors.InsufficientPrivilege, _refused),
    *((kinds, says(kind, message, hint)) for kinds, kind, message, hint in _MEANINGS),
    ((psycopg.OperationalError, psycopg.InterfaceError), _down),
)
