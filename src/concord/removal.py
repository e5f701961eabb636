"""How is a source removed? With all that came from it; notes, which exist nowhere else, only with `force`."""

from __future__ import annotations

from concord.errors import Action, BackendDown, Hint, UsageError
from concord.outcomes import Removal
from concord.protocols import Progress
from concord.storage import Store
from concord.types import Source, silent

_TRY_AGAIN = "nothing was removed: see that it runs and that vectors.url is right, then try again"


def remove(
    store: Store, source: Source, wait_s: float, *, force: bool = False, progress: Progress = silent
) -> Removal:
    """Delete a source with all that came from it, vectors first: these may be kept on another server.

    Raises:
        UsageError: it holds notes, which are nowhere else, and `force` is not set.
        StoreBusy: it has been synced by another process for longer than `wait_s`.
        BackendDown: the vectors cannot be deleted now; nothing has been, and it can be tried again.
    """
    if source.kind == "notes" and not force:
        _refuse_to_lose(source, store.catalog.counts(source.id).documents)
    # A sync under way would store what it still holds after everything else has been deleted.
    with store.catalog.sync_lock(source.id, wait_s=wait_s):
        progress("remove", 0, None)  # whoever does not want it any more after waiting can still say so
        vectors = _delete_vectors(store, source.id)
        documents = store.catalog.remove_source(source.id)
    store.tend(silent)
    return Removal(source, documents, vectors)


def _delete_vectors(store: Store, source_id: str) -> int:
    """Delete the vectors of a source, of every model; return how many there were."""
    try:
        spaces = [store.spaces.of(space.identity) for space in store.spaces.all()]
        return sum(space.delete_source(source_id) for space in spaces)
    except BackendDown as fault:
        if not store.ledger.home().url:  # the store's own fault, and its own advice
            raise
        # What a vector store advises is for those who search.
        raise BackendDown(fault.message, hint=_TRY_AGAIN) from fault


def _counted(notes: int) -> str:
    return "1 note" if notes == 1 else f"{notes:,} notes"


def _refuse_to_lose(source: Source, notes: int) -> None:
    if notes:
        raise UsageError(
            f"what {source.name!r} holds is in no file: {_counted(notes)} would be gone for good",
            hint=Hint(
                Action.NOTE_REMOVE,
                "{note_remove} removes one; {note_export} saves them all, then {remove_with_notes}",
                source=source.name,
            ),
        )
