"""What does a knowledge base hold? How much of each source, and of all together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from concord.errors import Action, Hint
from concord.outcomes import SourceSummary, Stats
from concord.storage import Catalog, Store
from concord.types import Source


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
        index=None if home else store.index_state(),  # another server has an index of its own
        generation=catalog.generation(),
        types=catalog.count_types(),
        feedback=Counter(one.opinion for one in store.journal.feedback()),
        vectors_home=home,
        problems=tuple(_problems(counts.documents, pending)),
    )


def _problems(documents: int, pending: int) -> Iterator[str]:
    if not documents:
        yield Hint(Action.ADD, "nothing is indexed yet: {add} indexes a folder, {note} keeps a note")
    if pending:
        left = f"{pending:,} chunks are left to embed, and found by words alone until then"
        yield Hint(Action.SYNC, f"{left}: {{sync}}")


def _size(path: str) -> int | None:
    """Return what a store takes on the disk, with the log of a database, which may be the larger part."""
    files = [file for file in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(file)]
    return sum(map(os.path.getsize, files)) if files else None
