"""Who may sync a source? One process at a time; the others wait, and report that they do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from concord.core.errors import StoreBusy
from concord.core.protocols import WAITING, Progress
from concord.store.contract import Store

SYNCING = "syncing this source"  # what others are told that wait for the lock of a source
_REPORTED_EVERY_S = 1.0  # to whoever waits for another sync of the same source


@contextmanager
def sync_lock(source_id: str, store: Store, progress: Progress, wait_s: float) -> Iterator[None]:
    """Hold the right to sync a source, reporting that it is waited for: another sync may take minutes.

    Raises:
        StoreBusy: another process holds it for longer than `wait_s`.
    """
    began = time.monotonic()
    with ExitStack() as held:
        while (left_s := wait_s - (time.monotonic() - began)) > _REPORTED_EVERY_S:
            try:
                held.enter_context(store.lock(source_id, SYNCING, wait_s=_REPORTED_EVERY_S))
                break
            except StoreBusy:
                progress(WAITING, round(time.monotonic() - began), None)
        else:
            held.enter_context(store.lock(source_id, SYNCING, wait_s=max(0.0, left_s)))
        yield
