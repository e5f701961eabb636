"""Search through the knowledge base: filters, modes, limits, citations, and what may be missing."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord import plugins
from concord.answering.retrieve import retrieve
from concord.embedders.hashing import HashingEmbedder
from concord.errors import BackendDown, BadValue, EmbedderDown, NotFound
from concord.knowledge import KnowledgeBase
from concord.notes import Note
from concord.search import search
from concord.strategies.query_vectors import CACHE_ENTRIES, CACHE_SECONDS, QueryVectors
from concord.types import MODES, Answer, DocumentType, Request, Vector
from concord.wire import answer_to_json
from pdf_samples import make_pdf
from postgres_server import fresh_org, server_url
from recorders import FrailStore, write
from small_library import library, titles, tools

PAGES = {
    "git.md": "---\ntags: [tools]\n---\n# Git\n\nThe installation of git takes a minute. Install it first.\n",
    "ops/deploy.md": "---\ntags: [ops, production]\n---\n# Deploy\n\nDeploy to production on Mondays.\n",
    "ops/staging.md": "---\ntags: [ops]\n---\n# Staging\n\nDeploy to staging whenever you like.\n",
    "deploy.py": '"""Deploy the service."""\n\n\ndef deploy(target: str) -> None:\n    """Go."""\n',
    "machines.txt": "The old machine has a 386DX33 and four megabytes.\n",
}
BACKENDS = ["memory", "sqlite", "postgresql"]


def opened(backend: str, folder: Path, **options: Any) -> KnowledgeBase:
    known = {"store__url": f"sqlite://{folder}/store", "embed__provider": "hashing"}
    if backend == "memory":
        known["store__url"] = "memory://"
    if backend == "postgresql":
        known |= {"store__url": server_url(), "org": fresh_org()}
    return KnowledgeBase.open(**known | options)


def plant(folder: Path) -> Path:
    for name, text in PAGES.items():
        write(folder / name, text)
    return folder


@pytest.fixture(params=BACKENDS, scope="module")
def kb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """One to search, with the pages and a note."""
    folder = tmp_path_factory.mktemp(request.param)
    with opened(request.param, folder) as made:
        made.add(plant(folder / "docs"))
        made.note(Note("Deploy the note as well.", title="A note", tags=("ops",)))
        yield made


def paths(answer: Answer) -> set[str]:
    return {hit.document.path.rpartition("/")[2] for hit in answer.hits}


def exactly(answer: Answer) -> set[str]:
    """Return what holds all that was asked for: other hits are there because they hold some of it."""
    return paths(replace(answer, hits=tuple(hit for hit in answer.hits if "fts_exact" in hit.found_by)))


# Words and meaning.


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
        tools = kb.parts.search_tools(request, wait_for_model=True)
        asked = search(request, tools)
        assert tools.glance is not None
        told = search(request, replace(tools, glance=replace(tools.glance, types=types)))
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
    assert answer.note == "left out is what holds docker; in quotes it would be looked for"
    quoted = other.search('deploy "the target" -docker', mode=mode)
    assert quoted.note == "left out is what holds docker; what is in quotes is looked for"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("rm -rf", "Shell"),
        ("what does rm -rf build do", "Shell"),
        ("how do I use tar -xzf", "Shell"),
        ("pip install -r requirements.txt", "Shell"),
        ("git commit -m", "Shell"),
        ("exit code -1", "Exit"),
        ("error -110 peer", "Exit"),
        ("rm -archive", "Folders"),  # which nobody writes so
    ],
)
def test_a_dash_that_passages_write_excludes_nothing(query: str, title: str):
    other = library(
        {
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
    assert (answer.note is None) == (results > 1)


def test_without_a_threshold_nothing_is_under_it(tmp_path: Path):
    for n in range(1000):
        write(tmp_path / "docs" / f"{n}.md", f"The heron number {n} waits.\n")
    with KnowledgeBase.open(store__url="memory://", embed__provider="none") as other:
        other.add(tmp_path / "docs")
        answer = other.search("heron", top=1000)
    assert answer.total_hits > len(answer.hits)  # the floor
    assert answer.omitted["below_threshold"] == 0


# Filters.


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
        ("docs/ops", OPS),
        ("./docs/ops", OPS),
        (".//docs/ops/", OPS),
        ("docs/ops/deploy.md", {"deploy.md"}),
        ("./docs/ops/*ing.md", {"staging.md"}),
        ("docs/op", set()),
        (".", {*ALL, "note"}),
        ("{folder}", ALL),
        ("{folder}/", ALL),
        ("{folder}/ops", OPS),
        ("{folder}/ops/", OPS),
        ("{folder}/ops/../ops/*ing.md", {"staging.md"}),
        ("{folder}/ops/deploy.md", {"deploy.md"}),
        ("{folder}/**/deploy.*", {"deploy.md", "deploy.py"}),
        ("{folder}/nowhere", set()),
        ("/tmp/\0", set()),
    ],
)
def test_a_path_is_a_file_or_a_folder_as_citations_name_it_or_on_disk(
    kb: KnowledgeBase, path: str, found: set[str]
):
    answer = kb.search("deploy", mode="fts5", path=path.format(folder=kb.source("docs").source.path))
    assert {"note" if hit.document.type == "note" else name for hit, name in _named(answer)} == found


def test_a_place_on_disk_is_found_through_a_link_to_it(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        (tmp_path / "link").symlink_to(tmp_path / "docs")
        assert paths(kb.search("deploy", mode="fts5", path=f"{tmp_path}/link/ops/")) == OPS


def test_a_place_on_disk_finds_the_innermost_source_and_one_that_is_a_file(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        kb.add(tmp_path / "docs" / "ops", name="ops")
        kb.add(tmp_path / "docs" / "deploy.py", name="one file")
        inner = kb.search("deploy", mode="fts5", path=f"{tmp_path}/docs/ops/")
        assert {hit.source.name for hit in inner.hits} == {"ops"}
        alone = kb.search("deploy", mode="fts5", path=f"{tmp_path}/docs/deploy.py")
        assert {hit.source.name for hit in alone.hits} == {"one file"}


def test_a_place_on_disk_that_no_source_holds_is_refused_with_what_paths_look_like(kb: KnowledgeBase):
    with pytest.raises(NotFound, match="/nowhere/docs is in no source") as fault:
        kb.search("deploy", path="/nowhere/docs")
    assert fault.value.hint == "paths begin with docs/, notes/"


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


def test_organisations_do_not_see_each_other(tmp_path: Path):
    plant(tmp_path / "docs")
    with opened("sqlite", tmp_path, org="one") as one, opened("sqlite", tmp_path, org="two") as two:
        one.add(tmp_path / "docs")
        assert one.search("deploy").hits
        assert two.search("deploy").hits == ()
        assert two.sources() == []


@pytest.mark.promise("001.type.valid")
@pytest.mark.parametrize(
    ("options", "fault", "says"),
    [
        ({"type": "nonsense"}, BadValue, "pdf, markdown, code, note"),
        ({"mode": "nonsense"}, BadValue, "auto"),
        ({"fusion": "nonsense"}, BadValue, "rrf"),
        ({"top": 0}, BadValue, "1 to"),
        ({"top": 10**9}, BadValue, "1 to"),
        ({"source": "nowhere"}, NotFound, "docs"),
        ({"deadline_ms": 0}, BadValue, "above 0"),
        ({"threshold": float("nan")}, BadValue, "0.02"),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_what_can(
    kb: KnowledgeBase, options: dict[str, Any], fault: type[BadValue], says: str
):
    with pytest.raises(fault) as failure:
        kb.search("deploy", **options)
    assert says in (failure.value.hint or "")


# How many, and how good.


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


@pytest.mark.promise("001.top.flag")
@pytest.mark.parametrize("top", [1, 5, 25])
def test_at_most_as_many_as_were_asked_for(many: KnowledgeBase, top: int):
    assert len(many.search("deploy", top=top).hits) == top


@pytest.mark.promise("001.top.fewer")
def test_fewer_matches_are_fewer_results_and_returned_says_how_many(kb: KnowledgeBase):
    answer = kb.search("deploy", mode="fts5", type="markdown", top=5)
    assert len(answer.hits) == 2
    assert answer_to_json(answer)["returned"] == 2


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


# What a hit says.


def test_a_hit_stands_under_the_heading_of_the_section_that_its_snippet_shows(tmp_path: Path):
    questions = ("How do I reset my password?", "Is there a mobile app?", "How do I delete my account?")
    answers = (
        f"## {question}\n\nOpen the settings and follow the link there, in your own time.\n"
        for question in questions
    )
    text = "# Questions\n\n" + "\n".join(answers)
    for name in ("faq.md", "faq.txt"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(tmp_path)
        (hit,) = kb.search("mobile app", type="markdown").hits
        assert hit.chunk.heading == ("Questions", questions[1])
        (hit,) = kb.search("zebra", type="markdown", mode="semantic").hits
        assert hit.chunk.heading == ("Questions",)
        (hit,) = kb.search("mobile app", type="text").hits
        assert hit.chunk.heading == ()


@pytest.mark.promise("002.snippet")
def test_a_snippet_is_cut_around_the_match(tmp_path: Path):
    filler = "Plain words that say nothing at all about it. "
    with opened("memory", tmp_path) as kb:
        kb.note(Note(filler * 12 + "Here the zebra crosses. " + filler * 12, title="long"))
        snippet = kb.search("zebra", mode="fts5").hits[0].snippet
    assert "zebra crosses" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert 200 <= len(snippet) <= 242


@pytest.mark.promise("A.search.citations")
def test_citations_are_the_lines_of_the_file(kb: KnowledgeBase):
    hit = kb.search("installation", mode="fts5").hits[0]
    assert hit.citation == "docs/git.md:4-6"
    lines = PAGES["git.md"].splitlines()[hit.chunk.start_line - 1 : hit.chunk.end_line]
    assert "\n".join(lines) == hit.chunk.text


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


# What may be missing.


@pytest.fixture
def frail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """A knowledge base whose vectors or words can be down."""
    monkeypatch.setitem(plugins.TABLES["backends"], "frail", "recorders:FrailStore")
    with KnowledgeBase.open(store__url="frail://", embed__provider="hashing") as made:
        made.add(plant(tmp_path / "docs"))
        yield made


def reasons(answer: Answer) -> dict[str, str]:
    return {one.strategy: one.reason for one in answer.degraded}


@pytest.mark.promise("000.degrade.semantic")
def test_without_a_vector_store_words_answer_and_the_answer_says_so(frail: KnowledgeBase):
    before = frail.search("deploy", mode="fts5")
    FrailStore.last.vectors.is_down = True
    answer = frail.search("deploy")
    assert reasons(answer) == {"semantic": "the vector store does not answer"}
    assert [hit.citation for hit in answer.hits] == [hit.citation for hit in before.hits]
    assert answer.hits


class Down(HashingEmbedder):
    """An embedder that can embed documents but, today, no query."""

    def embed_query(self, text: str) -> Vector:
        if text == "deploy":
            raise EmbedderDown("the provider does not answer", hint="start it")
        return super().embed_query(text)


@pytest.mark.promise("000.degrade.semantic")
def test_without_the_embedding_provider_words_answer_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "down", "test_search:Down")
    with opened("memory", tmp_path, embed__provider="down") as kb:
        kb.add(plant(tmp_path / "docs"))
        answer = kb.search("deploy")
        assert reasons(answer) == {"semantic": "the provider does not answer"}
        assert answer.hits
        assert set(answer.strategies_matched) <= {"fts_exact", "fts_relaxed"}


@pytest.mark.promise("000.degrade.semantic", "001.vec.same-model")
@pytest.mark.parametrize(
    ("provider", "hashing", "says"),
    [
        ("none", "concord.embedders.hashing:HashingEmbedder", "no embedding provider"),
        ("hashing", "test_search:Other", "built with hashing/hashing-256, not hashing/other"),
        ("hashing", "test_search:Gone", "the model's folder is gone"),
    ],
)
def test_without_the_model_of_the_vectors_words_answer_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, hashing: str, says: str
):
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    monkeypatch.setitem(plugins.TABLES["embedders"], "hashing", hashing)
    with opened("sqlite", tmp_path, embed__provider=provider) as kb:
        answer = kb.search("deploy")
        assert says in reasons(answer)["semantic"]
        assert answer.hits


@pytest.mark.promise("E.models.store-decides")
def test_a_store_keeps_to_the_model_of_its_vectors_whatever_is_configured_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "other", "test_search:Other")
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    write(tmp_path / "docs" / "new.md", "# Melons\n\nA melon is round.\n")
    with opened("sqlite", tmp_path, embed__provider="other") as kb:
        (report,) = kb.sync()
        assert (report.embedded, report.pending, report.degraded) == (1, 0, None)
        answer = kb.search("a round melon")
        assert answer.degraded == ()
        assert "semantic" in answer.hits[0].found_by
        assert kb.stats().identity == HashingEmbedder.identity


class Gone(HashingEmbedder):
    def __init__(self, options: object, cache_dir: Path) -> None:
        raise BadValue("the model's folder is gone", hint="put it back")


class Other(HashingEmbedder):
    """The same vectors under another name: nobody may compare them."""

    identity = type(HashingEmbedder.identity)("hashing", "other", 256)


@pytest.mark.promise("000.degrade.semantic")
def test_before_anything_is_embedded_words_answer_and_the_answer_says_so(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"), embed=False)
        answer = kb.search("deploy")
        assert "kb sync" in reasons(answer)["semantic"]
        assert answer.hits
        assert kb.search("deploy", mode="fts5").degraded == ()


@pytest.mark.promise("000.degrade.lexical")
def test_without_words_there_is_an_error_and_no_answer(frail: KnowledgeBase):
    def down(*_: object, **__: object) -> None:
        raise BackendDown("the index of words is gone", hint="mend it")

    FrailStore.last.lexical.search = down
    for mode in ("auto", "hybrid", "fts5"):
        with pytest.raises(BackendDown, match="by words") as failure:
            frail.search("deploy", mode=mode)
        assert failure.value.hint
    assert frail.search("deploy", mode="semantic").hits


def test_an_empty_knowledge_base_says_what_to_do(tmp_path: Path):
    with opened("memory", tmp_path) as kb:
        answer = kb.search("anything")
    assert answer.hits == ()
    assert "kb add" in (answer.note or "")


# Side by side.


class Meeting(HashingEmbedder):
    """An embedder that goes on only once both word searches have begun as well."""

    barrier = threading.Barrier(3)

    def embed_query(self, text: str) -> Vector:
        if text == "deploy":
            self.barrier.wait(30)
        return super().embed_query(text)


@pytest.mark.promise("000.parallel")
def test_the_strategies_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each of the three waits until all have begun: one after the other they would wait for ever."""
    monkeypatch.setitem(plugins.TABLES["embedders"], "meeting", "test_search:Meeting")
    with opened("memory", tmp_path, embed__provider="meeting", search__deadline_ms=60_000.0) as kb:
        kb.add(plant(tmp_path / "docs"))
        lexical = kb.store.lexical
        search = lexical.search

        def meet(*args: Any, **options: Any) -> Any:
            Meeting.barrier.wait(30)
            return search(*args, **options)

        lexical.search = meet  # type: ignore[method-assign]
        answer = kb.search("deploy")
    assert answer.degraded == ()
    assert set(answer.strategies_matched) == {"fts_exact", "fts_relaxed", "semantic"}


