"""What is around a document: its links from both sides, what is near it, and what nothing leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord import KnowledgeBase
from concord.cli.main import main
from concord.core.arguments import Get, Links, List, Related
from concord.core.errors import NotFound
from concord.operations import OPERATIONS
from concord.types import silent
from support.small_library import secluded

FILES = {
    "auth.md": "# Authentication\n\nSee [login](guide/login.md) and [gone](missing.md). Tokens expire.\n",
    "guide/login.md": "# Login flow\n\nBack to [auth](../auth.md), [again](../auth.md). Tokens expire.\n",
    "cooking.md": "# Lentil soup\n\nLentils, water, salt. Not the Login Flow.\n",
    "alone.md": "# Alone in here\n\nStamps and coins.\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for name, text in FILES.items():
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with secluded(tmp_path / "home", f"sqlite://{tmp_path}/store") as made:
        made.add(str(tmp_path / "docs"))
        yield made


def test_links_are_known_from_both_sides_and_broken_ones_are_told(kb: KnowledgeBase):
    found = kb.links("docs/auth.md")
    assert [(end.path, end.kind, end.text) for end in found.out] == [("docs/guide/login.md", "link", "login")]
    assert [(end.path, end.text) for end in found.back] == [("docs/guide/login.md", "auth")]
    assert [end.target for end in found.broken] == ["missing.md"]
    assert kb.get(found.out[0].citation).document.path == "docs/auth.md"
    assert [end.target for end in kb.links().broken] == ["missing.md"]
    with pytest.raises(NotFound):
        kb.links("docs/none.md")


def test_related_documents_come_with_their_reasons(kb: KnowledgeBase):
    near = kb.related("docs/auth.md")
    assert near[0].document.path == "docs/guide/login.md"
    assert near[0].out == ("link",)
    assert near[0].back == ("link",)
    assert near[0].cosine is not None
    assert "docs/auth.md" not in [row.document.path for row in near]
    assert kb.related("docs/guide/login.md", limit=1)[0].document.path == "docs/auth.md"


def test_orphans_are_documents_that_no_other_links_to(kb: KnowledgeBase):
    assert [document.path for document in kb.orphans()] == ["docs/alone.md", "docs/cooking.md"]


def test_what_is_read_names_the_documents_around_it(kb: KnowledgeBase):
    read = OPERATIONS["get"].run(kb, Get(citation="docs/guide/login.md"), silent)
    assert read["links"] == ["docs/auth.md"]
    assert read["backlinks"] == ["docs/auth.md", "docs/cooking.md"]
    page = OPERATIONS["get"].run(kb, Get(citation="docs/guide/login.md", max_tokens=500), silent)
    assert page["backlinks"]


def test_operations_return_links_neighbours_and_orphans_as_json(kb: KnowledgeBase):
    links = OPERATIONS["links"].run(kb, Links("docs/auth.md"), silent)
    assert json.dumps(links)
    assert links["broken"][0]["target"] == "missing.md"
    related = OPERATIONS["related"].run(kb, Related("docs/auth.md"), silent)
    assert related["related"][0]["links_to_it"] == ["link"]
    orphans = OPERATIONS["list"].run(kb, List(orphans=True), silent)
    assert orphans["total"] == 2
    assert orphans["documents"][0]["path"] == "docs/alone.md"


def test_doctor_counts_broken_links_and_calls_nothing_wrong(kb: KnowledgeBase):
    found = kb.doctor()
    assert found.broken_links == 1
    assert not [finding for finding in found.findings if "link" in finding.message]


def test_the_command_line_shows_them(kb: KnowledgeBase, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    store = f"sqlite://{tmp_path}/store"
    assert main(["--store", store, "links", "docs/auth.md"]) == 0
    shown = capsys.readouterr().out
    assert "→" in shown
    assert "broken" in shown
    assert main(["--store", store, "related", "docs/auth.md"]) == 0
    assert "linked from this" in capsys.readouterr().out
    assert main(["--store", store, "list", "--orphans"]) == 0
    assert "docs/alone.md" in capsys.readouterr().out
    assert main(["--store", store, "links"]) == 0
    assert "missing.md" in capsys.readouterr().out
    assert main(["--store", store, "links", "docs/alone.md"]) == 0
    assert capsys.readouterr().err == "no links\n"
