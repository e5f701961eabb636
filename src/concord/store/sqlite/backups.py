"""A copy of a store in one file, made while others read and write it.

Copying the database alone with `cp` loses what is still in its log, or mixes two moments. SQLite copies page
by page what one moment held, and the copy takes the place of an older one only when it is complete and sound.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint
from concord.core.filesystem import CLOSED_IN_CHILDREN, HAS_LOCKS, sync_names, try_lock
from concord.core.protocols import Progress
from concord.store.files import file_birthplace
from concord.store.outbox import part_from_original
from concord.store.sqlite.connections import Connection, Readers, closed_on_failure
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.file import APPLICATION_ID, DAMAGE, translated

_PAGES = 32  # copied between two reports of progress
_SIGNATURE = b"SQLite format 3\0"
_HEADER_BYTES, _ID_AT = 100, 68


def write_backup(readers: Readers, path: str, progress: Progress) -> None:
    """Copy what a store holds now to a file, in place of an older copy that may be there.

    Raises:
        BadValue: something else is there, or a store that is in use.
        CorruptStore: the store is damaged; the older copy stays.
        BackendDown: the disk refuses.
    """
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

    It is locked meanwhile: an unlocked one was left by a process that was killed, and is deleted.
    """
    with _explained(path):
        _sweep(path)
        copy, held = _new_part(path)
    try:
        yield copy
        with _explained(path):
            os.replace(copy, path)
            sync_names(os.path.dirname(path))
    finally:
        _delete(copy)
        if held is not None:
            os.close(held)  # not before: SQLite's own locks on a file end when any handle of it is closed


def _new_part(path: str) -> tuple[str, int | None]:
    """Return a new file that only its owner may read, as the store is, and the handle that locks it."""
    import secrets  # late, as all that only a backup needs

    while True:
        part = f"{path}.{secrets.token_hex(4)}.part"
        held = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | CLOSED_IN_CHILDREN, 0o600)
        if not HAS_LOCKS:  # nor are files replaced there that anybody has open
            os.close(held)
            return part, None
        is_ours = True
        with suppress(OSError):  # a disk that knows no locks keeps parts for ever
            is_ours = try_lock(held)
        if is_ours and os.path.exists(part):  # another backup may have swept it before it was locked
            return part, held
        os.close(held)


def _sweep(path: str) -> None:
    """Delete the parts of earlier backups to this path that nobody is writing."""
    folder, name = os.path.split(path)
    is_part = re.compile(re.escape(name) + r"\.[0-9a-f]{8}\.part").fullmatch
    try:
        found = os.listdir(folder)
    except OSError:  # if nothing can be made there either, the next step says so
        return
    for part in filter(is_part, found):
        with suppress(OSError):  # it is locked, somebody else's, or gone by now
            held = os.open(os.path.join(folder, part), os.O_RDWR | CLOSED_IN_CHILDREN)
            try:
                if try_lock(held):
                    _delete(os.path.join(folder, part))
            finally:
                os.close(held)


def _delete(part: str) -> None:
    """Delete an unfinished copy, the main file last: if that is interrupted, the next sweep finds it."""
    for file in (f"{part}-journal", f"{part}-wal", f"{part}-shm", part):
        with suppress(OSError):
            os.unlink(file)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise BackendDown(
            f"{path} cannot be written: {fault.strerror}", hint="check that its folder may be written"
        ) from fault


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
