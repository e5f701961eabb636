"""What a knowledge base holds: its sources, how much of each, and how to be rid of one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from concord.errors import BackendDown, UsageError
from concord.outcomes import Removal, SourceSummary, Stats
from concord.storage import Catalog, Store
from concord.types import Source, silent

_TRY_AGAIN = "nothing was removed: see that it runs and that vectors.url is right, then try again"


def summary(catalog: Catalog, source: Source) -> SourceSummary:
    """Return a source with its counts."""
    return SourceSummary(source, catalog.counts(source.id))


def stats(store: Store, org: str, url: str) -> Stats:
    """Return the state of a knowledge base, which is kept at a URL."""
    catalog = store.catalog
    counts, home = catalog.counts(), store.ledger.home().url
    pending = counts.chunks - counts.vectors
    return Stats(
        org=org,
        store=url,
        size_bytes=_size(store.path) if store.path else None,
        counts=counts,
        pending=pending,
        identity=store.vectors.identity(),
        cache=store.cache.usage(),
        index=None if home else store.index_state(),  # where vectors are kept, theirs is
        generation=catalog.generation(),
        types=catalog.count_types(),
        feedback=Counter(one.opinion for one in store.journal.feedback()),
        vectors_home=home,
        problems=tuple(_problems(counts.documents, pending)),
    )


def _problems(documents: int, pending: int) -> Iterator[str]:
    if not documents:
        yield "nothing is indexed yet: `kb add PATH` indexes a folder, `kb note` keeps a note"
    if pending:
        yield f"{pending:,} chunks are left to embed, and found by words alone until then: `kb sync`"


def _size(path: str) -> int | None:
    """Return what a store takes on the disk, with the log of a database, which may be the larger part."""
    files = [file for file in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(file)]
    return sum(map(os.path.getsize, files)) if files else None


def remove(store: Store, source: Source, wait_s: float, *, force: bool = False) -> Removal:
    """Delete a source with all that came from it: vectors first, which may be kept by somebody else.

    Raises:
        UsageError: it holds notes, which are nowhere else, and nobody has said that these are to go as well.
        StoreBusy: it has been synced by another process for longer than `wait_s`.
        BackendDown: the vectors cannot be deleted now; nothing has been, and it can be tried again.
    """
    if source.kind == "notes" and not force:
        _refuse_to_lose(source, store.catalog.counts(source.id).documents)
    # A sync under way would store what it still holds after everything else has been deleted.
    with store.catalog.sync_lock(source.id, wait_s=wait_s):
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
            hint=f"`kb note --export notes.jsonl` saves them; then `kb remove {source.name} --force`",
        )
