"""The whole product as its user meets it: from a folder to cited answers, and back to nothing."""

from __future__ import annotations

import bisect
import heapq
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.knowledge import KnowledgeBase
from support.kb_command import Kb
from support.pdf_samples import make_pdf
from support.recorders import write

ROOT = Path(__file__).parent.parent


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder / "git.md", "---\ntags: [tools]\n---\n# Git\n\nThe installation of git takes a minute.\n")
    write(folder / "ops" / "deploy.md", "---\ntags: [ops, production]\n---\n# Deploy\n\nDeploy on Mondays.\n")
    write(folder / "ops" / "staging.md", "---\ntags: [ops]\n---\n# Staging\n\nDeploy to staging at will.\n")
    write(folder / "deploy.py", '"""Ship it."""\n\n\ndef deploy() -> None:\n    """Deploy the service."""\n')
    write(folder / "paper.pdf", make_pdf([["How the deploy was measured", "and what it cost."]]))
    return folder


@pytest.mark.parametrize("query", ["ZQX-991", "Wilhelmina Achterberg", "superseded Hermes"])
def test_what_stands_in_front_matter_is_found_cited_and_read(kb: Kb, docs: Path, query: str):
    head = "title: Couriers\nticket: ZQX-991\nstatus: superseded\napprover: Wilhelmina Achterberg"
    text = f"---\n{head}\n---\n\n# Contract\n\nParcels go with Hermes."
    write(docs / "courier.md", text + "\n")
    kb("add", docs)
    answer = kb("search", query, "--json").json
    best = answer["results"][0]
    assert (best["citation"], best["title"]) == ("docs/courier.md:1-10", "Couriers")
    assert "nothing holds" not in (answer["note"] or "")
    assert kb("get", "docs/courier.md", "--whole").out.strip() == text
    assert kb("get", "docs/courier.md:4", "--json").json["citation"] == "docs/courier.md:1-10"


@pytest.mark.promise("A.search.in-path")
def test_one_command_indexes_searches_and_notices_what_changes(kb: Kb, docs: Path):
    run = kb("search", "deploy", "--in", docs, "--json")
    assert (run.status, len(run.paths)) == (0, 5)
    write(docs / "new.md", "# New\n\nA new way to deploy zeppelins.\n")
    (docs / "ops" / "deploy.md").unlink()
    run = kb("search", "zeppelins deploy", "--in", docs, "--json")
    assert run.paths[0] == "docs/new.md"
    assert "docs/ops/deploy.md" not in run.paths
    run = kb("search", "deploy", "--in", docs / "ops", "--json")
    assert run.paths == ["docs/ops/staging.md"]
    assert len(kb("list", "--json").json["sources"]) == 1


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """A knowledge base with the bundled model, and three real trees: Markdown, code and PDFs."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "manual").mkdir()
    shutil.copy(ROOT / "docs" / "how-indexing-works.md", folder / "manual")
    (folder / "code").mkdir()
    for module in (bisect, heapq):  # Python's own: what is ours may come to speak of anything
        shutil.copy(str(module.__file__), folder / "code")
    pages = [
        ["Apollo 11 landed on the Moon in July 1969.", "The crew were Armstrong, Aldrin and Collins."],
        ["Photosynthesis turns light, water and carbon dioxide into sugar.", "It happens in chloroplasts."],
    ]
    for n, page in enumerate(pages):
        write(folder / "papers" / f"paper{n}.pdf", make_pdf([page]))
    git = "# Getting started\n\nInstall git, tell it your name, and make a repository with `git init`.\n"
    write(folder / "wiki" / "git.md", git)
    write(
        folder / "wiki" / "bread.md", "# Bread\n\nKnead the dough and let it rest overnight before baking.\n"
    )
    write(folder / "wiki" / "taxes.md", "# Taxes\n\nThe declaration is due at the end of May.\n")
    with KnowledgeBase.open(store__url=f"sqlite://{folder}/store") as made:
        for name in ("papers", "wiki", "code", "manual"):
            report = made.add(folder / name)
            assert (report.failed, report.pending) == ((), 0)
        yield made


@pytest.mark.slow
@pytest.mark.promise("001.vec.semantic-search")
@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("how to set up version control", "wiki/git.md"),
        ("when do I have to pay the government", "wiki/taxes.md"),
        ("astronauts of the lunar mission", "papers/paper0.pdf"),
        ("how do plants feed themselves", "papers/paper1.pdf"),
    ],
)
def test_meaning_is_found_where_the_words_are_not(real: KnowledgeBase, query: str, path: str):
    assert real.search(query, mode="semantic").hits[0].document.path == path
    for mode in ("auto", "hybrid"):
        assert path in [hit.document.path for hit in real.search(query, mode=mode).hits]
    assert path not in [hit.document.path for hit in real.search(query, mode="fts5").hits]
