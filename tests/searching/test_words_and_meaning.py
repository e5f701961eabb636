"""What is found by words, by meaning and by both."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from concord.core import plugins
from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from concord.search.pipeline import search
from concord.search_parts import Searching
from concord.types import MODES, Answer, DocumentType, Request
from searching.pages import PAGES, opened, paths, plant
from support.recorders import write
from support.small_library import library, titles


def exactly(answer: Answer) -> set[str]:
    """Return what holds all that was asked for: other hits are there because they hold some of it."""
    return paths(replace(answer, hits=tuple(hit for hit in answer.hits if "fts_exact" in hit.found_by)))


@pytest.mark.promise("001.fts.keyword-search")
@pytest.mark.parametrize("query", ["install git", "installing gits", "INSTALLATION"])
def test_words_are_found_in_any_form(kb: KnowledgeBase, query: str):
    assert kb.search(query, mode="fts5").hits[0].document.path == "docs/git.md"


@pytest.mark.promise("001.fts.keyword-search")
def test_any_of_the_words_is_enough(kb: KnowledgeBase):
    assert "git.md" in paths(kb.search("install zeppelins", mode="fts5"))


@pytest.mark.parametrize("types", [{"markdown"}, {"code"}, {"markdown", "code"}])
def test_knowing_of_which_types_documents_are_changes_no_score(tmp_path: Path, types: set[DocumentType]):
    pages = {"markdown": ("ops/deploy.md", "ops/staging.md"), "code": ("deploy.py",)}
    for name in (name for kind in types for name in pages[kind]):
        write(tmp_path / "docs" / name, PAGES[name])
    with opened("memory", tmp_path) as kb:
        kb.add(tmp_path / "docs")
        request = Request("deploy to production")
        tools = Searching(kb.parts).tools(request, wait_for_model=True)
        asked = search(request, tools)
        assert tools.snapshot is not None
        told = search(request, replace(tools, snapshot=replace(tools.snapshot, types=types)))
        assert [hit.scores for hit in told.hits] == [hit.scores for hit in asked.hits] != []


@pytest.mark.promise("001.fts.fts-only")
def test_a_search_by_words_opens_no_embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    monkeypatch.setitem(plugins.TABLES["embedders"], "hashing", "nowhere:Nothing")
    with opened("sqlite", tmp_path) as kb:
        answer = kb.search("install git", mode="fts5")
    assert set(answer.strategies_matched) <= {"fts_exact", "fts_relaxed"}
    assert answer.hits
    assert all(hit.scores["cosine"] is None for hit in answer.hits)


@pytest.mark.promise("001.vec.vec-only")
def test_a_search_by_meaning_asks_no_words(kb: KnowledgeBase):
    answer = kb.search("install git", mode="semantic")
    assert answer.strategies_matched == ("semantic",)
    assert not {"fts_exact", "fts_relaxed"} & set(answer.timings_ms)
    assert {hit.found_by for hit in answer.hits} == {("semantic",)}


@pytest.mark.promise("001.rrf.hybrid")
@pytest.mark.parametrize("mode", ["auto", "hybrid"])
def test_words_and_meaning_are_merged(kb: KnowledgeBase, mode: str):
    answer = kb.search("install git", mode=mode)
    assert {"fts_exact", "fts_relaxed", "semantic"} <= set(answer.timings_ms)
    assert answer.hits[0].document.path == "docs/git.md"
    assert {"fts_exact", "semantic"} <= set(answer.hits[0].found_by)
    if mode == "hybrid":
        fused = [hit.scores["fused"] or 0.0 for hit in answer.hits if hit.moved_from is None]
        assert fused == sorted(fused, reverse=True)
        assert answer.hits[0].scores["rrf"] == pytest.approx(2 / 61)


@pytest.mark.promise("002.title")
def test_a_word_in_the_title_counts_for_more(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        kb.note(Note("Something else entirely, with one zebra in it.", title="Plain"))
        kb.note(Note("Something else entirely, with nobody in it.", title="Zebra"))
        assert [hit.document.title for hit in kb.search("zebra", mode="fts5").hits] == ["Zebra", "Plain"]


@pytest.mark.promise("004.identifier-parts")
@pytest.mark.parametrize("query", ["386", "386DX33", "dx 33"])
def test_a_part_of_an_identifier_finds_the_whole(kb: KnowledgeBase, query: str):
    assert paths(kb.search(query, mode="fts5")) == {"machines.txt"}


@pytest.mark.promise("B.lexical.headings")
@pytest.mark.parametrize("query", ["fetch_rows", "pool.fetch_rows", "fetch_rows()"])
def test_a_name_alone_finds_first_where_it_is_defined(tmp_path: Path, query: str):
    calls = "\n\n".join(f"def use_{n}(pool):\n    return fetch_rows(fetch_rows(pool), {n})" for n in range(9))
    write(tmp_path / "lib" / "a.py", calls)
    write(tmp_path / "lib" / "z.py", "def fetch_rows(pool, number=0):\n    return pool\n")
    with opened("memory", tmp_path) as kb:
        kb.add(tmp_path / "lib")
        for mode in ("auto", "fts5"):
            assert kb.search(query, mode=mode).hits[0].document.path == "lib/z.py"


@pytest.mark.promise("000.lexical.phrase")
def test_a_phrase_is_these_words_in_this_order(kb: KnowledgeBase):
    assert exactly(kb.search('"deploy to staging"', mode="fts5")) == {"staging.md"}
    answer = kb.search('"staging to deploy"', mode="fts5")
    assert all("fts_exact" not in hit.found_by for hit in answer.hits)


@pytest.mark.promise("000.lexical.boolean")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("deploy AND mondays", {"deploy.md"}),
        ("mondays OR staging", {"deploy.md", "staging.md"}),
        ("deploy NOT production NOT service NOT note", {"staging.md"}),
        ("deploy -production -service -note", {"staging.md"}),
        ("monda*", {"deploy.md"}),
    ],
)
def test_operators_combine_words(kb: KnowledgeBase, query: str, found: set[str]):
    answer = kb.search(query, mode="fts5")
    assert exactly(answer) == found
    assert paths(answer) >= found


@pytest.mark.promise("000.lexical.boolean")
@pytest.mark.parametrize("mode", MODES)
def test_an_excluded_word_is_excluded_in_every_mode(kb: KnowledgeBase, mode: str):
    answer = kb.search("deploy to the target -staging", mode=mode)
    assert answer.hits
    assert not any("staging" in hit.chunk.text.lower() for hit in answer.hits)


@pytest.mark.parametrize("mode", MODES)
def test_an_excluded_word_may_stand_in_a_title_or_a_tag(mode: str):
    notes = {"Docker guide": "Deploy to the target in a container.", "Staging": "Deploy to the target."}
    other = library(notes)
    other.note(Note("Deploy to the target in an image.", title="Images", tags=("docker",)))
    answer = other.search("deploy to the target -docker", mode=mode)
    assert titles(answer) == ["Staging"]
    assert answer.note == "texts with docker are left out; put it in quotes to look for it"
    quoted = other.search('deploy "the target" -docker', mode=mode)
    assert quoted.note == "texts with docker are left out; quoted words are looked for"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("tar -x", "Options"),
        ("pip install -r requirements.txt", "Shell"),
        ("git commit -m", "Shell"),
        ("exit code -1", "Exit"),
        ("error -110 peer", "Exit"),
        ("rm -archive", "Folders"),  # which nobody writes so
    ],
)
def test_a_dash_of_an_option_or_a_number_excludes_nothing(query: str, title: str):
    other = library(
        {
            "Options": "Options of tar:\n\n-x, --extract   Extract files from it.\n-f FILE   The file.",
            "Shell": "`rm -rf build`, `tar -xzf archive`, `pip install -r requirements.txt`, `git commit -m`",
            "Exit": "The tool returns exit code -1 on failure, and error -110 where the peer is gone.",
            "Folders": "What rm does to folders, tar to files, git to a commit, an exit code to a script.",
            "Holidays": "The office is closed in August.",
        }
    )
    assert titles(other.search(query, mode="fts5"))[0] == title


@pytest.mark.promise("000.mmr.near-duplicates")
@pytest.mark.parametrize(("copies", "results"), [(30, 5), (60, 1)])
def test_copies_leave_their_places_to_other_texts(tmp_path: Path, copies: int, results: int):
    for n in range(copies):
        write(tmp_path / "docs" / f"service{n}" / "README.md", "How to deploy the payment gateway.\n")
    for n, word in enumerate(("rollback", "canary", "region", "secret")):
        write(tmp_path / "docs" / f"{n}.md", f"The payment gateway and its {word}, which we deploy last.\n")
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as other:
        other.add(tmp_path / "docs")
        answer = other.search("how to deploy the payment gateway")
    assert len(answer.hits) == results
    places = sum(1 + len(hit.also_at) for hit in answer.hits)
    assert places == (copies + 4 if results > 1 else other.settings["search.candidates"])


def test_without_a_threshold_nothing_is_under_it(tmp_path: Path):
    for n in range(1000):
        write(tmp_path / "docs" / f"{n}.md", f"The heron number {n} waits.\n")
    with KnowledgeBase.open(store__url="memory://", embed__provider="none") as other:
        other.add(tmp_path / "docs")
        answer = other.search("heron", top=1000)
    assert answer.total_hits > len(answer.hits)  # the floor
    assert answer.omitted["below_threshold"] == 0