# What is remembered.


class Counting(HashingEmbedder):
    queries: list[str]

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


@pytest.mark.promise("002.cache")
def test_query_vectors_are_kept_for_a_minute_fifty_of_them():
    embedder = Counting({}, Path())
    embedder.queries = []
    now = [0.0]
    vectors = QueryVectors(embedder, clock=lambda: now[0])
    assert vectors.vector("q") == vectors.vector("q")
    assert embedder.queries == ["q"]
    now[0] = CACHE_SECONDS
    vectors.vector("q")
    assert embedder.queries == ["q", "q"]
    for n in range(CACHE_ENTRIES):
        vectors.vector(str(n))
    embedder.queries.clear()
    vectors.vector("q")
    vectors.vector(str(CACHE_ENTRIES - 1))
    assert embedder.queries == ["q"]
    assert (CACHE_ENTRIES, CACHE_SECONDS) == (50, 60)


@pytest.mark.promise("002.cache")
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_never_kept(tmp_path: Path, backend: str):
    with opened(backend, tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        assert "new.md" not in paths(kb.search("deploy"))
        write(tmp_path / "docs" / "new.md", "# Deploy\n\nA new way to deploy.\n")
        kb.sync()
        assert "new.md" in paths(kb.search("deploy"))
        kb.remove("docs")
        assert kb.search("deploy").hits == ()


# Engines.


@pytest.mark.promise("A.search.same-everywhere")
@pytest.mark.parametrize("mode", MODES)
def test_memory_and_sqlite_give_the_same_answers(tmp_path: Path, mode: str):
    plant(tmp_path / "docs")
    dice = random.Random(7)
    vocabulary = ["deploy", "git", "page", "install", "staging", "zebra", "quick", "brown", "fox", "minute"]
    for n in range(60):
        words = " ".join(dice.choices([*vocabulary, *(f"w{k}" for k in range(90))], k=dice.randint(5, 30)))
        write(tmp_path / "docs" / "more" / f"{n}.md", f"# Page {n}\n\n{words}.\n")
    queries = [
        "deploy",
        "install git",
        '"quick brown"',
        "git -install",
        "page 7",
        "386",
        "zebra w7 w8",
        "where?",
    ]
    with opened("memory", tmp_path) as one, opened("sqlite", tmp_path) as two:
        for kb in (one, two):
            kb.add(tmp_path / "docs")
        for query in queries:
            seen = [
                [
                    (hit.citation, round(hit.score, 4), hit.found_by)
                    for hit in kb.search(query, mode=mode).hits
                ]
                for kb in (one, two)
            ]
            assert seen[0] == seen[1], query


@pytest.mark.promise("000.schema", "001.fts.triggers", "004.sentinel")
def test_the_store_is_tables_with_keys_triggers_and_a_cosine_sentinel(tmp_path: Path):
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    connection = apsw.Connection(str(tmp_path / "store" / "default.db"))
    keys = {
        (table, to)
        for table in ("kb_documents", "kb_chunks")
        for (_, _, to, *_) in connection.execute(f"PRAGMA foreign_key_list({table})")
    }
    assert keys == {("kb_documents", "kb_sources"), ("kb_chunks", "kb_documents")}
    triggers = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'kb_chunks'"
    assert connection.execute(triggers).get == 3
    sentinel = "SELECT value FROM kb_vec_meta WHERE key = 'distance_metric'"
    assert connection.execute(sentinel).get == "cosine"
    (fts,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'kb_chunks_fts'").fetchone() or (
        "",
    )
    assert "porter unicode61" in str(fts)
    connection.close()


@pytest.mark.promise("004.sentinel")
def test_a_store_without_the_sentinel_is_searched_after_the_next_sync_as_before(tmp_path: Path):
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        before = [hit.citation for hit in kb.search("deploy", mode="semantic").hits]
    connection = apsw.Connection(str(tmp_path / "store" / "default.db"))
    connection.execute("DELETE FROM kb_vec_meta WHERE key = 'distance_metric'")
    connection.close()
    with opened("sqlite", tmp_path) as kb:
        write(tmp_path / "docs" / "z.txt", "Unrelated words.\n")
        kb.sync()
        after = [hit.citation for hit in kb.search("deploy", mode="semantic").hits]
    assert set(before) <= set(after)


# Any query at all.


def broken(answer: Answer) -> list[str]:
    """Return why strategies failed; one that was late on a busy machine did not fail."""
    return [one.reason for one in answer.degraded if not one.reason.startswith("no answer within")]


WORDS = ["AND", "OR", "NOT", "NEAR", "the", "of", '"', "(", ")", "*", "-", "deploy", "git*", "-git", "title:"]
WORDS += ["\x00", "🦓", "ไทย", "漢字", "don't", "C++", "a.b.c", "\ud800", "\u202e"]
WILD = st.one_of(
    st.text(max_size=60),
    st.text("\"'()*^:-+{}[]~?!.,;|&\\/ \x00\t\n“”‘’", max_size=40),
    st.lists(
        st.sampled_from(WORDS),
        max_size=12,
    ).map(" ".join),
    st.binary(max_size=40).map(lambda data: data.decode("utf-8", "surrogateescape")),
)


@pytest.mark.promise("001.fts.escaped", "A.faults.any-query")
@settings(deadline=None, max_examples=150)
@given(query=WILD, mode=st.sampled_from(MODES))
def test_no_query_raises(kb: KnowledgeBase, query: str, mode: str):
    answer = kb.search(query, mode=mode, top=3)
    assert broken(answer) == []
    assert len(answer.hits) <= 3


@pytest.mark.promise("001.fts.escaped", "A.faults.any-query")
@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "\x00",
        "!?.,;:",
        "the of and to",
        '"',
        '""',
        '"unclosed',
        "(" * 500,
        "deploy " * 15_000,
        "x" * 100_000,
        "'" * 5_000,
        '"a" ' * 3_000,
        "a AND " * 2_000,
        "NOT " * 2_000,
        "-a " * 3_000,
        "a* " * 3_000,
        "🦓" * 1_000,
        "漢字仮名交じり文" * 500,
    ],
    ids=lambda query: repr(query[:12]) + f"x{len(query)}",
)
def test_no_length_and_no_lack_of_words_raises(kb: KnowledgeBase, query: str):
    for mode in MODES:
        answer = kb.search(query, mode=mode, top=3, deadline_ms=60_000)
        assert broken(answer) == [], mode
        assert len(answer.hits) <= 3


