"""What every store does with links: they find documents by name, whichever of the two comes first."""

from __future__ import annotations

from msgspec.structs import replace

from concord.index.links import COMMON_FROM, find_mentions
from concord.store.contract import Store, document_by_id
from concord.types import Filter, Link, LinkKind, Piece
from contract.stored import EVERYTHING, put


def linking(text: str, *targets: str, kind: LinkKind = "link") -> Piece:
    return Piece(text, 0, len(text), 1, 1, links=tuple(Link(kind, target, text) for target in targets))


def leads(store: Store, path: str = "docs/a.md") -> dict[str, str | None]:
    """Return where the links of a document lead, by what they say."""
    return {row.link.target: row.document_id for row in store.links.outgoing(path)}


def test_a_link_finds_a_document_that_is_there_and_one_that_comes_later(store: Store):
    put(store, "docs/there.md", "text")
    put(store, "docs/a.md", linking("see", "there.md", "sub/later.md#part"))
    assert leads(store) == {"there.md": "docs/there.md", "sub/later.md#part": None}
    assert [row.link.target for row in store.links.broken()] == ["sub/later.md#part"]
    put(store, "docs/sub/later.md", "text")
    assert leads(store)["sub/later.md#part"] == "docs/sub/later.md"
    assert not store.links.broken()


def test_a_link_to_a_deleted_document_is_broken_until_another_has_its_name(store: Store):
    put(store, "docs/b.md", "text", title="Board")
    put(store, "docs/a.md", linking("see", "Board", kind="wiki"))
    store.catalog.delete_documents(["docs/b.md"])
    assert leads(store) == {"Board": None}
    put(store, "docs/c.md", "text", title="Board")
    assert leads(store) == {"Board": "docs/c.md"}


def test_a_renamed_document_is_found_by_its_new_names_and_its_own_links_lead_on(store: Store):
    put(store, "docs/a.md", linking("see", "b.md", "new/b.md"))
    put(store, "docs/b.md", linking("back", "a.md"))
    moved = document_by_id(store.catalog, "docs/b.md")
    assert moved
    store.catalog.update_documents([replace(moved, path="docs/new/b.md")])
    assert leads(store) == {"b.md": None, "new/b.md": "docs/b.md"}
    assert leads(store, "docs/b.md") == {"a.md": None}


def test_of_documents_with_one_name_the_nearest_is_meant(store: Store):
    put(store, "docs/auth.md", "text")
    put(store, "more/auth.md", "text")
    put(store, "more/a.md", linking("see", "auth", kind="wiki"))
    assert leads(store, "more/a.md") == {"auth": "more/auth.md"}


def test_titles_are_mentioned_whichever_document_comes_first(store: Store):
    put(store, "docs/a.md", "Read the Release Checklist, then ask the Deployment Board.")
    put(store, "docs/b.md", "text", title="Release checklist")
    find_mentions(store)
    assert leads(store) == {"release checklist": "docs/b.md"}
    put(store, "docs/c.md", "text", title="Deployment board")
    find_mentions(store)
    assert leads(store) == {"release checklist": "docs/b.md", "deployment board": "docs/c.md"}
    assert not store.links.waiting(1)


def test_a_title_that_changes_is_mentioned_where_the_new_one_stands(store: Store):
    put(store, "docs/a.md", "Read the Release Checklist.")
    put(store, "docs/b.md", "The New Board decides.")
    put(store, "docs/c.md", "text", title="Release checklist")
    find_mentions(store)
    known = document_by_id(store.catalog, "docs/c.md")
    assert known
    store.catalog.update_documents([replace(known, title="New board")])
    find_mentions(store)
    assert leads(store) == {}
    assert leads(store, "docs/b.md") == {"new board": "docs/c.md"}


def test_a_title_in_too_many_chunks_is_no_link_until_it_is_rare_again(store: Store):
    put(store, "docs/b.md", "text", title="User guide")
    put(store, "docs/a.md", *[f"{number}: the User Guide." for number in range(COMMON_FROM + 1)])
    find_mentions(store)
    assert not store.links.incoming("docs/b.md")
    put(store, "docs/c.md", "One more User Guide.")
    find_mentions(store)
    assert not store.links.incoming("docs/b.md")
    put(store, "docs/d.md", *[f"{number}: something else." for number in range(220 * COMMON_FROM)])
    find_mentions(store)
    assert len(store.links.incoming("docs/b.md")) == COMMON_FROM + 2


def test_links_to_what_a_filter_leaves_out_are_not_pointed_out(store: Store):
    put(store, "docs/there.md", "text")
    put(store, "more/old.md", "text", superseded_by="docs/there.md")
    (chunk,) = put(store, "docs/a.md", linking("see", "there.md", "/more/old", "a.md"))
    assert [row.document_id for row in store.links.pointing([chunk], EVERYTHING)] == ["docs/there.md"]
    within = Filter(source_id="more", include_superseded=True)
    assert [row.document_id for row in store.links.pointing([chunk], within)] == ["more/old.md"]


def test_a_document_that_nothing_links_to_is_an_orphan(store: Store):
    put(store, "docs/there.md", linking("to itself", "there.md"))
    put(store, "docs/a.md", linking("see", "there.md"))
    assert store.links.orphans("docs") == {"docs/a.md"}


def test_of_titles_within_each_other_the_longest_is_mentioned(store: Store):
    put(store, "docs/b.md", "text", title="User guide")
    put(store, "docs/c.md", "text", title="User guide for operators")
    put(store, "docs/a.md", "Read the User Guide for Operators.")
    find_mentions(store)
    assert leads(store) == {"user guide for operators": "docs/c.md"}
