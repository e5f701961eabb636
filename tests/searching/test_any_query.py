"""No query raises, whatever is asked and however."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.knowledge import KnowledgeBase
from concord.types import MODES, Answer


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
