"""What every journal does: counts readings, keeps opinions, changes nothing that is searched."""

from __future__ import annotations

from msgspec.structs import replace

from concord.store.contract import Store
from concord.types import Access, Feedback
from contract.stored import put


def test_readings_are_counted_and_the_latest_is_remembered(store: Store):
    put(store, "docs/a.md", "one")
    put(store, "docs/b.md", "two")
    put(store, "docs/c.md", "three")
    store.journal.record_access(["docs/a.md", "docs/b.md", "docs/a.md"], 100.0)
    store.journal.record_access(["docs/a.md"], 200.0)
    store.journal.record_access(["docs/a.md"], 150.0)
    asked = ["docs/a.md", "docs/b.md", "docs/c.md", "nothing"]
    assert store.journal.accesses(asked) == {"docs/a.md": Access(3, 200.0), "docs/b.md": Access(1, 100.0)}


def test_readings_survive_a_change_of_the_document_and_go_with_it(store: Store):
    put(store, "docs/a.md", "one")
    store.journal.record_access(["docs/a.md"], 100.0)
    put(store, "docs/a.md", "another text")
    assert store.journal.accesses(["docs/a.md"]) == {"docs/a.md": Access(1, 100.0)}
    store.catalog.delete_documents(["docs/a.md"])
    put(store, "docs/a.md", "one")
    assert store.journal.accesses(["docs/a.md"]) == {}


def test_the_last_opinion_on_a_document_for_a_query_counts(store: Store):
    first = Feedback("docs/a.md", "docs/a.md:1-2", "good", "how to deploy", 1.0)
    other = Feedback("docs/a.md", "docs/a.md:1-2", "bad", "another query", 2.0)
    unasked = Feedback("docs/b.md", "docs/b.md:3-4", "good", at=3.0)
    for feedback in (first, other, unasked, replace(first, opinion="bad", at=4.0)):
        store.journal.record_feedback(feedback)
    assert store.journal.feedback() == [other, unasked, replace(first, opinion="bad", at=4.0)]


def test_opinions_outlive_their_documents(store: Store):
    put(store, "docs/a.md", "one")
    given = Feedback("docs/a.md", "docs/a.md:1-1", "good", "one", 1.0)
    store.journal.record_feedback(given)
    store.catalog.delete_documents(["docs/a.md"])
    assert store.journal.feedback() == [given]
