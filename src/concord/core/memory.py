"""What the C library does with free memory: glibc is told, others know best."""

from __future__ import annotations

import sys
from contextlib import suppress

_ARENA_MAX, _SHARED = -8, 2  # mallopt's name for how many areas of memory threads have, and how many we want


def share_between_threads() -> None:
    """Let threads share two areas of memory: they come and go, and what is free would stay in theirs.

    Eight threads that searched a thousand times took 302 MB with it, and 486, ever more, without.
    """
    _ask("mallopt", _ARENA_MAX, _SHARED)


def give_back() -> None:
    """Give back what is free: the C library keeps it for later, 17 MB after the reader is loaded."""
    _ask("malloc_trim", 0)


def _ask(function: str, *args: int) -> None:
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # not every C library can
            getattr(ctypes.CDLL(None), function)(*args)
