"""A copy of a store in one file, made while others read and write it.

Copying the database alone with `cp` loses what is still in its log, or mixes two moments. SQLite copies page
by page what one moment held, and the copy takes the place of an older one only when it is complete and sound.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import apsw

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint
from concord.core.filesystem import HAS_LOCKS, sync_names
from concord.core.protocols import Progress
from concord.store.files import file_birthplace, hold_file, locked
from concord.store.models import part_from_original
from concord.store.sql import explained, says
from concord.store.sqlite.connections import Connection, Readers, closed_on_failure
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.file import APPLICATION_ID, DAMAGE, translated

_PAGES = 32  # copied between two reports of progress
_SIGNATURE = b"SQLite format 3\0"
_HEADER_BYTES, _ID_AT = 100, 68


def write_backup(readers: Readers, path: str, progress: Progress) -> None:
    """Copy what a store holds now to a file, in place of an older copy that may be there."""
    _check_target(path)
    with _unfinished(path) as copy, readers.connection() as source, translated(path):
        # A snapshot begins with the first look. Without one, every write of others would begin the copy anew.
        source.pragma("schema_version")
        target = Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
        with closed_on_failure(target):
            _copy(source, target, progress)
            _check_sound(target, path)
            with target:
                part_from_original(target, file_birthplace(copy), DIALECT)
        target.close()


def _check_target(path: str) -> None:
    """Refuse to replace anything but an older copy."""
    if not os.path.lexists(path):
        return
    log = f"{path}-wal"  # which is empty where somebody has only looked into a copy
    if os.path.exists(log) and os.path.getsize(log):
        raise BadValue(f"{path} is a store that is written to", hint="give the copy another name")
    if not _is_store(path):
        raise BadValue(
            f"{path} is there and is no copy of a store",
            hint="give the copy another name, or move that away",
        )


def _is_store(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return False
    is_ours = int.from_bytes(head[_ID_AT : _ID_AT + 4], "big") == APPLICATION_ID
    return head.startswith(_SIGNATURE) and is_ours


@contextmanager
def _unfinished(path: str) -> Iterator[str]:
    """Lend an empty file beside the path, which takes its place when the block has succeeded.

    It is locked meanwhile, and only its owner may read it, as the store. Of a process that was killed, it is
    overwritten.
    """
    copy = f"{path}.copy.part"
    with _explained(path):
        free = _held(copy)
        _clear(copy)
        os.truncate(copy, 0)
    try:
        yield copy
        with _explained(path):
            os.replace(copy, path)
            sync_names(os.path.dirname(path))
    finally:
        _clear(copy)
        free()  # not before: SQLite's own locks on a file end when any handle of it is closed


def _held(copy: str) -> Callable[[], object]:
    """Lock the file of a copy; return what frees it, and deletes it if it is still there."""
    if not HAS_LOCKS:
        os.close(os.open(copy, os.O_CREAT, 0o600))
        return lambda: _delete(copy)
    if (free := hold_file(copy, 0o600)) is None:
        raise locked("writing this copy")
    return free


def _clear(copy: str) -> None:
    """Delete what SQLite keeps beside a file."""
    for ending in ("-journal", "-wal", "-shm"):
        _delete(copy + ending)


def _delete(file: str) -> None:
    with suppress(OSError):
        os.unlink(file)


_REFUSED = says(BackendDown, "{place} cannot be written: {fault}", "check that its folder may be written")


def _explained(path: str) -> AbstractContextManager[None]:
    return explained(OSError, ((OSError, _REFUSED),), path)


def _copy(source: Connection, target: Connection, progress: Progress) -> None:
    with target.backup("main", source, "main") as backup:
        while not backup.done:
            backup.step(_PAGES)
            progress("backup", backup.page_count - backup.remaining, backup.page_count)


def _check_sound(target: Connection, path: str) -> None:
    """Refuse a copy that nothing could be restored from."""
    fault = target.execute("PRAGMA quick_check(1)").get
    if fault != "ok":
        raise CorruptStore(
            f"the store is damaged: {fault}; {path} was left as it is", hint=Hint(Action.RECOVER, DAMAGE)
        )
