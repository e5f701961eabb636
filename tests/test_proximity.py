"""Words that stand together: found as neighbours, rewarded, and never at the cost of a clear answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.answering.passages import read_passages
from concord.answering.second_look import second_look
from concord.files.freshness import Files
from concord.ranking.lift import lifted
from concord.ranking.proximity import MOST_PAIRS, NEIGHBOURS, VERBATIM, closeness, lifts, neighbouring
from concord.ranking.rarity import rareness
from concord.text.held import neighbours
from concord.types import Candidate, Family, Ranked
from support.small_library import library, opened, survivors, titles, understood

words = st.text("abcdefgh", min_size=1, max_size=6)
texts = st.lists(words, max_size=30).map(" ".join)


def share_of(asked: Sequence[str], weights: Mapping[str, float], text: str) -> float:
    return closeness(neighbouring(asked, weights), text, bare=True)


@pytest.mark.parametrize(
    ("text", "first", "second", "stands_close"),
    [
        ("written by Barry Warsaw", "barry", "warsaw", True),
        ("the structure of proteins", "structure", "protein", True),  # a word between, and stems
        ("Warsaw, Barry", "barry", "warsaw", False),  # the other way round
        ("Barry went to live in Warsaw", "barry", "warsaw", False),
        ("barrys warsawian", "barry", "warsaw", False),
        ("Barry\n  Warsaw", "barry", "warsaw", True),
        ("state of the art", "state", "art", False),
        ("zurück nach Köln", "zurück", "köln", True),
        ("only Barry", "barry", "warsaw", False),
        ("", "barry", "warsaw", False),
        ("barry warsaw", "…", "warsaw", False),
    ],
)
def test_a_word_follows_another_where_it_stands_next_or_one_later(text, first, second, stands_close):
    pair = (first, second)
    assert neighbours(text, [pair]) == ([pair] if stands_close else [])


@given(texts, st.lists(words, max_size=8))
def test_closeness_is_a_share_and_a_text_that_is_the_query_has_all_of_it(text: str, asked: list[str]):
    weights = dict.fromkeys(asked, 1.0)
    assert 0 <= share_of(asked, weights, text) <= 1
    distinct = list(dict.fromkeys(asked))
    assert share_of(distinct, weights, " ".join(distinct)) == (len(distinct) > 1)


def test_a_rare_pair_counts_for_more_than_a_common_one():
    weights = {"the": 0.1, "old": 2.0, "hermit": 5.0}
    rare = share_of(["the", "old", "hermit"], weights, "an old hermit")
    common = share_of(["the", "old", "hermit"], weights, "the old man")
    assert rare > 0.9 > 0.1 > common > 0


def test_a_question_is_not_there_as_a_whole_where_its_subject_is():
    weights = {"model": 1.0, "switched": 1.0}
    share = closeness(neighbouring([*weights], weights), "the model is switched", bare=False)
    assert 0.9 < share < 1
    with library({"One": "The model is switched at once.", "Two": "Models, and what was switched."}) as kb:
        hits = kb.search("when is a model switched", explain=True).hits
    assert max(hit.explanation["closeness"] for hit in hits) < 1


def test_only_so_many_pairs_are_looked_for():
    asked = [f"word{at}" for at in range(40)]
    beginning = " ".join(asked[: MOST_PAIRS + 1])
    assert share_of(asked, dict.fromkeys(asked, 1.0), beginning) == 1


def test_the_whole_query_in_its_order_gains_by_how_rare_its_words_are():
    assert lifts({1: 1.0, 2: 0.5, 3: 0.0}, 0.5) == {1: NEIGHBOURS + 0.5 * VERBATIM, 2: NEIGHBOURS * 0.5}
    assert lifts({1: 1.0}, 0.0) == {1: NEIGHBOURS}


def test_words_are_rare_that_few_chunks_hold():
    assert rareness(1000, {"a": 1, "b": 1}) == 1
    assert rareness(1000, {"a": 1000}) == 0
    assert rareness(1000, {"a": 10}) > rareness(1000, {"a": 100}) > 0
    assert rareness(0, {}) == rareness(1, {"a": 1}) == rareness(1000, {}) == 0
    assert rareness(1000, {"a": 0}) == 1  # nothing holds it: it could not be rarer


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12), st.floats(0, 1))
def test_a_lift_is_a_share_of_the_range_and_changes_no_other_score(scores: list[float], share: float):
    ranked = [Ranked(at, score, ()) for at, score in enumerate(scores)]
    after = {one.chunk_id: one.score for one in lifted(ranked, {0: share})}
    reach = (max(scores) - min(scores)) or 1.0
    assert after[0] == pytest.approx(scores[0] + share * reach)
    assert {i: score for i, score in after.items() if i} == dict(list(enumerate(scores))[1:])


@pytest.mark.promise("B.lexical.proximity")
@pytest.mark.parametrize("mode", ["auto", "hybrid", "fts5"])
def test_a_name_is_found_where_it_stands_before_texts_that_hold_its_parts(mode):
    notes = {
        "Parts": "Warsaw is a city, and Warsaw was never described so well as by our Barry at sea. " * 3,
        "Whole": "This module was written long ago by Barry Warsaw, who has since moved on to other things.",
        **{f"Other {at}": f"Release {at} of the module changes how messages are parsed." for at in range(12)},
    }
    with library(notes) as kb:
        assert titles(kb.search("barry warsaw", mode=mode))[0] == "Whole"


def test_words_that_stand_together_count_where_the_query_names_somebody_too():
    notes = {
        "Apart": "A crane is in the harbour, says Anna Keller.",
        "Together": "Anna Keller saw a harbour crane.",
        "Neither": "Somebody saw a ship.",
    }
    with library(notes) as kb:
        query = understood(kb, "Anna Keller harbour crane")
    votes = (Candidate(1, "fts_relaxed", "lexical", 1, 1.0),)
    ranked = [Ranked(number, score, votes) for number, score in ((1, 1.0), (2, 0.95), (3, 0.0))]
    texts = dict(enumerate(notes.values(), 1))
    assert query.entities
    look = second_look(survivors(ranked, texts), query, None, 0)
    assert [one.chunk_id for one in look.ranked] == [2, 1, 3]


@pytest.mark.parametrize(
    ("query", "said", "found_by"),
    [
        # few words, far apart
        ("node is not the leader", "The client then prints: node is not the leader.", "fts_exact"),
        ("lease of parcel expired twice", "Look up what `lease of parcel expired twice` means.", "fts_exact"),
        # but for its value
        (
            "no free slot on carousel 'east' today",
            "no free slot on carousel 'west' today",
            "fts_relaxed",
        ),
    ],
)
def test_a_passage_that_holds_the_whole_query_is_read_however_far_it_is_in_meaning(query, said, found_by):
    others = {f"Other {at}": f"What leaders, leases and workers do, part {at}." for at in range(60)}
    with library({**others, "Said": f"The halls have two feeds each. {said}"}) as kb:
        catalog = kb.store.catalog
        by_title = {document.title: one for one, (_, document) in catalog.read([*range(1, 99)]).items()}

        def found(title: str, strategy: str, rank: int, score: float) -> Ranked:
            family: Family = "semantic" if strategy == "semantic" else "lexical"
            return Ranked(by_title[title], score, (Candidate(by_title[title], strategy, family, rank, 1.0),))

        near = [found(title, "semantic", at, 1 - at / 99) for at, title in enumerate(others, 1)]
        by_words = found("Said", found_by, 1, 0.0)
        files = Files(catalog.sources(), catalog.memo)
        read = read_passages([*near, by_words], understood(kb, query), kb.store, files)
        assert [one.document.title for one in read.survivors][-1] == "Said"
        assert len(read.survivors) < len(others)
        other = read_passages([*near, by_words], understood(kb, "feeds of a hall"), kb.store, files)
        assert "Said" not in [one.document.title for one in other.survivors]


@pytest.mark.promise("B.lexical.proximity")
def test_a_message_counts_as_a_whole_where_its_words_have_others_between_them():
    notes = {"Said": "ErrNotLeader: node is not the leader", "Parts": "The leader tells a node. " * 3}
    with library(notes) as kb:
        told = {
            hit.document.title: hit.explanation["closeness"]
            for hit in kb.search("node is not the leader", explain=True).hits
        }
    assert told["Said"] == 1 > told["Parts"]


def test_of_a_passage_that_says_a_whole_message_the_message_is_shown():
    """Its words stand elsewhere, too, and closer together."""
    before = "ErrLeader: the node leads, and a leader node answers. " + "It goes on about other things. " * 12
    with library({"Errors": f"{before}ErrNotLeader: Node is not the leader. {before}"}) as kb:
        (hit,) = kb.search("node is not the leader", top=1).hits
    assert "Node is not the leader." in hit.snippet


def test_source_code_that_says_a_whole_sentence_comes_first_however_common_its_words_are(tmp_path):
    folder = tmp_path / "raft"
    folder.mkdir()
    for at in range(30):
        comment = f"// A leader counts each node, and leader {at} of a node leads."
        (folder / f"lead{at}.go").write_text(f"{comment}\nfunc lead{at}() int {{}}\n", encoding="utf-8")
    said = 'var ErrNotLeader = errors.New("node is not the leader")\n'
    (folder / "errors.go").write_text(said, encoding="utf-8")
    with opened(tmp_path) as kb:
        kb.add(folder)
        assert kb.search("node is not the leader").hits[0].document.path == "raft/errors.go"


def test_an_explanation_tells_how_close_the_words_stand():
    notes = {"Whole": "written by Barry Warsaw", "Parts": "Warsaw was visited by his friend Barry"}
    with library(notes) as kb:
        told = {hit.document.title: hit.explanation for hit in kb.search("barry warsaw", explain=True).hits}
    assert {title: one["closeness"] for title, one in told.items()} == {"Whole": 1.0, "Parts": 0.0}


@pytest.mark.promise("B.lexical.proximity")
def test_neighbouring_words_decide_nothing_where_only_meaning_was_asked_for():
    notes = {"One": "alpha beta gamma", "Two": "gamma delta beta alpha"}
    with library(notes) as kb:
        answer = kb.search("beta gamma", mode="semantic", explain=True)
        by_cosine = sorted(answer.hits, key=lambda hit: -(hit.scores["cosine"] or 0.0))
        assert [hit.chunk.id for hit in answer.hits] == [hit.chunk.id for hit in by_cosine]
