"""In `auto` no score is above that of a better place, except of hits that were moved and say so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from concord import KnowledgeBase
from support.judged import COLOURS, PLACES, THINGS


@pytest.fixture
def filled(knowledge: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    docs = tmp_path / "docs"
    docs.mkdir()
    for at, thing in enumerate(THINGS):
        text = f"The {COLOURS[at % 5]} {thing} is kept in the {PLACES[at % 6]}, next to a {THINGS[at - 1]}."
        (docs / f"{thing}.md").write_text(text)
    knowledge.add(docs)
    return knowledge


@pytest.mark.parametrize("thing", THINGS[:6])
def test_scores_fall_in_the_order_of_the_blend(filled: KnowledgeBase, thing: str):
    hits = filled.search(f"where is the amber {thing} kept").hits
    before = sorted(hits, key=lambda hit: hit.moved_from or hit.rank)
    assert len(hits) == 10
    assert all(above.score >= below.score for above, below in pairwise(before))
