"""How many results there are, how good they must be, and what each of them says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.knowledge import KnowledgeBase
from searching.pages import opened
from support.pdf_samples import make_pdf
from support.recorders import write


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("many")
    for n in range(30):
        words = " ".join(f"word{n * 7 + k}" for k in range(6))
        write(folder / "docs" / f"{n}.md", f"# Page {n}\n\nDeploy thing {n}: {words}.\n")
    with opened("memory", folder) as made:
        made.add(folder / "docs")
        yield made


@pytest.mark.promise("001.top.default")
def test_ten_results_unless_the_setting_says_otherwise(many: KnowledgeBase, tmp_path: Path):
    assert len(many.search("deploy").hits) == 10
    with opened("memory", tmp_path, search__default_top=4) as few:
        few.add(many.source("docs").source.path or "")
        assert len(few.search("deploy").hits) == 4


@pytest.mark.promise("001.threshold")
@pytest.mark.parametrize("fusion", ["rrf", "adaptive", "dominant"])
def test_the_threshold_is_on_the_reciprocal_ranks_whatever_the_fusion(many: KnowledgeBase, fusion: str):
    everything = many.search("deploy word3", fusion=fusion, top=50)
    scores = {hit.chunk.id: hit.scores["rrf"] or 0.0 for hit in everything.hits}
    cut = sorted(scores.values())[len(scores) // 2]
    some = many.search("deploy word3", fusion=fusion, top=50, threshold=cut)
    assert {hit.chunk.id for hit in some.hits} == {i for i, score in scores.items() if score >= cut}
    assert some.omitted["below_threshold"] == len(scores) - len(some.hits) > 0
    assert many.search("deploy", threshold=1.0).hits == ()


@pytest.mark.promise("A.search.citations")
def test_a_pdf_is_cited_by_page(tmp_path: Path):
    pages = [
        [f"Here is what {fruit} do in year {n * n}." for n in range(40)] for fruit in ("apples", "plums")
    ]
    write(tmp_path / "docs" / "book.pdf", make_pdf(pages))
    with opened("memory", tmp_path) as kb:
        kb.add(tmp_path / "docs")
        hit = kb.search("plums", mode="fts5", type="pdf").hits[0]
        assert (hit.citation, hit.chunk.page) == ("docs/book.pdf:p2", 2)
        assert "plums" in kb.get(hit.citation).text


@pytest.mark.promise("000.mmr.near-duplicates")
def test_the_same_text_in_several_places_is_one_hit_that_names_the_others(tmp_path: Path):
    for name in ("a", "b", "c"):
        write(tmp_path / "docs" / f"{name}.md", "# Same\n\nThe very same text about zebras.\n")
    with opened("memory", tmp_path) as kb:
        kb.add(tmp_path / "docs")
        (hit,) = kb.search("zebras").hits
        assert {hit.citation, *hit.also_at} == {f"docs/{name}.md:1-3" for name in ("a", "b", "c")}


@pytest.mark.promise("002.ef-search")
def test_an_effort_above_the_most_is_lowered_and_the_answer_says_so(kb: KnowledgeBase):
    assert kb.search("deploy", ef_search=200).note is None
    answer = kb.search("deploy", ef_search=201)
    assert answer.hits
    assert "200" in (answer.note or "")
    nothing = kb.search("deploy", ef_search=1000, tags=("none",))
    assert "200" in (nothing.note or "")
    assert "filter" in (nothing.note or "")
