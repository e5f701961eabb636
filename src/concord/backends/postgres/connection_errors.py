"""Why does a server that answers not let us in? It is told from one that does not answer by what it says.

An error of connecting has no SQLSTATE, so the server's words have to do. One that speaks another language
than English is quoted, with a hint that covers the usual reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from concord.core.errors import BackendDown, BadValue, KBError, StoreBusy, StoreError

_CONNECTING = "connection failed: "  # as psycopg begins: a connection that is cut off later was let in
_SAID = re.compile(r"\bFATAL:\s*([^\n]+)")  # in most languages; what libpq itself says has no such word
_WRONG = re.compile(r"^connection is bad: (invalid [^\n]+)")  # libpq has not even tried
_WHO = "check the user and the password in store.url (or ~/.pgpass), and what the server's pg_hba.conf allows"


def why_refused(fault: Exception, server: str) -> KBError | None:
    """Return what to tell of a connection that the server, or libpq, refused; None when it said nothing."""
    if getattr(getattr(fault, "pgconn", None), "needs_password", False):
        return _unknown_to_it("it asks for a password, and there is none", server)
    if wrong := _WRONG.search(str(fault)):
        return BadValue(
            f"the URL of PostgreSQL at {server} is wrong: {wrong[1]}",
            hint="check what follows the database in store.url",
        )
    said = _said(fault)
    return _explanation(said)(said, server) if said else None


def is_full(fault: Exception) -> bool:
    """Whether a server that runs has refused a connection, as far as its language tells: it has enough."""
    said = _said(fault)
    return bool(said) and _explanation(said) in (crowded, _refusing)


def is_crowded(fault: Exception) -> bool:
    """Whether a server has refused a connection because there are as many as there may be."""
    return _explanation(_said(fault)) is crowded


def _said(fault: Exception) -> str:
    said = _SAID.search(str(fault)) if _CONNECTING in str(fault) else None
    return said[1] if said else ""


def _explanation(said: str) -> Callable[[str, str], KBError]:
    return next((explain for words, explain in _EXPLANATIONS if words.search(said)), _refusing)


def crowded(said: str, server: str) -> KBError:
    """Say that there are as many connections as there may be."""
    return StoreBusy(
        f"all connections to PostgreSQL at {server} are in use",
        hint="wait a moment, then try again; if that never helps, the role is allowed too few: whoever writes"
        " needs 2 at once (ALTER ROLE … CONNECTION LIMIT)",
    )


def _unknown_to_it(said: str, server: str) -> KBError:
    return StoreError(f"PostgreSQL at {server} does not let us in: {said}", hint=_WHO)


def _no_database(said: str, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} has no such database: {said}",
        hint="check the name at the end of store.url, or let an administrator make it: docs/postgresql.md",
    )


def _not_ready(said: str, server: str) -> KBError:
    return BackendDown(
        f"PostgreSQL at {server} takes no connections now: {said}",
        hint="nothing was lost: wait a moment, then repeat the command",
    )


def _refusing(said: str, server: str) -> KBError:
    return StoreError(
        f"PostgreSQL at {server} refuses the connection: {said}",
        hint="check the user, the password and the database in store.url, and the server's log",
    )


_EXPLANATIONS: tuple[tuple[re.Pattern[str], Callable[[str, str], KBError]], ...] = (
    (re.compile(r"too many (clients|connections)|connection slots"), crowded),
    (re.compile(r'database ".*" does not exist'), _no_database),
    (re.compile(r"starting up|shutting down|recovery mode|not (yet|currently) accepting"), _not_ready),
    (re.compile(r'authentication failed|role ".*" does not exist|permitted to log in'), _unknown_to_it),
    (re.compile(r"pg_hba\.conf|permission denied for database"), _unknown_to_it),
)
