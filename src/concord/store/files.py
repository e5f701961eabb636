"""Which file does a store's path lead to, and who may change it? Links and mounts give it many paths."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from concord.core.errors import Action, BackendDown, Hint, ReadOnlyStore, StoreBusy
from concord.core.filesystem import CLOSED_IN_CHILDREN, HAS_LOCKS, try_lock


def file_identity(path: str) -> str:
    """Return what the system knows a file or a folder by; before there is one, its path without links."""
    try:
        found = os.stat(path)
    except OSError:
        return f"file {os.path.realpath(path)}"
    return f"file {found.st_dev}:{found.st_ino}"


_POLL_S = 0.05
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


def read_only(path: str) -> ReadOnlyStore:
    """Return the error that a store on disk can only be read."""
    hint = Hint(Action.STORE, "change its permissions or its folder's, or use another {store}")
    return ReadOnlyStore(f"{path} is read-only", hint=hint)


def locked(doing: str) -> StoreBusy:
    """Return the error that another process still holds a lock."""
    return StoreBusy(f"another process is {doing}", hint="wait for it to finish, then try again")


@contextmanager
def file_lock(store: str, name: str, doing: str, wait_s: float) -> Iterator[None]:
    """Hold the lock of this name beside a store; whoever is refused is told what its holder is doing."""
    import hashlib  # 3 ms, which a search need not pay

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    path, deadline = f"{store}-{digest[:16]}.lock", time.monotonic() + wait_s
    attempt = _hold_file if HAS_LOCKS else _hold_database
    try:
        while (free := attempt(path)) is None:
            if time.monotonic() >= deadline:
                raise locked(doing)
            time.sleep(_POLL_S)
    except OSError as fault:
        if fault.errno in _FORBIDDEN:
            raise read_only(store) from fault
        raise BackendDown(
            f"{path} cannot be made: {fault.strerror}", hint="check the disk and its permissions"
        ) from fault
    try:
        yield
    finally:
        free()


_Free = Callable[[], object]  # what ends a lock


def _hold_file(path: str) -> _Free | None:
    """Make a file and lock it; return what deletes and frees it, None if somebody else holds it."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | CLOSED_IN_CHILDREN, 0o644)

    def is_still_there() -> bool:
        try:
            return os.path.samestat(os.stat(path), os.fstat(opened))
        except FileNotFoundError:
            return False

    def free() -> None:
        if is_still_there():  # not where the store was deleted or replaced meanwhile
            os.unlink(path)  # before the lock is released: whoever waits sees this and makes a new file
        os.close(opened)

    if try_lock(opened) and is_still_there():
        return free
    os.close(opened)
    return None


def _hold_database(path: str) -> _Free | None:
    """Lock an empty database instead: SQLite knows the locks of every system. Its file stays."""
    import apsw

    database = apsw.Connection(path)
    try:
        database.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        database.close()
        return None
    return database.close
