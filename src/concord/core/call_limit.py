"""How long may a call to a server take? As long as the search that makes the call waits for it.

A search sets the limit once, where it begins, and it holds for everything that runs on its behalf. No
protocol has a parameter for it: only an adapter that asks a server needs it, so that the server does not go
on with work that nobody waits for any more. A sync sets no limit, because none of its work may be cut off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Said(threading.local):
    limit_ms: float | None = None


_said = _Said()


def limit_ms() -> float | None:
    """Return how long a call to a server may take now; None means as long as it takes."""
    return _said.limit_ms


@contextmanager
def limited_to(milliseconds: float | None) -> Iterator[None]:
    """Let no call to a server in the block take longer than this."""
    before = _said.limit_ms
    _said.limit_ms = milliseconds
    try:
        yield
    finally:
        _said.limit_ms = before


def with_callers_limit(work: Callable[[], None]) -> Callable[[], None]:
    """Return a piece of work for another thread that keeps the limit of this thread there."""
    limit = _said.limit_ms
    if limit is None:
        return work

    def limited() -> None:
        with limited_to(limit):
            work()

    return limited
