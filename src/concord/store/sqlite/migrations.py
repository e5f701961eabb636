"""Bringing a file to the schema of this program: from nothing, or from an older one, in one transaction."""

from __future__ import annotations

import os
import time

import apsw

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, SchemaTooNew
from concord.store import schema
from concord.store.links import name_all
from concord.store.sql import explained, says
from concord.store.sqlite import dialect
from concord.store.sqlite.connections import Connection, Readers, closed_on_failure, open_to_write
from concord.store.sqlite.file import APPLICATION_ID, DAMAGE, Location, forget_begun, translated

_POLL_S = 0.01
# The sentinel. A table that measures another distance, L2 by default, would rank by nonsense.
_IS_COSINE = """
SELECT NOT EXISTS (SELECT 1 FROM kb_models)
    OR EXISTS (SELECT 1 FROM kb_vec_meta WHERE key = 'distance_metric' AND value = 'cosine')"""
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)"

VERSION = 8  # `old_schemas` leads there from any earlier one
# vec0 keeps many vectors in one value, which SQLite walks page by page: with pages of 16 kB instead of 4,
# nearest neighbours take 3/4 of the time, words no longer, and the file is smaller.
PAGE_BYTES = 16384

_NO_FOLDER = says(
    BackendDown,
    "{place} cannot be made: {fault}",
    Hint(Action.STORE, "use another {store}, or make it yourself"),
)


def bring_up_to_date(location: Location, readers: Readers) -> None:
    """Make the file usable; a file that is up to date is only read."""
    with readers.connection() as connection:  # another process may be making it now
        version = _checked_version(connection, location)
        is_cosine = version < VERSION or bool(connection.value(_IS_COSINE))
    if version < VERSION or not is_cosine:
        _migrate(location)
    with readers.connection() as connection:
        _check_org(connection, location)


def make_if_missing(location: Location) -> None:
    """Make the file, and its folder, where there is none."""
    if not os.path.exists(location.path):
        forget_begun(location.path)
        folder = os.path.dirname(location.path)
        with explained(OSError, ((OSError, _NO_FOLDER),), folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # what is indexed is for its owner's eyes
        _migrate(location)


def make_empty(connection: Connection) -> None:
    """Give a database the tables of a store that holds nothing."""
    connection.execute(schema.create(dialect.DIALECT))
    connection.execute(dialect.WORDS + dialect.INSERTED_TRIGGER + dialect.DELETED_TRIGGER)


def _migrate(location: Location) -> None:
    with translated(location.path):
        connection = open_to_write(location, create=True)
        with closed_on_failure(connection):  # which rolls back
            connection.pragma("page_size", PAGE_BYTES)  # only a file without a page obeys
            _use_log(connection, location)
            connection.execute("BEGIN IMMEDIATE")
            # Read again under the lock: another process may have done the work meanwhile.
            version = _checked_version(connection, location)
            if version == 0:
                make_empty(connection)
            else:
                _update(connection, version)
            connection.execute("INSERT OR IGNORE INTO kb_meta VALUES ('org', ?)", (location.org,))
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", VERSION)
            connection.execute("COMMIT")
        connection.shut()


def _update(connection: Connection, version: int) -> None:
    """Lead a file here from an earlier schema; tables that measure another distance are made anew."""
    from concord.store.sqlite import old_schemas  # late: hardly any start needs it

    if version < old_schemas.FIRST_IN_STEPS:
        old_schemas.set_aside(connection)
        make_empty(connection)
        old_schemas.take_over(connection)
        return
    for step in old_schemas.STEPS[version - old_schemas.FIRST_IN_STEPS :]:
        connection.run(step)
    name_all(connection)
    if not connection.value(_IS_COSINE):
        old_schemas.rebuild_as_cosine(connection)


def _use_log(connection: Connection, location: Location) -> None:
    """Write ahead into a log. SQLite does not wait for others here, whatever its busy timeout: we do."""
    deadline = time.monotonic() + location.busy_timeout_ms / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_S)


def _checked_version(connection: Connection, location: Location) -> int:
    application_id, version = (connection.pragma(name) for name in ("application_id", "user_version"))
    if application_id == version == 0 and connection.value(_IS_EMPTY):
        return 0  # new, or cut short before its first transaction
    if application_id != APPLICATION_ID:
        raise CorruptStore(
            f"{location.path} is the database of another program",
            hint=Hint(Action.STORE, "use another {store}, or move it away"),
        )
    if version > VERSION:
        raise SchemaTooNew(
            f"{location.path} has schema {version}; this program knows up to {VERSION}",
            hint=Hint(Action.UPGRADE, package="concord-kb"),
        )
    if version < 1:  # tables that were copied by another tool, without what the file says of itself
        raise CorruptStore(
            f"{location.path} does not say which schema its tables have",
            hint=Hint(Action.BACKUP, f"copy the whole file with {{backup}}, or {DAMAGE}"),
        )
    return int(version)


def _check_org(connection: Connection, location: Location) -> None:
    """Refuse a file reached under another name, as on a disk that does not tell upper from lower case."""
    owner = connection.execute("SELECT value FROM kb_meta WHERE key = 'org'").get
    if owner != location.org:
        raise BadValue(
            f"{location.path} belongs to the organisation {owner!r}, not to {location.org!r}",
            hint=Hint(Action.STORE, "give each organisation its own name, or its own {store}"),
        )
