"""How long may a call to a server take? As long as whoever asks for it waits.

That is said once, where a search begins, and known to all that it sets to work. Protocols have no word for
it: only an adapter that asks a server needs to know, so that the server does not go on with what nobody waits
for any more. A sync sets no limit: nothing of it may be cut off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Said(threading.local):
    limit_ms: float | None = None


_said = _Said()


def limit_ms() -> float | None:
    """Return how long anything asked of others may take now; None for as long as it takes."""
    return _said.limit_ms


@contextmanager
def limited_to(milliseconds: float | None) -> Iterator[None]:
    """Let each thing that is asked of others in the block take no longer than this."""
    before = _said.limit_ms
    _said.limit_ms = milliseconds
    try:
        yield
    finally:
        _said.limit_ms = before


def with_callers_limit(work: Callable[[], None]) -> Callable[[], None]:
    """Return a piece of work for another thread, which has the same limit there as on this one now."""
    limit = _said.limit_ms
    if limit is None:
        return work

    def limited() -> None:
        with limited_to(limit):
            work()

    return limited
