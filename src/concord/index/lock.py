"""Who may sync a source? One process at a time; the others wait, and report that they do.

Who wants to remove a source does not wait until it is indexed: a mark behind what its sync has written down
asks that sync to stop, which looks for it every second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from concord.core.errors import Action, Hint, NotFound, StoreBusy
from concord.core.protocols import WAITING, Progress
from concord.store.contract import Catalog, Store
from concord.types import Source

SYNCING = "syncing this source"  # what others are told that wait for the lock of a source
_REPORTED_EVERY_S = 1.0  # to whoever waits for another sync of the same source
_REMOVED = "\nremoved"  # the mark: no state of a sync ends so
_LOOKED_EVERY_S = 1.0  # for the mark


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


@contextmanager
def removal_lock(source_id: str, store: Store, wait_s: float) -> Iterator[None]:
    """Hold a source's lock after asking the sync that may have it to stop.

    Raises:
        StoreBusy: it has not stopped within `wait_s`.
    """
    deadline, asked_s = time.monotonic() + wait_s, 0.0
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(store.lock(source_id, SYNCING, wait_s=asked_s))
                break
            except StoreBusy:
                asked_s = min(_REPORTED_EVERY_S, deadline - time.monotonic())
                if asked_s <= 0:
                    begin_anew(source_id, store.catalog)
                    raise
            except BaseException:  # Ctrl-C: then it stays
                begin_anew(source_id, store.catalog)
                raise
            state = store.catalog.sync_state(source_id)
            store.catalog.put_sync_state(source_id, state.removesuffix(_REMOVED) + _REMOVED)
        yield


def begin_anew(source_id: str, catalog: Catalog) -> None:
    """Take away the mark of whoever wanted to remove a source, and did not."""
    state = catalog.sync_state(source_id)
    if state.endswith(_REMOVED):
        catalog.put_sync_state(source_id, state.removesuffix(_REMOVED))


def until_removed(source: Source, catalog: Catalog, progress: Progress) -> Progress:
    """Report progress, but end a sync whose source is to be removed."""
    looked = time.monotonic()

    def report(stage: str, done: int, total: int | None) -> None:
        nonlocal looked
        if time.monotonic() - looked >= _LOOKED_EVERY_S:
            looked = time.monotonic()
            if catalog.sync_state(source.id).endswith(_REMOVED):
                raise removed_meanwhile(source)
        progress(stage, done, total)

    return report


def removed_meanwhile(source: Source) -> NotFound:
    """Say that a source is gone."""
    return NotFound(
        f"the source {source.name!r} was removed meanwhile", hint=Hint(Action.ADD, "{add} indexes it again")
    )
