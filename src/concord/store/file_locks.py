"""A lock that processes share: a file beside the store's own, under `flock`, freed when its holder dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from concord.core.errors import BackendDown
from concord.store.store_errors import locked, read_only

_POLL_S = 0.05
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def file_lock(store: str, name: str, doing: str, wait_s: float) -> Iterator[None]:
    """Hold the lock of this name beside a store; whoever is refused is told what its holder is doing.

    Raises:
        StoreBusy: somebody else holds it for longer than `wait_s`.
        ReadOnlyStore: nothing may be written there.
        BackendDown: no file can be made there.
    """
    import hashlib  # 3 ms, which a search need not pay

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    path = f"{store}-{digest[:16]}.lock"
    try:
        held = _acquired(path, time.monotonic() + wait_s)
    except OSError as fault:
        if fault.errno in _FORBIDDEN:
            raise read_only(store) from fault
        raise BackendDown(
            f"{path} cannot be made: {fault.strerror}", hint="check the disk and its permissions"
        ) from fault
    if held is None:
        raise locked(doing)
    try:
        yield
    finally:
        if _is_still_there(path, held):  # not where the store was deleted or replaced meanwhile
            os.unlink(path)  # before the lock is released: whoever waits sees this and makes a new file
        os.close(held)


def _acquired(path: str, deadline: float) -> int | None:
    """Try until the deadline; return the open file that holds the lock."""
    while (held := _try(path)) is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return held


def _try(path: str) -> int | None:
    """Return the open file when the lock was free, else None."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still_there(path, opened):
            return opened
    except BlockingIOError:
        pass
    os.close(opened)
    return None


def _is_still_there(path: str, opened: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(opened))
    except FileNotFoundError:
        return False
