"""A query that has a version asks for what stands under it, not for what stands under another."""

from __future__ import annotations

import pytest

from concord.ranking.named.kinds import Lifted, ReadPassages
from concord.ranking.named.versions import KIND
from concord.types import Chunk, Document, Filter, Query, Ranked, Survivor
from support.small_library import library


def changelog(name: str, *numbers: str) -> str:
    entries = [
        f"## {number} (2026-01-02)\n\nMany thanks to all who have helped {name} with this release.\n\n"
        f"### Bug Fixes\n\n{f'- A knot of {name} that came loose is tied again. ' * 9}\n\n"
        f"### Features\n\n{f'- The {name} has got one more lamp at its stern. ' * 9}"
        for number in numbers
    ]
    return f"# {name}\n\n" + "\n\n".join(entries)


LOGS = {
    "Anchor": changelog("anchor", "8.1.0", "8.0.1", "8.0.0", "8.0.0rc1", "7.9.2"),
    "Winch": changelog("winch", "9.1.1", "9.0.2", "8.0.1", "7.9.3"),
    "Chapters": "# 8.2 Bug fixes\n\nHow to report bugs of the anchor, and what is new in 8.0.0 of it.",
}


@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ("anchor 8.0.0 bug fixes", ("anchor", "8.0.0 (2026-01-02)", "Bug Fixes")),
        ("features of anchor v7.9.2", ("anchor", "7.9.2 (2026-01-02)", "Features")),
        ("anchor version 8.0.1 bug fixes", ("anchor", "8.0.1 (2026-01-02)", "Bug Fixes")),
        ("winch 8.0.1 features", ("winch", "8.0.1 (2026-01-02)", "Features")),
        ("anchor `8.0.0` bug fixes", ("anchor", "8.0.0 (2026-01-02)", "Bug Fixes")),
        ("winch “8.0.1” features", ("winch", "8.0.1 (2026-01-02)", "Features")),
        ("winch 9.0 bug fixes", ("winch", "9.0.2 (2026-01-02)", "Bug Fixes")),
    ],
)
def test_the_section_of_the_release_that_is_asked_for_comes_first(query: str, heading: tuple[str, ...]):
    with library(LOGS, ingest__chunk_tokens=120) as kb:
        assert kb.search(query).hits[0].chunk.heading == heading


def survivor(chunk_id: int, text: str, score: float) -> Survivor:
    """Return a passage of the release 8.0.0 as a search has read it."""
    document = Document("d1", "s1", "docs/anchor.md", "markdown", "anchor")
    chunk = Chunk(
        chunk_id, "d1", chunk_id, text, 0, len(text), 1, 1, heading=("anchor", "8.0.0 (2026-01-02)")
    )
    return Survivor(Ranked(chunk_id, score, ()), chunk, document)


def test_of_a_release_that_passage_comes_first_which_alone_speaks_of_what_is_asked():
    texts = [
        "The change of the lamp.",
        "A change: more rope.",
        "The change of the bow.",
        "What else did change.",
    ]
    survivors = [survivor(at, text, 1 - at / 4) for at, text in enumerate(texts)]

    def first(asked: str) -> int:
        query = Query(asked, (asked,), (), (), None, None, 10, 40, Filter())
        read = ReadPassages(survivors, query)
        return KIND.lift(Lifted([one.ranked for one in survivors]), read).ranked[0].chunk_id

    assert first("what did anchor 8.0.0 change") == 0
    assert first("what did anchor 8.0.0 change about the rope") == 1
    assert first("what did anchor 8.0.0 change about the mast") == 0
