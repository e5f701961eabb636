"""How many documents a filter lets through, counted by every catalog."""

from __future__ import annotations

import pytest

from concord.store.contract import Store
from concord.types import Filter
from contract.stored import put


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        (Filter(), 2),
        (Filter(include_superseded=True), 3),
        (Filter(tags=("ops",)), 1),
        (Filter(tags=("ops", "none")), 0),
        (Filter(type="pdf"), 0),
        (Filter(source_id="docs"), 1),
        (Filter(path="docs/*.md", include_superseded=True), 2),
        (Filter(since=20.0), 1),
        (Filter(since=20.0, until=5.0), 0),
    ],
    ids=str,
)
def test_documents_are_counted_under_a_filter(store: Store, filter: Filter, count: int):
    put(store, "docs/a.md", "one", tags=("ops",), mtime_ns=10**10)
    put(store, "docs/b.md", "two", superseded_by="docs/a.md")
    put(store, "more/c.md", "three", "four", mtime_ns=3 * 10**10)
    assert store.catalog.count_documents(filter) == count
