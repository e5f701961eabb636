"""What tells a store from every other, however it was spelt when it was opened."""

from __future__ import annotations

from concord.backends.memory import MemoryStore
from concord.storage import Store
from contract.stored import put


def test_a_store_stays_where_it_is_and_no_other_is_there(store: Store):
    put(store, "docs/a.md", "text")  # before the first change there may be nothing to tell it by
    at_first = store.whereabouts()
    put(store, "docs/b.md", "text")
    assert store.whereabouts() == at_first
    assert MemoryStore().whereabouts() != at_first
