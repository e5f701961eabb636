"""Native code under way: the end of Python waits for it, because it does not survive being ended.

When Python ends, a daemon thread that comes back from native code is ended where it stands, and within the
C++ of a model's runtime that aborts the process. A thread that waits for a network is ended without harm, so
nobody waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LONGEST_WAIT_S = 10.0  # a model loads in one, and its weights are written the first time in another


class _UnderWay:
    """How many threads are in native code, and whether any more may go there."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.is_over = False


_state = _UnderWay()


@contextmanager
def native_code() -> Iterator[None]:
    """Have the end of Python wait for what is done within; once it has come, no daemon begins any more."""
    state = _state
    with state.changed:
        if state.is_over and threading.current_thread().daemon:
            raise SystemExit  # ends this thread, without a word
        state.count += 1
    try:
        yield
    finally:
        with state.changed:
            state.count -= 1
            state.changed.notify_all()


def _wait() -> None:
    with _state.changed:
        _state.is_over = True
        _state.changed.wait_for(lambda: not _state.count, LONGEST_WAIT_S)


def _start_anew() -> None:
    """Forget the threads of the process that this one was forked from: they are not here."""
    global _state
    _state = _UnderWay()


if hasattr(os, "register_at_fork"):  # elsewhere nothing forks
    os.register_at_fork(after_in_child=_start_anew)
# Not `atexit`, whose functions `kb` runs before it leaves by `os._exit`: that does no harm to native code.
with suppress(RuntimeError):  # Python is ending already
    threading._register_atexit(_wait)  # type: ignore[attr-defined]
