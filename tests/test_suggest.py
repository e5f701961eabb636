"""What else could be asked: put right, known, related, and never from anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord import KnowledgeBase, Note
from concord.search.fallback import MAX_SUGGESTIONS
from support.small_library import UNHURRIED, library, titles


@pytest.mark.promise("003.cascade.suggestions")
@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("kuberntes", "kubernetes"),
        ("Kuberntes Deploymnt", "kubernetes deployment"),
        ("databse_conection", "database_connection"),
    ],
)
def test_the_query_is_suggested_as_it_was_probably_meant(query: str, meant: str):
    """A word that the model has whole, as the hashing one has any, is searched as typed in `auto`."""
    assert library().search(query).suggestions[0] == meant


@pytest.mark.promise("003.cascade.suggestions")
def test_a_suggestion_leads_to_an_answer():
    kb = library()
    for suggestion in kb.search("authenticaton tokne").suggestions:
        assert titles(kb.search(suggestion))[0] == "Login"


HOLDINGS = """
    kubernetes authentication receive separate deployment connection database necessary token login pool
    base read reach make take broad from trial forum commuter brake accommodate
"""


@pytest.mark.promise("003.cascade.suggestions")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kuberntes", "kubernetes"),
        ("recieve", "receive"),
        ("conection", "connection"),
        ("datebase", "database"),
        ("deploymnet", "deployment"),
        ("pooll", "pool"),
        ("acommodate", "accommodate"),
    ],
)
def test_what_was_mistyped_is_put_right(typed: str, meant: str):
    answer = library({"Words": HOLDINGS}).search(f"{typed} zzzz")
    assert answer.suggestions[0] == f"{meant} zzzz"


@pytest.mark.parametrize(
    "query",
    [
        "how to bake sourdough bread",
        "take the bus to mouse park",
        "bead necklace",
        "lake house holiday",
    ],
)
def test_what_was_typed_right_is_left_alone(query: str):
    kb = library({"Words": HOLDINGS})
    assert kb.search(query, mode="fts5").suggestions == ()


@pytest.mark.promise("003.cascade.related")
def test_documents_near_in_meaning_are_suggested_when_all_are_under_the_threshold():
    answer = library().search("how does authentication work", threshold=0.9)
    assert answer.hits == ()
    assert answer.suggestions[0] == "Login"
    assert len(answer.suggestions) <= MAX_SUGGESTIONS


@pytest.mark.promise("design.organisations-apart")
def test_no_suggestion_crosses_organisations(tmp_path: Path):
    given = {"store__url": f"sqlite://{tmp_path}", "embed__provider": "hashing", **UNHURRIED}
    with KnowledgeBase.open(org="one", **given) as one, KnowledgeBase.open(org="two", **given) as two:
        one.note(Note("the zebra is striped", title="Zebra"))
        two.note(Note("something else", title="Other"))
        assert one.search("zebrra").suggestions[0] == "zebra"
        assert two.search("zebrra").suggestions == ()
        assert "Zebra" not in two.search("striped", threshold=0.9).suggestions


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("login Grafana", "no text has the word Grafana"),
        ("login of a Grafana-Token", "no text has the word Grafana"),
        ("login error 4711", "no text has the words error, 4711"),
        ("login 12 times", "no text has the word times"),  # a short number counts something
    ],
)
def test_words_and_numbers_that_no_text_has_are_named_where_others_are_found(query: str, told: str | None):
    answer = library().search(query, mode="fts5")
    assert answer.hits
    assert answer.note == told
