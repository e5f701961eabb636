"""How long may a call to a server take? As long as the search that makes the call waits for it.

A search sets the limit once, where it begins, and it holds for everything that runs on its behalf, also in
threads that carry its context on. No protocol has a parameter for it: only an adapter that asks a server
needs it, so that the server does not go on with work that nobody waits for any more. A sync sets no limit,
because none of its work may be cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limit: ContextVar[float | None] = ContextVar("limit", default=None)


def limit_ms() -> float | None:
    """Return how long a call to a server may take now; None means as long as it takes."""
    return _limit.get()


@contextmanager
def limited_to(milliseconds: float | None) -> Iterator[None]:
    """Let no call to a server in the block take longer than this."""
    token = _limit.set(milliseconds)
    try:
        yield
    finally:
        _limit.reset(token)
