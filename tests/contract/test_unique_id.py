"""What tells a store from every other, however it was spelt when it was opened."""

from __future__ import annotations

from concord.core.storage import Store
from concord.store.old_names import OldMemoryStore
from contract.stored import put


def test_a_store_keeps_its_id_and_no_other_has_it(store: Store):
    put(store, "docs/a.md", "text")  # before the first change there may be nothing to tell it by
    at_first = store.unique_id()
    put(store, "docs/b.md", "text")
    assert store.unique_id() == at_first
    assert OldMemoryStore().unique_id() != at_first