@pytest.mark.promise("002.ef-search")
def test_an_effort_above_the_most_is_taken_down_and_the_answer_says_so(kb: KnowledgeBase):
    assert kb.search("deploy", ef_search=200).note is None
    answer = kb.search("deploy", ef_search=201)
    assert answer.hits
    assert "200" in (answer.note or "")
    nothing = kb.search("deploy", ef_search=1000, tags=("none",))
    assert "200" in (nothing.note or "")
    assert "filter" in (nothing.note or "")


@pytest.mark.promise("002.ef-search")
def test_an_effort_above_the_most_in_the_settings_is_taken_down_and_the_answer_says_so(tmp_path: Path):
    with opened("memory", tmp_path, search__ef_search=500) as made:
        made.add(plant(tmp_path / "docs"))
        assert (made.search("deploy").note or "").startswith("search.ef_search was taken down to 200")
        assert made.search("deploy", ef_search=100).note is None
        assert (made.search("deploy", ef_search=300).note or "").startswith("--ef-search was taken down")


def test_asking_for_more_results_weighs_words_and_meaning_as_before(tmp_path: Path):
    for n in range(60):
        write(tmp_path / "docs" / f"{n}.md", f"Deploy number {n}: deploy the service and deploy it again.\n")
        write(tmp_path / "docs" / f"{n}.py", f'"""Deploy {n}."""\n\n\ndef deploy_{n}() -> None: ...\n')
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(tmp_path / "docs")
        few, many = (retrieve(Request("how to deploy", top=top), "auto", tools(kb), []) for top in (10, 40))
    assert 0 < few.context.code_share == many.context.code_share < 1
