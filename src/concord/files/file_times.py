"""What do the times of a file tell? Whether it may have been saved again, so that no save is missed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concord.files.walk import Found

RACY_NS = 2_000_000_000  # a file saved this shortly before it was read may be saved again with the same time
# Taken off the time that is remembered of such a file: the next sync looks inside, filters by date hold good.
UNSETTLED_NS = 1
# Files may claim to be of any year. Stores keep 64 bits of nanoseconds: September 1677 to April 2262.
_EARLIEST_NS, _LATEST_NS = -(2**63), 2**63 - 1


def may_be_another(ctime_ns: int, read_at: float) -> bool:
    """Whether a file with an unchanged size and modification time may still hold something else.

    A file that was moved there, unpacked or synchronised keeps its modification time; its ctime shows it.
    """
    return ctime_ns >= read_at * 1e9 - RACY_NS


def storable_ns(moment_ns: int) -> int:
    """Return a moment, or the nearest one that every store can keep.

    Both sides of a comparison have to go through it, so that equal moments stay equal.
    """
    return max(_EARLIEST_NS, min(moment_ns, _LATEST_NS))


def settled_mtime(found: Found) -> int:
    """Return the modification time to remember, which is not the file's while it may hide another save."""
    return found.mtime_ns if is_settled(found) else found.mtime_ns - UNSETTLED_NS


def is_settled(found: Found) -> bool:
    """Whether another save would show by the file's modification time."""
    return time.time_ns() - found.mtime_ns >= RACY_NS
