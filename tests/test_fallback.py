"""Never zero, and honest: what is tried when nothing is found, its label, and what an empty answer says."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from concord import Note
from concord.core.values import moment
from concord.search.notes import EMPTY, NO_TIME, NO_WORD, NOTHING, STEP_NOTES
from concord.search.pipeline import search
from concord.store.contract import Store
from concord.types import Request, Source
from support.small_library import library, titles, tools


@pytest.mark.promise("003.cascade.relaxed")
def test_words_that_begin_alike_answer_when_no_word_does():
    answer = library().search("kubern", mode="fts5")
    assert titles(answer) == ["Kubernetes"]
    assert (answer.confidence, answer.hits[0].confidence) == ("low", "low")
    assert (answer.note, answer.suggestions) == (STEP_NOTES["prefix"], ("kubernetes",))
    assert answer.hits[0].found_by == answer.strategies_matched == ("fts_prefix",)


@pytest.mark.parametrize(
    ("typed", "searched", "title"),
    [
        ("kuberntes", "kubernetes", "Kubernetes"),
        ("authetication", "authentication", "Login"),
        ("databaseconnection", "database connection", "Pool"),
        ("FY2024", "2024", "Year"),
    ],
)
def test_a_mistyped_or_glued_word_is_searched_by_what_it_stands_for_and_the_answer_says_so(
    typed: str, searched: str, title: str
):
    kb = library()
    kb.note(Note("The books of 2024 are closed.", title="Year"))
    answer = kb.search(typed, mode="fts5")
    assert (titles(answer)[0], answer.note) == (title, f"searched for {searched} (typed {typed})")
    assert "fts_exact" in answer.strategies_matched
    assert kb.search(f'"{typed}"', mode="fts5").note != answer.note  # what is quoted is meant as it is


@pytest.mark.promise("003.cascade.partial")
@pytest.mark.parametrize(
    ("query", "title"),
    [("xkubernetes", "Kubernetes"), ("lloginn", "Login"), ("databasefoo", "Pool"), ("zzlogintoken", "Login")],
)
@pytest.mark.parametrize("backend", ["memory://", "sqlite://"])
def test_near_words_and_parts_of_words_answer_last(query: str, title: str, backend: str, tmp_path: Path):
    kb = library(store__url="memory://" if backend == "memory://" else f"{backend}{tmp_path}")
    answer = kb.search(query, mode="fts5")
    kb.close()
    assert titles(answer)[0] == title
    assert (answer.confidence, answer.hits[0].confidence) == ("speculative", "speculative")
    assert answer.note == STEP_NOTES["partial"]
    assert answer.strategies_matched == ("fts_partial",)


@pytest.mark.promise("003.cascade.best-first")
def test_the_best_match_comes_first_on_every_step():
    notes = {
        "Once": "kubernetes is named here among many other words that are of no interest to anybody",
        "Often": "kubernetes kubernetes kubernetes",
        "Both": "kubernetes deployment",
        "Other": "nothing of the kind",
    }
    for query in ("kuberne deploym", "xkubernetes xdeployment"):
        assert titles(library(notes).search(query, mode="fts5")) == ["Both", "Often", "Once"]


def test_what_the_query_excludes_stays_excluded_on_every_step():
    for query in ("kubern -containers", "kuberntes -containers"):
        answer = library().search(query, mode="fts5")
        assert (answer.hits, answer.confidence) == ((), "no_results")


def test_filters_hold_on_every_step():
    kb = library()
    for query in ("kubern", "kuberntes"):
        assert kb.search(query, mode="fts5", type="pdf").hits == ()
        assert titles(kb.search(query, mode="fts5", tags=("ops",))) == ["Kubernetes"]


@pytest.mark.promise("003.cascade.unanswerable")
def test_near_words_join_what_meaning_found_when_that_is_no_answer():
    answer = library().search("kuberntes deploymnt")
    best = answer.hits[0]
    assert (best.document.title, best.found_by) == ("Kubernetes", ("semantic", "fts_partial"))
    assert best.confidence == "low"  # meaning found it as well: that is more than a guess from spelling
    assert answer.note == STEP_NOTES["partial"]
    assert "kubernetes deployment" in answer.suggestions


@pytest.mark.promise("003.cascade.no-results")
def test_gibberish_ends_in_no_results():
    answer = library().search("asdf qwer zxcv", mode="fts5")
    assert (answer.hits, answer.confidence, answer.confidence_score) == ((), "no_results", 0.0)
    assert answer.note == NOTHING


@pytest.mark.promise("003.cascade.floor")
def test_a_step_keeps_what_the_floor_of_a_search_would_drop():
    notes = {"Cluster": "kubernetes runs the cluster", "Pods": "kubernetes starts pods"}
    kb = library(notes, search__floor=1 / 61.5)  # between the first two ranks of one list
    assert len(kb.search("kubernetes", mode="fts5").hits) == 1
    assert sorted(titles(kb.search("xkubernetes", mode="fts5"))) == ["Cluster", "Pods"]


@pytest.mark.promise("001.threshold")
@pytest.mark.parametrize(("mode", "count"), [("fts5", "1 result was"), ("auto", "4 results were")])
def test_a_threshold_that_nobody_reaches_is_named(mode: str, count: str):
    answer = library().search("authentication", mode=mode, threshold=0.9)
    assert (answer.hits, answer.confidence) == ((), "no_results")
    assert answer.note is not None
    assert answer.note.startswith(f"{count} under the threshold of 0.9; the best reaches 0.0")
    assert answer.omitted["below_threshold"] == int(count[0])
    assert answer.suggestions[0] == "Login"  # the nearest document, by its title


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ({"type": "pdf"}, "no document matches the filter: type pdf"),
        (
            {"tags": ("ops", "x")},
            "no document matches the filter: tags ops, x; no document has the tag x: there are ops",
        ),
        (
            {"path": "nowhere/**", "type": "note"},
            "no document matches the filter: type note; path nowhere/**; paths begin with notes/,"
            " and a folder is all that lies below it",
        ),
        (
            {"source": "notes", "tags": ("x",)},
            "no document matches the filter: tags x; source notes; no document has the tag x: there are ops",
        ),
        (
            {"until": moment("1971-02-03", now=0.0, is_end=True)},
            "no document matches the filter: modified until 1971-02-03",
        ),
        (
            {"since": 1e300, "type": "pdf"},
            "no document matches the filter: type pdf; modified since 1e+300 s after 1970",
        ),
    ],
    ids=str,
)
def test_a_filter_that_nothing_matches_is_named(filter: dict[str, Any], said: str):
    for mode in ("auto", "fts5", "semantic"):
        answer = library().search("login", mode=mode, **filter)
        assert (answer.hits, answer.note, answer.suggestions) == ((), said, ())


def test_what_is_superseded_is_said_to_be():
    kb = library({})
    first = kb.note(Note("the zebra is striped", title="Zebra"))
    kb.note(Note("all animals are described elsewhere", title="Animals"), supersedes=first.id)
    answer = kb.search("zebra", mode="fts5")
    assert (answer.hits, answer.note) == (
        (),
        "all that was found has been superseded; --include-superseded shows it",
    )
    assert titles(kb.search("zebra", mode="fts5", include_superseded=True)) == ["Zebra"]


@pytest.mark.parametrize("query", ["!!! ???", "", "   ", "\x00\x1f"])
def test_a_query_without_a_word_is_told_so(query: str):
    answer = library().search(query)
    assert (answer.hits, answer.confidence, answer.note) == ((), "no_results", NO_WORD)


@pytest.mark.promise("003.cascade.empty")
@pytest.mark.parametrize("query", ["anything", "!!!"])
def test_an_empty_knowledge_base_says_so_and_what_to_do(query: str):
    answer = library({}).search(query)
    assert (answer.hits, answer.confidence, answer.note, answer.suggestions) == ((), "no_results", EMPTY, ())


@pytest.mark.promise("003.cascade.empty")
def test_a_source_that_was_never_synced_is_named():
    kb = library({})
    kb.store.catalog.put_source(Source("s", "papers", "/papers", "directory", "papers"))
    answer = kb.search("anything")
    assert answer.note is not None
    assert answer.note.startswith("nothing is indexed yet of papers: `kb sync`")


class Stuck:
    """A lexical index whose near words never come."""

    def __init__(self, index: object, release: threading.Event) -> None:
        self._index = index
        self._release = release

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        self._release.wait()
        return []


@pytest.mark.promise("003.cascade.budget")
def test_a_step_that_takes_too_long_is_named_and_left_behind():
    kb = library(search__partial_ms=300)
    release = threading.Event()
    used = tools(kb)
    store = _Shelf(kb.store, Stuck(kb.store.words, release))
    try:
        answer = search(Request("qqqqzzzz aaaa", mode="fts5"), replace(used, store=store))
    finally:
        release.set()
    assert [(part.strategy, part.reason) for part in answer.degraded] == [
        ("fts_partial", "no answer within 300 ms")
    ]
    assert (answer.confidence, answer.note) == ("no_results", NO_TIME)


class _Shelf:
    """A store with another lexical index."""

    def __init__(self, store: Store, words: object) -> None:
        self.catalog = store.catalog
        self.words = words
