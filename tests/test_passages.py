"""Which passages come: near-duplicates are one, repetitions give way, and no document takes all places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.settings import TABLE
from concord.search.passages import collapse, diversify
from concord.types import Passage
from support.recorders import write
from support.small_library import library, opened, passages, ranked, understood

FOX = "the quick brown fox jumps over the lazy dog near the river bank"
WHALE = "a blue whale sings slowly below cold arctic waters all winter long"
TRADE = float(TABLE["search.diversity"].default)
TEXTS = st.lists(st.text(alphabet="ab cd,中文", max_size=20), min_size=1, max_size=8)


def of_texts(*texts: str, scores: tuple[float, ...] = ()) -> list[Passage]:
    given = scores or tuple(1 - at / 100 for at in range(len(texts)))
    return passages(ranked(*given), dict(enumerate(texts, 1)))


def collapsed(*texts: str, query: str = "anything") -> list[tuple[int, int]]:
    """Return the passages that stay, each with how many it stands for besides."""
    kept = collapse(of_texts(*texts), understood(library({}), query))
    return [(passage.chunk.id, len(passage.also_at)) for passage in kept]


@pytest.mark.promise("000.mmr.near-duplicates")
def test_the_same_text_twice_is_one_result_that_names_the_other():
    assert collapsed(FOX, WHALE, FOX.upper() + "  \n") == [(1, 1), (2, 0)]
    long = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    assert collapsed(long, long + " more") == [(1, 1)]


@pytest.mark.promise("000.mmr.near-duplicates")
@pytest.mark.parametrize(
    ("said", "turned"),
    [
        ("and waits 15 seconds", "and waits 90 seconds"),
        ("staff may grant a refund", "staff may not grant a refund"),
        ("staff can grant a refund", "staff cannot grant a refund"),
        ("refunds are granted with a receipt", "refunds are granted without a receipt"),
        ("Mitarbeiter dürfen erstatten", "Mitarbeiter dürfen nicht erstatten"),
    ],
)
def test_texts_that_differ_in_a_number_or_a_negation_are_not_the_same(said: str, turned: str):
    more = " ".join(f"word{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh")
    assert collapsed(f"{more} {said}", f"{more} {turned}") == [(1, 0), (2, 0)]


def spread(
    scores: tuple[float, ...], *texts: str, limit: int = 100, per_document: int = 0
) -> list[tuple[int, int | None]]:
    """Return the chunks in their order, each with the rank that it moved from."""
    chosen = diversify(of_texts(*texts, scores=scores), scores, limit, trade=TRADE, per_document=per_document)
    return [(passage.chunk.id, passage.ranked.moved_from) for passage in chosen]


@pytest.mark.promise("000.mmr.diversity")
def test_a_repetition_gives_way_to_something_new_and_says_from_where_it_moved():
    order = spread((1.0, 0.95, 0.8, 0.0), FOX, FOX + " again", WHALE, "unrelated")
    assert order == [(1, None), (3, 3), (2, 2), (4, None)]
    clear = spread((1.0, 0.95, 0.2, 0.0), FOX, FOX + " again", WHALE, "unrelated")
    assert [chunk for chunk, _ in clear] == [1, 2, 3, 4]


@pytest.mark.promise("000.mmr.lambda")
def test_relevance_counts_seven_tenths_and_novelty_three():
    # 0.7 · 0.5 − 0.3 · 1 = 0.05 for the repetition against 0.7 · 0.1 = 0.07 for what is new
    assert [chunk for chunk, _ in spread((1.0, 0.5, 0.1, 0.0), FOX, FOX, WHALE, "x")] == [1, 3, 2, 4]
    assert [chunk for chunk, _ in spread((1.0, 0.5, 0.07, 0.0), FOX, FOX, WHALE, FOX)] == [1, 2, 3, 4]


@settings(max_examples=100)
@given(TEXTS, st.data())
def test_diversity_only_reorders_and_keeps_the_best_first(texts: list[str], data: st.DataObject):
    scores = data.draw(st.lists(st.floats(-5, 5), min_size=len(texts), max_size=len(texts)))
    order = spread(tuple(sorted(scores, reverse=True)), *texts)
    assert sorted(chunk for chunk, _ in order) == [*range(1, len(texts) + 1)]
    assert order[0] == (1, None)
    assert all(moved == (None if chunk == place else chunk) for place, (chunk, moved) in enumerate(order, 1))


def test_of_one_document_two_passages_come_before_others_have_had_their_turn(tmp_path: Path):
    parts = "\n\n".join(f"## Zebra {n}\n\n{'zebra ' * 9}{f'word{n} ' * 60}" for n in range(6))
    write(tmp_path / "docs" / "long.md", parts)
    for n in range(4):
        write(tmp_path / "docs" / f"{n}.md", f"{'Much else is here. ' * 20} A zebra is thing{n}.\n")
    with opened(tmp_path, embed__provider="none", ingest__chunk_tokens=120) as kb:
        kb.add(tmp_path / "docs")
        answer = kb.search("zebra", top=5)
        shown = [hit.document.path for hit in answer.hits].count("docs/long.md")
        more = {hit.more_in_document for hit in answer.hits if hit.document.path == "docs/long.md"}
        assert (shown, more) == (2, {4})
        by_name = kb.search("zebra", top=5, fusion="rrf", mode="fts5")
        assert [hit.document.path for hit in by_name.hits].count("docs/long.md") > 2
    with opened(tmp_path, embed__provider="none", ingest__chunk_tokens=120, search__per_document=0) as kb:
        every = kb.search("zebra", top=5)
        assert [hit.document.path for hit in every.hits].count("docs/long.md") > 2


def test_results_under_the_score_that_was_asked_for_are_left_out_and_counted():
    kb = library()
    everything = kb.search("login token")
    cut = sorted(hit.score for hit in everything.hits)[-2]
    some = kb.search("login token", min_score=cut)
    assert [hit.score >= cut for hit in some.hits] == [True, True]
    assert some.omitted["below_min_score"] == len(everything.hits) - 2
    nothing = kb.search("login token", min_score=1.0)
    assert (nothing.hits, nothing.confidence) == ((), "no_results")
    assert nothing.note == "all 4 results are under the score of 1 that was asked for"
