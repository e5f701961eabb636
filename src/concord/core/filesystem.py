"""How does a file outlast a crash or a power cut? It is written beside its place, then put there whole."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress

try:
    import fcntl
except ModuleNotFoundError:  # not a Unix
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

CLOSED_IN_CHILDREN = getattr(os, "O_CLOEXEC", 0)  # elsewhere no child inherits a file unasked
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED_IN_CHILDREN
_LONGEST = 200  # bytes of a name; a system allows 255
_DRAFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.draft", re.DOTALL)


def replace_file(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o666, wait: bool = True) -> None:
    """Put data in the place of a file, all or nothing, whoever else does so at the same time.

    A file that is there keeps its permissions; a new one gets `mode`, less the process's umask. Without
    `wait` for the disk it takes a fifth of the time, and a power cut may leave an empty file.

    Raises:
        OSError: it cannot be written; what was there still is.
    """
    path = os.path.realpath(path)  # what a link leads to is replaced, not the link
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{_brief(name)}.{os.urandom(4).hex()}.draft")
    known = _mode_of(path)
    try:
        with open(os.open(draft, _NEW, mode if known is None else known), "wb") as file:
            if known is not None:
                with suppress(OSError, AttributeError):  # a disk, or a system, that knows no modes
                    os.fchmod(file.fileno(), known)
            file.write(data)
            file.flush()
            if wait:
                os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)  # which is not there any more, unless something failed
    if wait:
        sync_names(folder)  # where the name leads to the new file now


def sweep_drafts(path: str | os.PathLike[str]) -> None:
    """Delete drafts that killed processes have left beside a file; only while nobody writes the file."""
    folder, name = os.path.split(os.path.realpath(path))
    with suppress(OSError):  # it is somebody else's, or the folder cannot be listed: writing tells
        for entry in os.listdir(folder):
            if (found := _DRAFT.fullmatch(entry)) and found["name"] == _brief(name):
                os.unlink(os.path.join(folder, entry))


def sync_names(folder: str) -> None:
    """Wait until the names in a folder are on the disk, if anybody can."""
    with suppress(OSError):  # they are in their places; not every system, disk or user can ask for more
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def try_lock(opened: int) -> bool:
    """Lock an open file until it is closed; return whether nobody else holds the lock.

    Raises:
        OSError: the disk or the system knows no locks.
    """
    if not HAS_LOCKS:
        raise OSError(errno.ENOTSUP, "no locks on this system")
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _brief(name: str) -> str:
    """Return the beginning of a name that leaves room for what the name of a draft has in addition."""
    return os.fsdecode(os.fsencode(name)[:_LONGEST])


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return None
