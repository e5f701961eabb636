"""Opening and reading files that others may be writing: a regular one, whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from concord.core.errors import NotIndexable, Unreadable

if TYPE_CHECKING:
    from concord.files.walk import Found

TRIES = 3
# Where a system has none of these (Windows), paths are looked at before they are opened: a link that is put
# there in between is followed.
HAS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_SAFELY = reduce(or_, (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")))
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
# O_PATH: who may open a file may not list every folder above it.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _SAFELY | getattr(os, "O_PATH", os.O_RDONLY)


def open_regular(path: str, flags: int) -> int:
    """Open a regular file and nothing else: no link is followed, no pipe waited for. An opener for `open`."""
    if not HAS_FOLDERS and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a link", path)
    return _checked(os.open(path, flags | _SAFELY | _AT_ONCE), path)


def open_of_source(path: str, flags: int) -> int:
    """Open a file of a source, as `open_regular` does, if no folder above it is a link either."""
    return _checked(open_unlinked(path, flags | _AT_ONCE), path)


def open_unlinked(path: str, flags: int) -> int:
    """Open what is at an absolute path, of which no part may be a link.

    A source's own path has no links, so whatever is a link now was put there since, and may lead outside.
    Every folder is opened from the one above it: none can be replaced between a check and its use.

    Raises:
        OSError: it cannot be opened, or a link leads there.
    """
    if not HAS_FOLDERS:
        _check_unlinked(path)
        return os.open(path, flags | _SAFELY)
    path = "/" + path.strip("/")
    *folders, name = path[1:].split("/")
    at = os.open("/", _FOLDER)
    try:
        for folder in folders:
            above, at = at, os.open(folder, _FOLDER, dir_fd=at)
            os.close(above)
        return os.open(name or ".", flags | _SAFELY, dir_fd=at)
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.realpath(path) != path:
            raise OSError(errno.ELOOP, "a link leads there now", path) from fault
        raise
    finally:
        os.close(at)


@contextmanager
def unlinked_folder(path: str) -> Iterator[int | str]:
    """Lend what `os.scandir` takes for a folder, if no part of its path is a link."""
    if not HAS_FOLDERS:
        _check_unlinked(path)
        yield path
        return
    opened = open_unlinked(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield opened
    finally:
        os.close(opened)


def _check_unlinked(path: str) -> None:
    if os.path.realpath(path) != os.path.abspath(path):
        raise OSError(errno.ELOOP, "a link leads there now", path)


def _checked(descriptor: int, path: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def read_unchanging(found: Found, max_bytes: int) -> bytes | None:
    """Return a file's bytes, read while nobody was writing it; None if it has gone since it was found.

    Raises:
        NotIndexable: it is empty by now, or too large.
        Unreadable: it is forbidden, or changed each time it was read.
    """
    try:
        for _ in range(TRIES):
            with open(found.path, "rb", opener=open_of_source) as file:
                before = os.fstat(file.fileno())
                if before.st_size > max_bytes:
                    raise NotIndexable("too large")
                data = file.read(before.st_size + 1)
                after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) == (len(data), after.st_mtime_ns):
                if not data:
                    raise NotIndexable("empty")
                return data
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise Unreadable(
            (fault.strerror or str(fault)).lower(), hint="check the file's permissions"
        ) from fault
    raise Unreadable("changed while it was being read", hint="the next sync tries again")
