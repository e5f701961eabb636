"""Opening and reading files that others may be writing: a regular one, whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from concord.errors import NotIndexable, Unreadable

if TYPE_CHECKING:
    from concord.files.walk import Found

TRIES = 3


def open_regular(path: str, flags: int) -> int:
    """Open a regular file and nothing else: no link is followed, no pipe waited for. An opener for `open`.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
            with open(found.path, "rb", opener=open_regular) as file:
                before = os.fstat(file.fileno())
                if before.st_size > max_bytes:
                    raise NotIndexable("too large")
                data = file.read(before.st_size + 1)
                after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) == (len(data), after.st_mtime_ns):
                return _not_empty(data)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise Unreadable(
            (fault.strerror or str(fault)).lower(), hint="check the file's permissions"
        ) from fault
    raise Unreadable("changed while it was being read", hint="the next sync tries again")


def _not_empty(data: bytes) -> bytes:
    if not data:
        raise NotIndexable("empty")
    return data
