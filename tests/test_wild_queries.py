"""No query, however strange, is a reason to fail: every search has an answer that says what it is."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concord.types import MODES, Answer
from concord.wire import answer_to_json, to_text
from support.small_library import NOTES, library

SCHEMA = Path(__file__).parent.parent / "docs" / "answer.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

MIXED = {
    **NOTES,
    "学习": "机器学习很有趣, and so is machine learning.",
    "Größe": "Die Größe der Straße: naïve café, Привет мир.",
    "code.py": "def getUserName(user_id): return C++ if user_id == 0x1F else 'foo-bar_v2.1'",
}
KB = library(MIXED)

ODD = "\n\t\x00\x1b\u200b\u202e\ufeffßéжπ学ไ💥\ud800"
ALPHABET = st.sampled_from(list("abkrtz019 \"'*-+#()[]:.,^~&|!?\\/{}@" + ODD))
SYNTAX = ["AND", "OR", "NOT", "NEAR", "kuberntes", "the", "of", '"', "-", "*", "("]
WORDS = st.sampled_from([*" ".join(MIXED.values()).split(), *SYNTAX])
QUERIES = st.text(max_size=40) | st.text(ALPHABET, max_size=40) | st.lists(WORDS, max_size=12).map(" ".join)


def check(answer: Answer) -> None:
    """Check what holds of any answer."""
    wire = answer_to_json(answer, explain=True)
    VALIDATOR.validate(wire)
    to_text(wire).encode("utf-8")
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    assert all(0 <= hit.score <= 1 for hit in answer.hits)
    assert (answer.confidence == "no_results") == (not answer.hits)
    assert answer.hits or answer.note
    assert len(answer.suggestions) <= 5


@pytest.mark.promise("003.bad-input")
@settings(deadline=None, max_examples=150)
@given(query=QUERIES, mode=st.sampled_from(MODES), explain=st.booleans(), top=st.integers(1, 30))
@example(query="", mode="auto", explain=True, top=1)
@example(query="a", mode="auto", explain=True, top=1)
@example(query='"unbalanced', mode="fts5", explain=False, top=3)
@example(query="the of and", mode="auto", explain=False, top=3)
@example(query="... !!! ???", mode="auto", explain=False, top=3)
@example(query="\x00\x01\x1b[31m", mode="fts5", explain=False, top=3)
@example(query="Привет 学习 naïve kuberntes", mode="auto", explain=True, top=10)
@example(query="-login", mode="auto", explain=False, top=3)
def test_any_text_has_an_answer(query: str, mode: str, explain: bool, top: int):
    check(KB.search(query, mode=mode, explain=explain, top=top))


@pytest.mark.promise("003.bad-input")
@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"word{i}" for i in range(10_000)),
        "x" * 100_000,
        '"' * 9_999,
        "(" * 5_000,
        " AND ".join(["token"] * 2_000),
        "-a " * 3_000,
        "学" * 10_000,
        "kuberntes " * 10_000,
        "e\u0301" * 5_000,
    ],
    ids=["words", "one word", "quotes", "parentheses", "ands", "exclusions", "han", "typos", "accents"],
)
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_a_huge_query_has_an_answer(query: str, mode: str):
    check(KB.search(query, mode=mode))


@settings(deadline=None, max_examples=40)
@given(
    query=QUERIES,
    tags=st.lists(st.sampled_from(["ops", "x", ""]), max_size=2),
    path=st.none() | st.text(max_size=8),
    span=st.tuples(st.none() | st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False)),
    threshold=st.none() | st.floats(0, 1),
)
def test_any_filter_and_threshold_has_an_answer(query, tags, path, span, threshold):
    since, until = span
    check(KB.search(query, tags=tuple(tags), path=path, since=since, until=until, threshold=threshold))


@settings(deadline=None, max_examples=40)
@given(query=QUERIES)
def test_any_text_can_be_explained_and_answered_in_two_parts(query: str):
    document = next(iter(KB.documents()))
    told = KB.explain(query, document.id)
    assert told.why
    assert [one.stage for one in KB.search_progressive(query)] == ["preliminary", "final"]
