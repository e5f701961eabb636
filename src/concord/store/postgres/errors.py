"""What PostgreSQL's errors mean to a user: the one place where they become ours."""

from __future__ import annotations

from contextlib import AbstractContextManager

import psycopg
from psycopg import errors

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, StoreBusy, StoreError
from concord.store.sql import Explanations, explained, says


def translated(server: str) -> AbstractContextManager[None]:
    """Turn what psycopg raises in the block into a KBError; what only a fault of ours can cause passes."""
    return explained(psycopg.Error, _EXPLANATIONS, server)


_AT = "PostgreSQL at {place}"
# What is raised, and what it becomes. The first row that fits decides.
_EXPLANATIONS: Explanations[str] = (
    (
        errors.QueryCanceled,
        says(
            StoreBusy,
            f"{_AT} broke off what took too long: {{fault}}",
            Hint(
                Action.DEADLINE,
                "it is slow, or somebody keeps a table locked (pg_stat_activity tells who): try again later,"
                " allow a search more time with {deadline}, or raise the role's own statement_timeout",
            ),
        ),
    ),
    (
        errors.InsufficientPrivilege,
        says(
            StoreError,
            f"{_AT} does not allow it: {{fault}}",
            "let the role that owns it, or an administrator, grant it to the role: docs/postgresql.md",
        ),
    ),
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure),
        says(
            StoreBusy,
            "another process keeps what is to be changed locked",
            "wait for it to finish, then try again",
        ),
    ),
    (
        (errors.DiskFull, errors.OutOfMemory),
        says(
            BackendDown,
            f"{_AT} has no room left: {{fault}}",
            "free some space there, then run the command again",
        ),
    ),
    (
        errors.ReadOnlySqlTransaction,
        says(BackendDown, f"{_AT} is read-only", "write to the primary server, not to a replica"),
    ),
    (
        (errors.FeatureNotSupported, errors.UndefinedFile, errors.UndefinedObject),
        says(
            StoreError,
            f"{_AT} lacks an extension, or the role does not see it: {{fault}}",
            "install pgvector (0.8 or newer) on the server, in a schema that is on the role's search_path and"
            " that it may use: docs/postgresql.md",
        ),
    ),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.DuplicateTable),
        says(
            CorruptStore,
            f"the tables in {_AT} are not as they were made: {{fault}}",
            Hint(
                Action.NOTE_EXPORT,
                "restore them from a backup, or try {note_export}, then drop the kb_ tables and run {add}"
                " again: all but notes is built from your files",
            ),
        ),
    ),
    (
        (psycopg.DataError, errors.ProgramLimitExceeded, errors.InvalidRegularExpression),
        says(
            BadValue,
            "a value is too large or not what PostgreSQL stores: {fault}",
            "shorten it, or leave the file out",
        ),
    ),
    (
        (psycopg.OperationalError, psycopg.InterfaceError),
        says(
            BackendDown,
            f"{_AT} does not answer, or does not let us in: {{fault}}",
            "nothing was lost: check that it runs, and the address, the user, the password (or ~/.pgpass) and"
            " the database in store.url; docs/postgresql.md says what it has to allow",
        ),
    ),
)
