"""Documents as HTML for the page: in windows that join up, with what is safe in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.core.config import load_settings
from concord.web.rendering import WINDOW, rendered

LINKS = "[a](javascript:alert(1)) <b onclick=x>c</b> [d](other.md) ![e](https://evil.example/f.png)"


@pytest.fixture
def base(tmp_path: Path) -> Any:
    sections = [f"## Part {n}\n\n" + "Rain fell that day.\n\n" * 200 for n in range(60)]
    texts = {
        "long.md": "# Long\n\n" + "".join(sections) + "The heron ate a fish.\n",
        "fence.md": "# Fence\n\n```text\n" + "no place to cut it\n" * 50_000 + "```\n",
        "line.txt": "word " * 100_000,
        "links.md": f"# Links\n\n{LINKS}\n",
        "code.py": "def f():\n    return '<b>'\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = load_settings({"embed.provider": "hashing"}, {"KB_HOME": str(tmp_path / ".home")})
    with KnowledgeBase(settings) as kb:
        kb.add(tmp_path, name="docs", embed=False)
        yield kb, {Path(document.path).stem: document.path for document in kb.documents("docs")}


@pytest.mark.promise("I.page.long")
@pytest.mark.parametrize("name", ["long", "fence", "line"])
def test_windows_are_bounded_and_join_up_to_the_whole_document(base: Any, name: str):
    kb, paths = base
    part = rendered(kb.store.catalog, paths[name])
    parts = [part]
    while part["last"] < part["lines"]:
        part = rendered(kb.store.catalog, paths[name], start=part["last"] + 1)
        parts.append(part)
    assert len(parts) > 3
    assert all(len(re.sub("<[^>]+>", "", part["html"])) < 3 * WINDOW for part in parts)
    assert all(one["last"] + 1 == next_one["first"] for one, next_one in zip(parts, parts[1:], strict=False))


def test_the_window_around_a_passage_holds_it(base: Any):
    kb, paths = base
    last = kb.get(f"{paths['long']}:24000-24999").citation
    part = rendered(kb.store.catalog, last)
    assert "The heron ate a fish." in part["html"]
    assert part["first"] <= part["passage"][0] <= part["passage"][1] <= part["last"] == part["lines"]


@pytest.mark.promise("I.page.safe")
def test_only_text_and_harmless_links_come_through(base: Any):
    kb, paths = base
    html = rendered(kb.store.catalog, paths["links"])["html"]
    assert re.findall(r'href="([^"]*)"', html) == ["other.md"]
    assert not re.search(r"<(img|b)\b", html)
    assert "&lt;b&gt;" in rendered(kb.store.catalog, paths["code"])["html"]
