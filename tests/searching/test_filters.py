"""Filters: what they leave out, in every mode, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from concord.core.errors import BadValue, NotFound
from concord.knowledge import KnowledgeBase
from concord.types import MODES, Answer
from searching.pages import BACKENDS, opened, paths, plant
from support.recorders import write


@pytest.mark.promise("001.tags.single", "001.tags.and", "001.type.filter")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"tags": ("ops",)}, {"deploy.md", "staging.md", "note"}),
        ({"tags": ("ops", "production")}, {"deploy.md"}),
        ({"tags": ("ops", "tools")}, set()),
        ({"type": "code"}, {"deploy.py"}),
        ({"type": "note"}, {"note"}),
        ({"source": "notes"}, {"note"}),
        ({"path": "docs/ops/*"}, {"deploy.md", "staging.md"}),
        ({"path": "**/deploy.*"}, {"deploy.md", "deploy.py"}),
        ({"path": "docs/ops/"}, {"deploy.md", "staging.md"}),
        ({"until": 1.0}, set()),
    ],
)
def test_filters_hold_in_every_mode(kb: KnowledgeBase, mode: str, options: dict[str, Any], found: set[str]):
    answer = kb.search("deploy", mode=mode, **options)
    seen = {"note" if hit.document.type == "note" else name for hit, name in _named(answer)}
    assert seen == found if mode in ("fts5", "semantic") else seen <= found
    if mode == "semantic":
        everything = kb.search("deploy", mode=mode, top=50)
        assert len(everything.hits) == 6


OPS, ALL = {"deploy.md", "staging.md"}, {"deploy.md", "staging.md", "deploy.py"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("docs", ALL),
        ("./docs/ops", OPS),
        ("./docs/ops/*ing.md", {"staging.md"}),
        (".", {*ALL, "note"}),
        ("{folder}/", ALL),
        ("{folder}/ops/", OPS),
        ("{folder}/**/deploy.*", {"deploy.md", "deploy.py"}),
    ],
)
def test_a_path_is_a_file_or_a_folder_as_citations_name_it_or_on_disk(
    kb: KnowledgeBase, path: str, found: set[str]
):
    answer = kb.search("deploy", mode="fts5", path=path.format(folder=kb.source("docs").source.path))
    assert {"note" if hit.document.type == "note" else name for hit, name in _named(answer)} == found


def test_a_place_on_disk_finds_the_innermost_source_and_one_that_is_a_file(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        kb.add(tmp_path / "docs" / "ops", name="ops")
        kb.add(tmp_path / "docs" / "deploy.py", name="one file")
        inner = kb.search("deploy", mode="fts5", path=f"{tmp_path}/docs/ops/")
        assert {hit.source.name for hit in inner.hits} == {"ops"}
        alone = kb.search("deploy", mode="fts5", path=f"{tmp_path}/docs/deploy.py")
        assert {hit.source.name for hit in alone.hits} == {"one file"}


def _named(answer: Answer) -> list[tuple[Any, str]]:
    return [(hit, hit.document.path.rpartition("/")[2]) for hit in answer.hits]


@pytest.mark.promise("001.tags.join", "design.filters-inside-engines")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_a_filter_is_inside_the_engine_so_what_it_leaves_is_never_crowded_out(
    tmp_path: Path, backend: str, mode: str
):
    """Hundreds of better matches stand before the one that the filter leaves."""
    with opened(backend, tmp_path) as kb:
        for n in range(150):
            write(tmp_path / "docs" / f"{n}.md", f"# Deploy deploy {n}\n\nDeploy deploy deploy {n}.\n")
        text = "# Other\n\nA long text that has the word deploy in it once, among many others, at the end.\n"
        write(tmp_path / "docs" / "needle.md", "---\ntags: [rare]\n---\n" + text)
        kb.add(tmp_path / "docs")
        answer = kb.search("deploy", mode=mode, tags=("rare",), top=3)
        assert paths(answer) == {"needle.md"}


@pytest.mark.promise("001.type.valid")
@pytest.mark.parametrize(
    ("options", "fault", "says"),
    [
        ({"type": "nonsense"}, BadValue, "pdf, markdown, code, note"),
        ({"fusion": "nonsense"}, BadValue, "rrf"),
        ({"source": "nowhere"}, NotFound, "docs"),
        ({"threshold": float("nan")}, BadValue, "0.02"),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_what_can(
    kb: KnowledgeBase, options: dict[str, Any], fault: type[BadValue], says: str
):
    with pytest.raises(fault) as failure:
        kb.search("deploy", **options)
    assert says in (failure.value.hint or "")
