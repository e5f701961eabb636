"""Whose turn is it to sync a source? One process at a time, and whoever waits is told that it waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from concord.errors import StoreBusy
from concord.protocols import WAITING, Progress
from concord.storage import Catalog

TOLD_EVERY_S = 1.0  # how often whoever waits for another sync of the same source hears of it


@contextmanager
def sync_turn(source_id: str, catalog: Catalog, progress: Progress, wait_s: float) -> Iterator[None]:
    """Hold the right to sync a source, reporting that it is waited for: another sync may take minutes.

    Raises:
        StoreBusy: another process holds it for longer than `wait_s`.
    """
    began = time.monotonic()
    with ExitStack() as held:
        while (left_s := wait_s - (time.monotonic() - began)) > TOLD_EVERY_S:
            try:
                held.enter_context(catalog.sync_lock(source_id, wait_s=TOLD_EVERY_S))
                break
            except StoreBusy:
                progress(WAITING, round(time.monotonic() - began), None)
        else:
            held.enter_context(catalog.sync_lock(source_id, wait_s=max(0.0, left_s)))
        yield
