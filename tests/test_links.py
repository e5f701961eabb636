"""What texts link to, as people write it in Markdown, wikis, HTML, Org, front matter and code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.text.links import Meant, fitting, links_in, meant, names_of, relations
from concord.types import Extracted, Link
from support.small_library import secluded


def links(text: str, type: str = "markdown", language: str | None = None) -> list[tuple[str, str]]:
    found = links_in(Extracted(text, type, language=language))  # type: ignore[arg-type]
    return [(placed.link.target, placed.link.words) for placed in found]


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("See [the *login* page](guide/login.md).", "guide/login.md", "the login page"),
        ("See [it](<a.md> 'title').", "a.md", "it"),
        ("See [the guide][g].\n\n[G]: guide.md 'Guide'\n", "guide.md", "the guide"),
        ("See [guide].\n\n[guide]: guide.md\n", "guide.md", "guide"),
        ("See [[Board]].", "Board", "Board"),
        ("See [[Board#Rules|the rules]].", "Board#Rules", "the rules"),
        ('See <a class="x" href="a.html">it</a>.', "a.html", "it"),
        ("![the plan](plan.png)", "plan.png", "the plan"),
        ('<img width="9" src="plan.png">', "plan.png", ""),
    ],
)
def test_links_of_markdown_and_wikis_are_found(text, target, words):
    assert links(text) == [(target, words)]


@pytest.mark.parametrize(
    "text",
    [
        "[web](https://example.org/a.md) and [mail](mailto:a@b.c) and [here](#part)",
        "![picture](https://example.org/a.png)",
        "`[x](a.md)` and\n```\n[[Board]]\n```\n",
        "[ ] a task, [1] a number",
    ],
)
def test_what_leads_elsewhere_or_is_code_is_no_link(text):
    assert links(text) == []


def test_links_of_org_files_are_found():
    text = "[[file:notes.org::*Head][my notes]] and [[https://a.b][web]]"
    assert links(text, "text", "org") == [("notes.org", "my notes")]


def test_relations_stand_in_front_matter():
    details = {
        "related": ["auth.md", "[[Board]]"],
        "author": "Ada",
        "note": "see [[Rules|them]]",
        "parent": 3,
    }
    found = [(link.target, link.words) for link in relations(details)]
    assert found == [("auth.md", "related"), ("Board", "related"), ("Rules", "note")]


@pytest.mark.parametrize(
    ("language", "line", "path"),
    [
        ("python", "from concord.store import sql as s, rows", "/concord/store/sql"),
        ("python", "from concord.store import (\n    sql,\n    rows,\n)", "/concord/store/rows"),
        ("python", "import os, concord.wire as w", "/concord/wire"),
        ("javascript", "import { a } from './a.js';", "./a.js"),
        ("typescript", "const b = require('../b')", "../b"),
        ("c", '#include "auth.h"', "./auth.h"),
        ("rust", "use crate::auth::Token;", "/auth"),
        ("ruby", "require_relative 'auth'", "./auth"),
        ("go", 'import "example.org/acme/internal/auth"', "/internal/auth/auth.go"),
        ("go", 'import (\n\t"fmt"\n\ta "example.org/acme/auth"\n)', "/auth/auth.go"),
    ],
)
def test_imports_are_links_to_files(language, line, path):
    assert path in [target for target, _ in links(f"{line}\nx = 1\n", "code", language)]


@pytest.mark.parametrize(
    ("link", "path"),
    [
        (Link("link", "../auth.md#login"), "docs/auth.md"),
        (Link("link", "../auth.html"), "docs/auth.md"),
        (Link("link", "/docs/auth/"), "docs/auth.md"),
        (Link("link", "../api/"), "docs/api/index.md"),
        (Link("link", "two%20words.md"), "docs/guide/two words.md"),
        (Link("wiki", "auth"), "docs/auth.md"),
        (Link("wiki", "Single Sign-On"), "docs/sso.md"),
        (Link("wiki", "SSO Guide"), "docs/sso.md"),
        (Link("import", "/guide/tool"), "docs/guide/tool.py"),
        (Link("import", "/acme/token/token.go"), "docs/acme/token/token.go"),
        (Link("link", "../acme/token/api.go"), "docs/acme/token/api.go"),
        (Link("import", "/main/main.go"), "docs/acme/main/boot.go"),
        (Link("link", "../plan.png"), "docs/plan.png"),
    ],
)
def test_a_link_means_the_document_that_has_its_path_title_or_alias(link, path):
    paths = [
        "docs/auth.md",
        "docs/api/index.md",
        "docs/guide/two words.md",
        "docs/sso.md",
        "docs/guide/tool.py",
        "docs/acme/token/api.go",
        "docs/acme/token/token.go",
        "docs/acme/main/boot.go",
        "docs/plan.md",
        "docs/plan.png",
    ]
    called: dict[str, list[tuple[int, str]]] = {}
    for key, known in enumerate(paths, 1):
        title, aliases = ("Single sign-on", ["SSO guide"]) if "sso" in known else ("", [])
        for named in names_of(known, title, {"aliases": aliases}, {}):
            called.setdefault(named.name, []).append((key, known))
    found = meant(link, "docs/guide/login.md")
    assert found
    fit = fitting(found, called.get(found.name, []), "docs/guide/login.md", link.kind)
    assert fit is not None
    assert paths[fit - 1] == path


def test_a_picture_that_is_not_there_is_not_the_page_beside_it():
    assert fitting(Meant("/docs/plan", "docs/plan.png"), [(1, "docs/plan.md")], "docs/a.md") is None


def test_what_code_imports_is_no_page_of_that_name_and_no_file_of_nearly_that_name():
    candidates = [(1, "docs/logging.md"), (2, "app/_logging.py")]
    assert fitting(Meant("logging", "logging"), candidates, "app/main.py", "import") is None
    assert fitting(Meant("logging", "logging"), [*candidates, (3, "app/logging.py")], "a.py", "import") == 3


def test_of_files_with_one_name_the_very_one_is_meant():
    candidates = [(1, "docs/auth.py"), (2, "docs/auth.md")]
    assert fitting(Meant("/docs/auth", "docs/auth.md"), candidates, "docs/a.md") == 2


@given(st.text(alphabet="[]()<>`#|!\\\n ab:./\"'=", max_size=400))
def test_any_text_is_read_without_a_fault(text):
    for placed in links_in(Extracted(text, "markdown")):
        found = meant(placed.link, "docs/a.md")
        assert found is None or found.name


def test_a_page_keeps_the_links_that_its_text_has_lost(tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text("# Authentication\n\nTokens.\n")
    (folder / "page.html").write_text('<body><p>Go to <a href="auth.md#tokens">the page</a>.</p></body>')
    with secluded(tmp_path, "memory://") as kb:
        kb.add(str(folder))
        rows = [row for document in kb.documents("docs") for row in kb.store.links.outgoing(document.id)]
        assert [(row.link.target, row.link.words) for row in rows] == [("auth.md#tokens", "the page")]
        assert rows[0].document_id == kb.document_named("docs/auth.md").id
