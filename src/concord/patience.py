"""How long does whoever asks wait? Said once, where a search begins, and known to all that it sets to work.

Protocols have no word for it: only an adapter that asks a server needs to know, so that the server does not
go on with what nobody waits for any more. Nothing is said where nothing may be cut off, as in a sync.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Said(threading.local):
    allowed_ms: float | None = None


_said = _Said()


def allowed_ms() -> float | None:
    """Return how long anything asked of others may take now; None for as long as it takes."""
    return _said.allowed_ms


@contextmanager
def allowing(milliseconds: float | None) -> Iterator[None]:
    """Let each thing that is asked of others in the block take no longer than this."""
    before = _said.allowed_ms
    _said.allowed_ms = milliseconds
    try:
        yield
    finally:
        _said.allowed_ms = before


def handed_on(work: Callable[[], None]) -> Callable[[], None]:
    """Return a piece of work for another thread, which is to be as patient there as this one is now."""
    allowed = _said.allowed_ms
    if allowed is None:
        return work

    def patiently() -> None:
        with allowing(allowed):
            work()

    return patiently
