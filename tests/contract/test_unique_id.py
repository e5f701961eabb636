"""What tells a store from every other, however it was spelt when it was opened."""

from __future__ import annotations

from concord.store.contract import Store
from concord.store.json_file import MemoryStore
from contract.stored import put


def test_a_store_keeps_its_id_and_no_other_has_it(store: Store):
    put(store, "docs/a.md", "text")  # before the first change there may be nothing to tell it by
    at_first = store.place.unique_id
    put(store, "docs/b.md", "text")
    assert store.place.unique_id == at_first
    assert MemoryStore().place.unique_id != at_first
