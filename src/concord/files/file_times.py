"""Reading files that others may be writing: one is read whole or not at all, and no save is missed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from concord.errors import NotIndexable, Unreadable

if TYPE_CHECKING:
    from concord.files.walk import Found

TRIES = 3
RACY_NS = 2_000_000_000  # a file saved this shortly before it was read may be saved again with the same time
# Taken off the time that is remembered of such a file: the next sync looks inside, filters by date hold good.
UNSETTLED_NS = 1
# Files may claim to be of any year. Stores keep 64 bits of nanoseconds: September 1677 to April 2262.
_EARLIEST_NS, _LATEST_NS = -(2**63), 2**63 - 1


def read_unchanging(found: Found, max_bytes: int) -> bytes | None:
    """Return a file's bytes, read while nobody was writing it; None if it has gone since it was found.

    Raises:
        NotIndexable: it is empty by now, or too large.
        Unreadable: it is forbidden, or changed each time it was read.
    """
    from concord.files.gitignore import (
        open_regular,  # late: every search loads this module, and reads no file
    )

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


def may_be_another(ctime_ns: int, read_at: float) -> bool:
    """Whether a file that has the size and time it had when it was read may hold something else.

    One that was moved there, unpacked or synchronised keeps its time; when the system touched it tells.
    """
    return ctime_ns >= read_at * 1e9 - RACY_NS


def storable_ns(moment_ns: int) -> int:
    """Return a moment, or the nearest one that every store can keep.

    Both sides of a comparison have to be taken through it: then what did not change is the same again.
    """
    return max(_EARLIEST_NS, min(moment_ns, _LATEST_NS))


def settled_mtime(found: Found) -> int:
    """Return the modification time to remember, which is not the file's while it may hide another save."""
    return found.mtime_ns if is_settled(found) else found.mtime_ns - UNSETTLED_NS


def is_settled(found: Found) -> bool:
    """Whether another save would show by the file's modification time."""
    return time.time_ns() - found.mtime_ns >= RACY_NS


def _not_empty(data: bytes) -> bytes:
    if not data:
        raise NotIndexable("empty")
    return data
