"""Who may sync a source, and who may remove it? One process at a time; the others wait, and say that they do.

Who wants to remove a source does not wait until it is indexed: a mark behind what its sync has written down
asks that sync to stop, which looks for it every second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from concord.core.errors import Action, BackendDown, Hint, NotFound, StoreBusy, UsageError
from concord.core.protocols import WAITING, Progress
from concord.core.reports import Removal
from concord.store.contract import Catalog, Store
from concord.types import Source, silent

SYNCING = "syncing this source"  # what others are told that wait for the lock of a source
_LOOKED_EVERY_S = 1.0  # for another sync of the same source to end, for the mark
_REMOVED = "\nremoved"  # the mark: no state of a sync ends so


def sync_lock(source_id: str, store: Store, progress: Progress, wait_s: float) -> ExitStack:
    """Hold the right to sync a source, reporting that it is waited for: another sync may take minutes.

    Raises:
        StoreBusy: another process holds it for longer than `wait_s`.
    """
    began = time.monotonic()
    return _locked(source_id, store, wait_s, lambda: progress(WAITING, round(time.monotonic() - began), None))


def removal_lock(source_id: str, store: Store, wait_s: float) -> ExitStack:
    """Hold a source's lock after asking the sync that may have it to stop.

    Raises:
        StoreBusy: it has not stopped within `wait_s`.
    """

    def ask() -> None:
        state = store.catalog.sync_state(source_id)
        store.catalog.put_sync_state(source_id, state.removesuffix(_REMOVED) + _REMOVED)

    try:
        return _locked(source_id, store, wait_s, ask)
    except BaseException:  # Ctrl-C, too: then the source stays
        begin_anew(source_id, store.catalog)
        raise


def _locked(source_id: str, store: Store, wait_s: float, meanwhile: Callable[[], None]) -> ExitStack:
    """Hold a source's lock; while another process has it, call `meanwhile` every second."""
    deadline = time.monotonic() + wait_s
    while True:
        next_s = max(0.0, min(_LOOKED_EVERY_S, deadline - time.monotonic()))
        try:
            with ExitStack() as held:
                held.enter_context(store.lock(source_id, SYNCING, wait_s=next_s))
                return held.pop_all()
        except StoreBusy:
            if time.monotonic() >= deadline:
                raise
            meanwhile()


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


def as_stored(source: Source, catalog: Catalog) -> Source:
    """Return a source as it is stored now: somebody may have renamed or retagged it since it was read."""
    for stored in catalog.snapshot().sources:
        if stored.id == source.id:
            return stored
    raise removed_meanwhile(source)


def removed_meanwhile(source: Source) -> NotFound:
    """Return the error that a source is gone."""
    return NotFound(
        f"the source {source.name!r} was removed meanwhile", hint=Hint(Action.ADD, "{add} indexes it again")
    )


def remove(
    store: Store, source: Source, wait_s: float, *, force: bool = False, progress: Progress = silent
) -> Removal:
    """Delete a source with all that came from it, vectors first: these may be kept on another server."""
    notes = store.catalog.count(source.id).documents if source.kind == "notes" else 0
    if notes and not force:
        counted = "1 note" if notes == 1 else f"{notes:,} notes"
        raise UsageError(
            f"what {source.name!r} holds is in no file: {counted} would be gone for good",
            hint=Hint(
                Action.NOTE_REMOVE,
                "{note_remove} removes one; {note_export} saves them all, then {remove_with_notes}",
                source=source.name,
            ),
        )
    # A sync under way would store what it still holds after everything else has been deleted.
    with removal_lock(source.id, store, wait_s):
        progress("remove", 0, None)  # whoever does not want it any more after waiting can still say so
        indexes = [store.models.index(model.identity) for model in store.catalog.snapshot().models]
        try:
            vectors = sum(index.delete_source(source.id) for index in indexes)
        except BackendDown as fault:
            if store.outbox.home().url:  # else it is the store's own fault, with its own advice
                fault.hint = "nothing was removed: try again when it answers"
            raise
        documents = store.catalog.remove_source(source.id)
    store.maintain(silent)
    return Removal(source, documents, vectors)
