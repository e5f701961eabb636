"""Is this store a copy of another? A key for vectors outside is kept with the place that it was drawn in.

A place is told by what stays when a machine starts anew or a file is moved, and what no copy takes along: of
a file its number and when it was made, of rows on a server the database and the tables. Parts of it are
divided by slashes; one that cannot be known is empty, and is like any other.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from functools import cache

COPY = "copy"  # no place is called so: who finds this in a store knows that it was made as a copy

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES, _BTIME_AT = 256, 80  # of the kernel's struct statx, the same on every machine


def is_copied(drawn_in: str, here: str) -> bool:
    """Whether a key that was drawn in one place is now in another, as far as both are known."""
    then, now = drawn_in.split("/"), here.split("/")
    if not drawn_in or not here:
        return False
    return len(then) != len(now) or any(a != b for a, b in zip(then, now, strict=True) if a and b)


def file_birthplace(path: str) -> str:
    """Return what tells a file or a folder from all others, also from a copy that takes its place.

    Empty where that cannot be known: it may have been deleted this moment.
    """
    try:
        return f"file/{os.stat(path).st_ino}/{_birth(path)}"
    except OSError:
        return ""


def _birth(path: str) -> str:
    """Return when a file was made; empty where the system does not tell."""
    if sys.platform != "linux":
        return str(getattr(os.stat(path), "st_birthtime", ""))
    found = b"" if (statx := _statx()) is None else statx(path)
    if not found or not struct.unpack_from("=I", found)[0] & _STATX_BTIME:
        return ""
    seconds, nanoseconds = struct.unpack_from("=qI", found, _BTIME_AT)
    return f"{seconds}.{nanoseconds:09}"


@cache
def _statx() -> Callable[[str], bytes] | None:
    """Return the system's call, which Python has not got yet; None where the C library does not know it."""
    import ctypes  # late: only who keeps vectors outside gets here

    try:
        call = ctypes.CDLL(None).statx
    except (AttributeError, OSError):
        return None

    def statx(path: str) -> bytes:
        found = ctypes.create_string_buffer(_STATX_BYTES)
        is_told = call(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, found) == 0
        return found.raw if is_told else b""

    return statx
