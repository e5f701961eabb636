"""What PostgreSQL's errors mean to a user: the one place where they become ours."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from concord.backends.postgres.connection_errors import crowded, why_refused
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
from concord.store import sql_faults
from concord.store.sql_faults import Explanations

_DENIED = re.compile(r"permission denied for (table|schema) (\S+)")
_ENDED = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)
_AGAIN = "nothing was lost: start it again or check the network, then repeat the command"


class Unanswered(psycopg.OperationalError):
    """The server keeps silent for longer than whoever asks waits."""


def translated(server: str) -> AbstractContextManager[None]:
    """Turn what psycopg raises in the block into a KBError; what only a fault of ours can cause passes."""
    return sql_faults.translated((psycopg.Error, PoolClosed), _EXPLANATIONS, server)


def is_lost(fault: BaseException) -> bool:
    """Whether a fault means that the connection is gone, not that a statement was refused."""
    if isinstance(fault, _ENDED):
        return True
    if isinstance(fault, Unanswered | PoolTimeout):  # to ask again would take as long again
        return False
    return isinstance(fault, psycopg.OperationalError | psycopg.InterfaceError) and not fault.sqlstate


def _first_line(fault: Exception) -> str:
    return str(fault).strip().partition("\n")[0]


def _down(fault: Exception, server: str) -> KBError:
    return why_refused(fault, server) or BackendDown(
        f"PostgreSQL at {server} does not answer: {_first_line(fault)}", hint=_AGAIN
    )


def _crowded(fault: Exception, server: str) -> KBError:
    return crowded(_first_line(fault), server)


def _busy(fault: Exception, server: str) -> KBError:
    return StoreBusy(
        "another process keeps what is to be changed locked", hint="wait for it to finish, then try again"
    )


def _late(fault: Exception, server: str) -> KBError:
    more: str = Hint(Action.DEADLINE, "allow a search more time with {deadline}")
    if limit_ms() is None:  # nothing of ours: the server's own limit, for the role or the database
        more = "raise statement_timeout, which is not ours: ALTER ROLE … SET statement_timeout = 0"
    return StoreBusy(
        f"PostgreSQL at {server} broke off what took too long: {_first_line(fault)}",
        hint=joined(
            ", or ",
            "it is slow, or somebody keeps a table locked (pg_stat_activity tells who): try again later",
            more,
        ),
    )


def _full(fault: Exception, server: str) -> KBError:
    return BackendDown(
        f"PostgreSQL at {server} has no room left: {_first_line(fault)}",
        hint="free some space there, then run the command again",
    )


def _read_only(fault: Exception, server: str) -> KBError:
    return BackendDown(
        f"PostgreSQL at {server} is read-only", hint="write to the primary server, not to a replica"
    )


def _refused(fault: Exception, server: str) -> KBError:
    hint = "give the role what it needs, or let an administrator run the command once"
    if denied := _DENIED.search(_first_line(fault)):
        kind, name = denied.groups()
        right = "SELECT, INSERT, UPDATE, DELETE ON" if kind == "table" else "USAGE, CREATE ON SCHEMA"
        hint = f"let the role that owns it, or an administrator, run GRANT {right} {name} TO the role"
    return StoreError(f"PostgreSQL at {server} does not allow it: {_first_line(fault)}", hint=hint)


def _no_extension(fault: Exception, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} lacks an extension: {_first_line(fault)}",
        hint="install pgvector (0.8 or newer) and the contrib package on the server",
    )


def _altered(fault: Exception, server: str) -> KBError:
    return CorruptStore(
        f"the tables in PostgreSQL at {server} are not as they were made: {_first_line(fault)}",
        hint=Hint(
            Action.NOTE_EXPORT,
            "restore them from a backup, or try {note_export}, then drop the kb_ tables and run {add} again:"
            " all but notes is built from your files",
        ),
    )


def _unstorable(fault: Exception, server: str) -> KBError:
    return BadValue(f"PostgreSQL cannot store a value: {_first_line(fault)}", hint="rename or convert it")


def _too_big(fault: Exception, server: str) -> KBError:
    return BadValue("a text or value is too large to be stored", hint="split the file, or leave it out")


def _pattern(fault: Exception, server: str) -> KBError:
    return BadValue("the path pattern is too long or too complex", hint="use fewer wildcards")


_EXPLANATIONS: Explanations[str] = (
    ((PoolTimeout, TooManyRequests, errors.TooManyConnections), _crowded),
    ((errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure), _busy),
    (errors.QueryCanceled, _late),
    ((errors.DiskFull, errors.OutOfMemory), _full),
    (errors.ReadOnlySqlTransaction, _read_only),
    (errors.InsufficientPrivilege, _refused),
    ((errors.FeatureNotSupported, errors.UndefinedFile), _no_extension),
    ((errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction), _altered),
    (errors.InvalidRegularExpression, _pattern),
    (errors.ProgramLimitExceeded, _too_big),
    ((psycopg.OperationalError, psycopg.InterfaceError, PoolClosed), _down),
    (psycopg.DataError, _unstorable),
)
