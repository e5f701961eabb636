"""A place in a chunk stands under the heading that is nearest above it, whatever the chunk carries."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.chunk import ChunkSize, chunk
from concord.text.headings import heading_at, shared
from concord.text.markdown import read_markdown
from concord.types import Extracted

at_start = partial(heading_at, begins_document=True)
further_on = partial(heading_at, begins_document=False)

FAQ = "# FAQ\n\n## One?\n\nfirst\n\n## Two?\n\nsecond\n\n### Part\n\nthird\n\n## Three?\n\nfourth"
HEADED = [
    "# A", "## B", "## `C` ##", "### D", "## E*e*", "## [F](f.md)", "words", "more words", "```", "#no",
    "",
]  # fmt: skip
LINES = st.lists(st.sampled_from(HEADED), max_size=25)


@pytest.mark.parametrize(
    ("word", "heading"),
    [
        ("first", ("FAQ", "One?")),
        ("second", ("FAQ", "Two?")),
        ("third", ("FAQ", "Two?", "Part")),
        ("fourth", ("FAQ", "Three?")),
    ],
)
def test_a_place_stands_under_the_nearest_heading_above(word: str, heading: tuple[str, ...]):
    assert at_start(FAQ, FAQ.index(word), ("FAQ",)) == heading


@pytest.mark.parametrize(
    "text",
    [
        "# step 1: stop it\nstop 1\n# step 2: here\nstop 2\n```\n\nThen wait.",
        "stop 1\n# step 2: here\nstop 2\n# step 3: wait\nwait",
        "stop 1\n### step 2: here\nstop 2",
        "stop 1\n```\n\nThen look here:\n\n```\n# step 3: wait\nwait",
    ],
)
@pytest.mark.parametrize("carried", [("Runbook", "Gateway"), ("Runbook",)])
def test_comments_in_a_listing_that_began_in_an_earlier_chunk_are_no_headings(
    text: str, carried: tuple[str, ...]
):
    assert further_on(text, text.index("here"), carried) == carried


@pytest.mark.parametrize(
    "text",
    [
        "here, and no heading at all",
        "## <a id='one'></a>\n\nfirst\n\n## Two\n\nhere",
        "## One\n\n#Two\n\nhere",
        "+++\n# a comment\nowner = 'here'\n+++\n\n# Two",
    ],
)
def test_where_it_cannot_be_told_the_heading_that_the_chunk_carries_stays(text: str):
    assert at_start(text, max(0, text.find("here")), ("Top", "One")) == ("Top", "One")


def test_paths_share_what_they_begin_with():
    assert shared([]) == ()
    assert shared([("a", "b", "c")]) == ("a", "b", "c")
    assert shared([("a", "b", "c"), ("a", "b"), ("a", "x", "c")]) == ("a",)
    assert shared([("a",), ("b",)]) == ()


@given(LINES)
@settings(max_examples=300)
def test_the_short_reader_agrees_with_the_one_that_made_the_chunks(lines: list[str]):
    text = "\n".join(lines)
    found = {start: section.heading for section in read_markdown(text) for start, *_ in section.blocks}
    for piece in chunk(
        Extracted(text, "markdown"), lambda t: range(len(t)), ChunkSize.for_target(40, overlap=0)
    ):
        for start, heading in found.items():
            if piece.start <= start < piece.end and not text.startswith("#", start):
                at = start - piece.start
                read = at_start if piece.start == 0 else further_on
                assert read(piece.text, at, piece.heading) in (heading, piece.heading)
