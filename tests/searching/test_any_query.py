"""No query, however strange, is a reason to fail: every search has an answer that says what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from concord.text.json_safe import to_text
from concord.types import MODES, Answer
from concord.wire import answer_to_json
from searching.pages import BACKENDS, opened
from support.small_library import NOTES, UNHURRIED

SCHEMA = Path(__file__).parents[2] / "docs" / "answer.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

MIXED = {
    **NOTES,
    "学习": "机器学习很有趣, and so is machine learning.",
    "Größe": "Die Größe der Straße: naïve café, Привет мир.",
    "code.py": "def getUserName(user_id): return C++ if user_id == 0x1F else 'foo-bar_v2.1'",
}

ODD = "\n\t\x00\x1b\u200b\u202e\ufeffßéжπ学ไ💥🦓“”‘’\ud800"
ALPHABET = st.sampled_from(list("abkrtz019 \"'*-+#()[]:;.,^~&|!?\\/{}@" + ODD))
SYNTAX = ["AND", "OR", "NOT", "NEAR", "the", "of", '"', "(", ")", "*", "-", "token*", "-token", "title:"]
WORDS = st.sampled_from([*" ".join(MIXED.values()).split(), *SYNTAX, "kuberntes", "don't", "a.b.c", *ODD])
QUERIES = st.one_of(
    st.text(max_size=60),
    st.text(ALPHABET, max_size=40),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.binary(max_size=40).map(lambda data: data.decode("utf-8", "surrogateescape")),
)


@pytest.fixture(params=BACKENDS, scope="module")
def mixed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KnowledgeBase]:
    """Notes in several scripts, and code."""
    with opened(request.param, tmp_path_factory.mktemp(request.param), **UNHURRIED) as made:
        for title, text in MIXED.items():
            made.note(Note(text, title=title, tags=("ops",)))
        yield made


def check(answer: Answer) -> None:
    """Check what holds of any answer."""
    wire = answer_to_json(answer, explain=True)
    VALIDATOR.validate(wire)
    to_text(wire).encode("utf-8")
    assert broken(answer) == []
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    assert all(0 <= hit.score <= 1 for hit in answer.hits)
    assert (answer.confidence == "no_results") == (not answer.hits)
    assert answer.hits or answer.note
    assert len(answer.suggestions) <= 5
    assert answer.request.top is None or len(answer.hits) <= answer.request.top


def broken(answer: Answer) -> list[str]:
    """Return why strategies failed; one that was late on a busy machine did not fail."""
    reasons = [degraded.reason for degraded in answer.degraded]
    return [reason for reason in reasons if not reason.startswith("no answer within")]


@pytest.mark.promise("001.fts.escaped", "003.bad-input", "A.faults.any-query")
@settings(max_examples=60)
@given(query=QUERIES, mode=st.sampled_from(MODES), explain=st.booleans(), top=st.integers(1, 30))
@example(query="a", mode="auto", explain=True, top=1)
@example(query="Привет 学习 naïve kuberntes", mode="auto", explain=True, top=10)
@example(query="-login", mode="auto", explain=False, top=3)
def test_any_text_has_an_answer(mixed: KnowledgeBase, query: str, mode: str, explain: bool, top: int):
    check(mixed.search(query, mode=mode, explain=explain, top=top))


@pytest.mark.promise("001.fts.escaped", "003.bad-input", "A.faults.any-query")
@pytest.mark.parametrize(
    "query",
    [
        *("", " ", "\x00\x01\x1b[31m", "... !!! ???", "the of and to", '""', '"unclosed', '"' * 9_999),
        *('"a" ' * 3_000, "(" * 5_000, "token " * 15_000, "kuberntes " * 10_000, "x" * 100_000),
        *("a AND " * 2_000, "NOT " * 2_000, "-a " * 3_000, "a* " * 3_000),
        *("e\u0301" * 5_000, "🦓" * 1_000, "学" * 10_000, "漢字仮名交じり文" * 500),
        " ".join(f"word{i}" for i in range(10_000)),
    ],
    ids=lambda query: repr(query[:12]) + f"x{len(query)}",
)
def test_a_query_of_any_length_or_without_a_word_has_an_answer(mixed: KnowledgeBase, query: str):
    for mode in MODES:
        check(mixed.search(query, mode=mode, top=3, deadline_ms=60_000))


@settings(max_examples=20)
@given(
    query=QUERIES,
    tags=st.lists(st.sampled_from(["ops", "x", ""]), max_size=2),
    path=st.none() | st.text(max_size=8),
    span=st.tuples(st.none() | st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False)),
    threshold=st.none() | st.floats(0, 1),
)
def test_any_filter_and_threshold_has_an_answer(mixed: KnowledgeBase, query, tags, path, span, threshold):
    since, until = span
    check(mixed.search(query, tags=tuple(tags), path=path, since=since, until=until, threshold=threshold))


@settings(max_examples=20)
@given(query=QUERIES)
def test_any_text_can_be_explained_and_answered_in_two_parts(mixed: KnowledgeBase, query: str):
    document = next(iter(mixed.documents()))
    assert mixed.explain(query, document.id).why
    assert [answer.stage for answer in mixed.search_progressive(query)] == ["preliminary", "final"]
