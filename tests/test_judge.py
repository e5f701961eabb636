"""What is thought of hits that meaning has nothing to say about: words alone are judged as words alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase, Note, plugins
from concord.answering.remarks import FOREIGN
from concord.cli.arithmetic import arithmetic
from concord.embedders.hashing import HashingEmbedder
from concord.ranking.calibrate import Logistic
from concord.search import search
from concord.strategies.semantic import Semantic
from concord.types import Candidate, Family, Query, Request
from support.recorders import write
from support.small_library import fitted, library, titles, tools, understood

NEVER = Logistic(("cosine",), (0.0,), -9.0, (0.0,), (1.0,))
# Gives every hit less than a label of its own, and every answer one half.
HUMBLE = replace(
    fitted(answerable=0.4),
    hit=replace(NEVER, intercept=-2.6),
    cuts=replace(
        fitted(answerable=0.4).cuts, hit={"very_high": 0.9, "high": 0.6, "medium_high": 0.3, "medium": 0.1}
    ),
)
# Gives every hit with a vector next to no chance, as a real one does where the cosine is small.
UNLIKELY = replace(fitted(answerable=0.4), hit=NEVER)

PADDED = f"{'Nothing else is told here of pears. ' * 90} One zanquota."


class Late:
    """Meaning that does not answer in time."""

    name = "semantic"
    family: Family = "semantic"

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def candidates(self, query: Query) -> list[Candidate]:
        self.go_on.wait()
        return []

    def is_at_hand(self, query: Query) -> bool:
        return False


def with_a_waiting_note() -> KnowledgeBase:
    kb = library()
    kb.note(Note("The zanquota of every tenant is thirty.", title="Quota"), embed=False)
    return kb


def test_a_hit_without_a_vector_is_first_and_judged_by_its_words():
    kb = with_a_waiting_note()
    answer = search(Request("zanquota"), tools(kb, UNLIKELY))
    assert titles(answer)[0] == "Quota"
    assert answer.hits[0].scores["cosine"] is None
    assert answer.hits[0].score > 0.3 > answer.hits[1].score
    assert (answer.hits[0].confidence, answer.calibrated, answer.answerable) == ("medium", False, None)


def test_hits_without_a_vector_are_named():
    answer = search(Request("zanquota"), tools(with_a_waiting_note(), UNLIKELY))
    assert [(one.strategy, one.reason) for one in answer.degraded] == [
        ("vectors", "1 passage found has no vector yet: `kb sync` makes them")
    ]
    assert search(Request("kubernetes"), tools(library(), UNLIKELY)).degraded == ()


def test_how_much_has_no_vector_is_told_where_it_is_more_than_was_found():
    kb = with_a_waiting_note()
    for at in range(3):
        kb.note(Note(f"Lunch of day {at} is soup.", title=f"Lunch {at}"), embed=False)
    stored = kb.stats().counts.chunks
    answer = search(Request("zanquota"), tools(kb, UNLIKELY))
    assert [one.reason for one in answer.degraded] == [
        f"1 passage found has no vector yet (4 of {stored} in all): `kb sync` makes them"
    ]


def test_who_asks_in_a_language_of_no_document_is_told_to_ask_in_theirs():
    given = tools(library(), replace(UNLIKELY, other_scripts=0.0))
    answer = search(Request("kubernetes настройка кластера серверов"), given)
    assert (answer.answerable, (answer.note or "").endswith(f"; {FOREIGN}")) == (False, True)
    kb = library({"Кластер": "настройка кластера серверов"})
    assert FOREIGN not in (search(Request("настройка кластера сервера"), tools(kb, UNLIKELY)).note or "")
    assert FOREIGN not in (search(Request("kubernetes qqq www"), given).note or "")


class OfLetters(HashingEmbedder):
    """A model that has no word whole."""

    def token_starts(self, text: str) -> Sequence[int]:
        return range(len(text))


def test_who_asks_in_english_about_things_with_strange_names_is_not_told_to_ask_in_another_language(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "letters", "test_judge:OfLetters")
    calibration = replace(UNLIKELY, other_scripts=0.0)
    given = tools(library(embed__provider="letters"), calibration)
    asked = "kubernetes qqqq wwww zzzz"
    assert FOREIGN in (search(Request(asked), given).note or "")
    assert FOREIGN in (search(Request(f"wie ist {asked}"), given).note or "")
    assert FOREIGN not in (search(Request(f"how does this {asked}"), given).note or "")


def test_what_was_fitted_is_not_used_where_meaning_came_too_late():
    kb = library()
    late = Late()
    mute = tools(kb, UNLIKELY)
    mute = replace(mute, strategies=[*mute.strategies[:2], late])
    try:
        answer = search(Request("login token", deadline_ms=300), mute)
    finally:
        late.go_on.set()
    by_words = search(Request("login token", mode="fts5"), replace(mute, calibration=None))
    assert [hit.score for hit in answer.hits] == [hit.score for hit in by_words.hits]
    assert (answer.confidence, answer.calibrated, answer.answerable) == (by_words.confidence, False, None)


def test_a_passage_is_also_judged_without_the_better_passages_of_its_document():
    nearness = Logistic(("document_cosine",), (9.0,), -4.0, (0.0,), (1.0,))
    kb = library({"Limits": f"{'The zanquota of every tenant is thirty. ' * 80}\n\n{PADDED}"})
    answer = search(Request("zanquota of a tenant"), tools(kb, replace(fitted(answerable=0.4), hit=nearness)))
    best, *others = (hit for hit in answer.hits if hit.document.title == "Limits" and "zan" in hit.chunk.text)
    assert best.passage_score == best.score
    assert others[-1].score == best.score > 2 * others[-1].passage_score > 0


def test_words_alone_are_judged_by_the_passage():
    kb = library({"Limits": f"{'The zanquota of every tenant is thirty. ' * 80}\n\n{PADDED}"})
    hits = search(Request("zanquota of a tenant", mode="fts5"), tools(kb)).hits
    assert len(hits) > 1
    assert all(hit.passage_score == hit.score for hit in hits)


def test_what_is_found_below_many_excluded_passages_is_shown():
    kb = library({f"Banana {n}": f"Apple pie number {n} with cinnamon and banana." for n in range(60)})
    kb.note(Note("Apple crumble, with cinnamon and oats.", title="Crumble"))
    for mode in ("auto", "hybrid", "fts5"):
        answer = search(Request("apple pie with cinnamon -banana", mode=mode), tools(kb))
        assert titles(answer) == ["Crumble"], mode


def test_what_is_excluded_is_not_what_the_query_means():
    kb = library()
    vectors: list[str] = []

    class Noting(HashingEmbedder):
        def embed_query(self, text: str) -> bytes:
            vectors.append(text)
            return super().embed_query(text)

    semantic = Semantic(kb.store.vectors, Noting({}, kb.settings.paths))
    for asked in ("backups kept -kubernetes", 'backups NOT "one after the other" kept', "backups kept"):
        query = understood(kb, asked)
        assert semantic.candidates(query)
    assert vectors == ["backups kept"]  # once: the second and third time it is known


# Enough of them for a word in few to be rare.
INCIDENTS = {
    **{f"INC-{n}": f"The gateway failed with E_GATEWAY_{n}: a full disk." for n in (4711, 4713, 4720)},
    **{f"INC-{n}": f"Number {n} of the slow answers that the night shift saw." for n in range(100, 160)},
}
OTHERS = files("concord").joinpath("data", "offtopic.txt").read_text(encoding="utf-8").splitlines()[:40]
SURE = replace(fitted(answerable=0.4), hit=replace(NEVER, intercept=3.0))


@pytest.mark.parametrize("query", ["MP3/Ogg/FLAC disk", "object->complex128 disk", "Video4linux disk"])
def test_what_has_a_digit_in_it_is_not_always_a_code_that_something_must_hold(query: str):
    assert search(Request(query), tools(library(INCIDENTS), SURE)).note is None


@pytest.mark.parametrize("query", ["INC-4712", "E_GATEWAY_4712", "what about INC-4712"])
def test_a_code_that_nothing_holds_is_not_answered_by_one_that_is_like_it(query: str):
    answer = search(Request(query), tools(library(INCIDENTS), SURE))
    assert answer.hits
    assert str(answer.note).startswith("nothing holds ")
    assert answer.answerable is False
    assert all(hit.score < 0.4 for hit in answer.hits)


def test_a_code_is_not_held_because_its_parts_are_or_because_others_hold_it():
    kb = library({**INCIDENTS, "Ports": "PulseAudio listens on port 4712."})
    answer = search(Request("what about INC-4712"), tools(kb, SURE))
    assert (answer.answerable, answer.note) == (False, "nothing holds INC-4712")
    kb.note(Note("INC-4712 was a full disk as well.", tags=("elsewhere",)))
    assert search(Request("what about INC-4712"), tools(kb, SURE)).answerable is True
    answer = search(Request("what about INC-4712", tags=("ops",)), tools(kb, SURE))
    assert (answer.answerable, answer.note) == (False, "nothing holds INC-4712")


# A probability that grows with the best cosine, whoever has it.
GROWING = Logistic(("top_cosine",), (20.0,), -8.0, (0.0,), (1.0,))
BY_COSINE = replace(fitted(answerable=0.5), hit=NEVER, answer=GROWING)
LEAVE = "Everybody has sixteen weeks of paid parental leave."


def test_what_is_left_out_of_an_answer_speaks_for_nothing(tmp_path: Path):
    folder = tmp_path / "docs"
    for n in range(12):
        write(folder / f"{n}.md", f"Bread number {n} wants flour, water, salt and patience.\n")
    write(folder / "leave.md", LEAVE + "\n")
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(folder)
        assert search(Request(LEAVE), tools(kb, BY_COSINE)).answerable is True
        answer = search(Request(LEAVE + " -everybody"), tools(kb, BY_COSINE))
        assert (answer.answerable, answer.note) == (
            False,
            "texts with everybody are left out; put it in quotes to look for it",
        )
        (folder / "leave.md").unlink()
        answer = search(Request(LEAVE), tools(kb, BY_COSINE))
        assert answer.hits
        assert (answer.answerable, answer.omitted["deleted"]) == (False, 1)


BUGS = {
    "Bugs": "BUG-88 is open, E1042 is a timeout, and the standup of 2024-03-04 was short.",
    "Bills": "Invoice 2025-000123 was paid in 2024-25, and 2025-000124 was not.",
    **{f"Number {n}": f"The {n}. of the slow answers that the night shift saw." for n in range(40)},
}


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("BUG-89", "BUG-89"),
        ("2025-000777", "2025-000777"),
        ("E1043", "E1043"),
        ("standup 2024-03-05?", "2024-03-05"),
        ('"the night shift heard"', None),
    ],
)
def test_what_is_asked_for_as_it_is_written_is_not_answered_by_something_like_it(
    query: str, missing: str | None
):
    answer = search(Request(query), tools(library(BUGS), SURE))
    assert answer.hits
    assert (answer.answerable, answer.note) == (False, f"nothing holds {missing or query.strip(chr(34))}")


@pytest.mark.parametrize(
    "query",
    [
        "BUG-88",
        "E1042",
        "E104 timeout",
        "invoice 2025-000123",
        "invoice 555-01234",
        "paid 2023-24",
        "standup 2024-03-04",
        '"the night shift saw"',
        "COVID-19 shift",
    ],
)
def test_what_something_holds_or_nothing_is_like_costs_no_confidence(query: str):
    assert search(Request(query), tools(library(BUGS), SURE)).answerable is True


SETTINGS = {
    "Alerts": "REDIS_MEM_HIGH: memory is short. Call get_user_name, or URL.copy_with, or fetchUser.",
    "Faults": "A key that nobody set: Config %r is missing, and has no default.",
    "People": "Write to ann@shop.example, or to bob@shop.example at night.",
    **{f"Number {n}": f"The {n}. of the slow answers that the night shift saw." for n in range(40)},
}


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("REDIS_CPU_HIGH", "REDIS_CPU_HIGH"),
        ("set_user_name()", "set_user_name()"),
        ("URL.copy_without", "URL.copy_without"),
        ("fetchGroup", "fetchGroup"),
        ("night __slots__ shift", "__slots__"),
        ("eve@shop.example", "eve@shop.example"),
    ],
)
def test_an_identifier_that_nothing_holds_is_not_answered_by_one_that_is_like_it(query: str, missing: str):
    answer = search(Request(query), tools(library(SETTINGS), SURE))
    assert answer.hits
    assert (answer.answerable, answer.note) == (False, f"nothing holds {missing}")


@pytest.mark.parametrize(
    "query",
    [
        "REDIS_MEM_HIGH",
        "getUserName",
        "get_user_name()",
        "Foo.get_user_name",
        "fetchUser",
        "ann@shop.example",
        "night PyTorch shift",
    ],
)
def test_an_identifier_that_something_holds_in_any_spelling_costs_no_confidence(query: str):
    answer = search(Request(query), tools(library(SETTINGS), SURE))
    assert (answer.answerable, answer.note) == (True, None)


def test_a_message_is_not_misquoted_because_its_values_are_others():
    pasted = "KeyError: \"Config 'DATABASE_URL' is missing, and has no default.\""
    answer = search(Request(pasted), tools(library(SETTINGS), SURE))
    assert (titles(answer)[0], answer.answerable, answer.note) == ("Faults", True, None)


RELEASES = {
    **{f"Release notes {v}": f"What changed in {v}: the parser of dates is new." for v in ("3.1", "3.2")},
    "Install": "It needs Python 3.11, takes 0.5 seconds and listens on port 80.",
    "News": "Version 3.0 came first. Not 1.3.5; take 3, 5 or 13.5 of them.",
    **{f"Number {n}": f"The {n}. of the slow answers that the night shift saw." for n in range(40)},
}


@pytest.mark.parametrize(
    "query", ["release notes 3.3", "what changed in v3.4?", "Python 3.12", "notes 3.1.7", "news of 3.5"]
)
def test_a_version_that_nothing_holds_is_not_answered_by_another(query: str):
    answer = search(Request(query), tools(library(RELEASES), replace(SURE, cuts=fitted(answerable=0.6).cuts)))
    version = query.rstrip("?").split()[-1]
    assert (answer.answerable, answer.note) == (False, f"nothing holds {version}")


@pytest.mark.parametrize(
    "query", ["release notes 3.2", "notes v3.1", "Python 3.11", "port 0.7", "slow 1.5 3.9"]
)
def test_a_version_that_something_holds_and_any_other_number_cost_no_confidence(query: str):
    answer = search(Request(query), tools(library(RELEASES), SURE))
    assert (answer.answerable, answer.note) == (True, None)


PRODUCTS = {
    "Anchor": "Changes of anchor: release 3.1 has a new chain. Release 3.2 has a new shank.",
    "Winch": "winch 4.1 turns faster. winch 4.2 turns slower. It needs rope-6.3 and calls 9.1.1.4.",
    "News of Buoy": "Release 2.1: a new lamp. Release 2.2: a new bell.",
    "Rules": "Section 7.1 is about knots.\n\n# 7.2 Knives\nKnives are new.",
    "Log": "What changed in 5.1: less rum. What changed in 5.2: no rum.",
    **{f"Number {n}": f"The {n}. of the slow answers that the night shift saw." for n in range(40)},
}


@pytest.mark.parametrize(
    "query",
    [
        "anchor 4.2 changes",
        "winch 3.2 features",
        "bugfixes of anchor 4.1",
        "security fixes in buoy 4.2",
        "what changed in winch 3.2",
        "buoy 5.1 release notes",
        "changes of winch 6.3",  # which is of something else that is named with it
        "changes of winch 9.1",  # which is the beginning of an address
    ],
)
def test_a_release_of_one_thing_is_not_held_because_another_has_the_number(query: str):
    answer = search(Request(query), tools(library(PRODUCTS), replace(SURE, cuts=fitted(answerable=0.6).cuts)))
    version = next(word for word in query.split() if "." in word)
    assert (answer.answerable, answer.note) == (False, f"nothing holds {version}")


@pytest.mark.parametrize(
    "query",
    [
        "anchor 3.2 changes",  # beside its name
        "winch 4.2 fixes",
        "what changed in winch 4.1",
        "buoy 2.2 release notes",  # under a title with its name
        "section 7.2 changes",  # whose heading has the number alone
        "what changed in grog 5.2",  # whose log does not say whose it is
    ],
)
def test_a_release_that_is_there_costs_no_confidence(query: str):
    answer = search(Request(query), tools(library(PRODUCTS), SURE))
    assert answer.answerable
    assert "nothing holds" not in (answer.note or "")


SERIES = {
    "Winch 15 notes": "What is new in Winch 15: it turns faster. Winch 14 was slow.",
    "Changes": "Winch version 12 had a bell. Winch13 had none. There are 19 winch houses and 21 ropes.",
    "Harbour": "Since Harbour 4 there is a pier; see page 7 of Harbour 3 for the ropes that are new.",
    "Ports": "The new lamp listens on port 9090, the old one on port 9091. HTTP 500 is an error.",
    "RULE IX": "It is said in RULE 10 as well: new knots are tied twice.",
    "Rules": "Chapter 3 is about knots, chapter 4 about new knives. The top 5 of them are new.",
    "Crew": "Upgrade to 3 replicas: cook 1, cook 2 and the mate. Release them at level 4, stage 2.",
    "Anchors": "# 8 (2026-01-02)\n\nAnchor 7 was heavier.",
    "List": "We support Hawser 15, 16 and 17, and Hawser 20 to 22.",
    "Between": "Bollard 18 was short; Bollard.js 20 is not. Bollard Linux SE/2 24.04 is long.",
    "Table": "Changes of Capstan 6:\n\n| release | is |\n|---|---|\n| 9 | new |\n\n- 11: newer",
    "Quays": "At quay 4 and quays 5-6 the new lamps burn. Sprint 3, and no. 4 of the sprints.",
    "March": "The notes of March 11, and of 2026-03-12.",
    **{f"Number {n}": f"The {n}. of the slow answers that the night shift saw." for n in range(40)},
}


@pytest.mark.parametrize(
    ("query", "one"),
    [
        ("Chapter 7", "Chapter 7"),
        ("chapter 99 about new knives", "chapter 99"),
        ("RULE 12", "RULE 12"),
    ],
)
def test_a_part_of_a_series_that_nothing_holds_is_not_answered_by_another(query: str, one: str):
    answer = search(Request(query), tools(library(SERIES), replace(SURE, cuts=fitted(answerable=0.7).cuts)))
    assert (answer.answerable, answer.note) == (False, f"nothing holds {one}")


@pytest.mark.parametrize(
    ("query", "release"),
    [
        ("Winch 17", "Winch 17"),
        ("Winch 16 release notes", "Winch 16"),
        ("upgrade to Winch version 17", "Winch version 17"),
        ("Harbour 9 features", "Harbour 9"),
        ("what is new in Hawser 18", "Hawser 18"),
    ],
)
def test_a_release_of_one_number_that_nothing_holds_is_not_answered_by_another(query: str, release: str):
    answer = search(Request(query), tools(library(SERIES), replace(SURE, cuts=fitted(answerable=0.6).cuts)))
    assert (answer.answerable, answer.note) == (False, f"nothing holds {release}")


@pytest.mark.parametrize(
    "query",
    [
        "Winch 15",
        "what is new in Winch 13",
        "changes of Winch 12",
        "Anchor 8 changes",  # whose heading has the number alone
        "Anchors 7 notes",
        "what is new in Hawser 17",
        "what is new in Hawser 22",
        "what is new in Bollard 20",
        "Bollard 24 changes",
        "what is new in Capstan 9",
        "Capstan 11",
        "Quay 6 news",
        "Sprint 4 notes",
        "March 12 notes",
        "new lamp on port 8080",
        "HTTP 404",
        "new HTTP 404 error",
        "Chapter 4",
        "new in chapter 8",  # whose heading has the number alone
        "RULE 9",
        "top 10 new knives",
        "upgrade to cook 3 replicas",
        "new cook 7",  # not written as a name
        "level 7 releases",
        "Winch 17 ropes",  # ropes are counted
        "new answers of the slow shift 99",
    ],
)
def test_numbers_that_are_there_and_those_of_other_things_cost_no_confidence(query: str):
    answer = search(Request(query), tools(library(SERIES), SURE))
    assert answer.answerable
    assert "nothing holds" not in (answer.note or "")


@pytest.mark.model
@pytest.mark.parametrize("notes", [1, 3])
def test_the_only_text_of_a_store_is_judged_as_one_of_many_would_be(notes: int):
    texts = {
        "Login": "A token is issued after login and expires in an hour.",
        "Bread": "Bread wants flour, water, salt and patience.",
        "Tide": "The harbour falls dry at low tide.",
    }
    few = dict([*texts.items()][:notes])
    with library(few, embed__provider="bundled") as kb:
        right = kb.search("when does the token expire")
        wrong = kb.search("who won the chess tournament")
    assert (right.hits[0].document.title, right.answerable) == ("Login", True)
    assert right.hits[0].score > 0.6
    assert (wrong.answerable, max(hit.score for hit in wrong.hits) < 0.1) == (False, True)


@pytest.mark.model
def test_other_versions_of_a_page_make_it_no_less_believable():
    page = "Version {}. Nightly backups are kept for 35 days; restorectl brings one back."
    with library({line: f"{line}." for line in OTHERS}, embed__provider="bundled") as kb:
        kb.note(Note(page.format(1), title="Backup"))
        alone = kb.search("how long are backups kept")
        for version in range(2, 6):
            kb.note(Note(page.format(version), title="Backup"))
        among = kb.search("how long are backups kept")
    assert among.hits[0].score == pytest.approx(alone.hits[0].score, abs=0.15)
    assert (alone.answerable, among.answerable) == (True, True)


@pytest.mark.model
def test_a_narrow_filter_makes_the_same_passage_no_less_believable_and_a_wrong_one_no_more():
    with library({line: f"{line}." for line in OTHERS}, embed__provider="bundled") as kb:
        kb.note(Note("Late blight has reached the tomatoes; cut off brown leaves.", tags=("garden",)))
        kb.note(Note("The pears want pruning in February.", tags=("garden",)))
        everywhere, there = kb.search("blight"), kb.search("blight", tags=("garden",))
        elsewhere = kb.search(OTHERS[3], tags=("garden",))
    assert there.hits[0].document.id == everywhere.hits[0].document.id
    assert there.hits[0].score == pytest.approx(everywhere.hits[0].score, abs=0.1)
    assert (everywhere.answerable, there.answerable, elsewhere.answerable) == (True, True, False)


@pytest.mark.parametrize("question", ["Where is my data stored?", "what is the gate code"])
def test_words_vouch_for_a_question_that_stands_in_a_text_as_it_was_asked(question: str):
    notes = {
        "Answers": "What is the gate code? It is 4711.\n\nWhere is my data stored? In Dublin.",
        "Else": "The data of the gate is stored in code, and where it is, is not for me to say.",
    }
    doubtful = replace(UNLIKELY, answer=replace(NEVER, features=("top_cosine",)))
    with library(notes) as kb:
        answer = search(Request(question), tools(kb, doubtful))
    assert (titles(answer)[0], answer.answerable) == ("Answers", True)


@pytest.mark.parametrize("query", ["INC-4711", "E_GATEWAY_4711", "what about INC-4711", "full disk"])
def test_a_code_that_something_holds_costs_no_confidence(query: str):
    answer = search(Request(query), tools(library(INCIDENTS), SURE))
    assert (answer.answerable, answer.note) == (True, None)
    assert answer.hits[0].score > 0.9


def test_an_unknown_code_among_much_else_is_only_named():
    asked = "why did the gateway fail with a full disk before INC-4712"
    answer = search(Request(asked), tools(library(INCIDENTS), SURE))
    assert (answer.answerable, answer.note) == (True, "nothing holds INC-4712")


def test_what_nothing_holds_is_the_same_however_many_results_are_asked_for():
    kb = library({**RELEASES, "Nightly": "The nightly build has a parser of dates, a nightly parser."})
    asked = "nightly build parser dates notes 3.3"
    answers = [search(Request(asked, top=top), tools(kb, SURE)) for top in (1, 2, 10, 50)]
    assert {titles(answer)[0] for answer in answers} == {"Nightly"}
    assert {answer.note for answer in answers} == {"nothing holds 3.3"}
    assert len({answer.answerable for answer in answers}) == 1


@pytest.mark.parametrize("more", ["zorbel", "zorbel quxly", "zorbel quxly brimf"])
def test_a_word_that_nothing_holds_either_does_not_make_a_code_count_for_less(more: str):
    kb = library(INCIDENTS)
    alone, among = (
        search(Request(f"gateway disk INC-4712 {rest}"), tools(kb, SURE)).confidence_score or 0.0
        for rest in ("", more)
    )
    assert among <= alone < 0.6


def test_one_known_word_more_takes_an_unknown_code_from_no_cliff():
    """Each word that is added leaves the code with less of the query, and confidence rises by steps."""
    kb = library(INCIDENTS)
    words = ("gateway", "full", "disk", "failed", "slow", "answers", "night", "shift", "saw", "number")
    asked = [" ".join(("INC-4712", *words[:n])) for n in range(len(words) + 1)]
    found = [search(Request(one), tools(kb, SURE)).confidence_score or 0.0 for one in asked]
    assert max(after - before for before, after in pairwise(found)) < 0.35
    assert found[0] < 0.1
    assert found[-1] > 0.7


def test_the_arithmetic_of_a_score_names_the_code_that_nothing_holds():
    kb = library(INCIDENTS)
    told = search(Request("INC-4712", explain=True), tools(kb, SURE)).hits[0].explanation
    assert told is not None
    assert told["relevance"]["held"] < 0.5
    assert any("for a code that nothing holds" in line for line in arithmetic(told))


@pytest.mark.parametrize("query", ["the", "how what why", "is it the"])
def test_a_query_of_stop_words_asks_for_nothing_that_could_be_answered(query: str):
    assert search(Request(query), tools(library(), SURE)).answerable is False


@pytest.mark.parametrize("query", ['"after the other"', "the token"])
def test_a_quotation_of_stop_words_or_one_word_more_asks_for_something(query: str):
    assert search(Request(query), tools(library(), SURE)).answerable is True


def test_the_first_hit_of_an_answer_that_is_there_has_its_share_of_that_chance_and_the_label_for_it():
    answer = search(Request("login token"), tools(library(), HUMBLE))
    first, *others = answer.hits
    assert (answer.answerable, answer.confidence_score) == (True, 0.5)
    assert first.score == pytest.approx(0.125)
    assert all(hit.score < 0.08 for hit in others)
    assert first.confidence == answer.confidence == "medium"
    assert {hit.confidence for hit in others} == {"low"}


def test_hits_of_an_answer_that_is_not_there_keep_their_own_chances():
    doubted = replace(HUMBLE, cuts=replace(HUMBLE.cuts, answerable=0.6))
    answer = search(Request("login token"), tools(library(), doubted))
    assert answer.answerable is False
    assert all(hit.score < 0.08 and hit.confidence == "low" for hit in answer.hits)


CHINESE = {
    "备份": "备份每天夜里写入,保存一个月。恢复备份需要管理员的许可。",
    "登录": "登录之后系统会发出一个令牌,令牌一小时后过期。",
    "部署": "每周一把新版本部署到生产环境,先通知值班的同事。",
}


def test_where_the_model_does_not_read_a_script_words_must_bear_out_what_it_calls_near():
    blind = replace(SURE, other_scripts=0.2)
    kb = library(CHINESE)
    held = search(Request("备份每天夜里写入"), tools(kb, blind))
    strange = search(Request("世界上最高的山峰是哪一座"), tools(kb, blind))
    assert (held.answerable, titles(held)[0]) == (True, "备份")
    assert strange.answerable is False
    assert all(hit.score < 0.5 for hit in strange.hits)
    assert search(Request("世界上最高的山峰是哪一座"), tools(kb, SURE)).answerable is True


ENGLISH_ONLY = replace(fitted(answerable=0.4), other_scripts=0.2)  # every answer has a chance of one half


@pytest.mark.model
@pytest.mark.parametrize(
    ("question", "is_read"),
    [
        ("how long does the login token live", True),
        ("Wie lange gilt das Zugangstoken nach der Anmeldung?", False),
        ("¿Cuánto tiempo dura la contraseña después de iniciar sesión?", False),
        ("Combien de temps le jeton reste-t-il valable ?", False),
        ("login tokens", True),  # so few may be names: nothing is told by them
    ],
)
def test_in_a_language_that_the_model_does_not_read_an_answer_is_to_be_surer(question: str, is_read: bool):
    with library(embed__provider="bundled") as kb:
        answer = search(Request(question), tools(kb, ENGLISH_ONLY))
        by_a_polyglot = search(Request(question), tools(kb, replace(ENGLISH_ONLY, other_scripts=1.0)))
    assert answer.hits
    assert (answer.answerable, by_a_polyglot.answerable) == (is_read, True)
    assert answer.confidence_score == by_a_polyglot.confidence_score


def test_words_vouch_for_a_passage_that_has_the_whole_query_in_its_order():
    notes = {"Whole": "written long ago by Barry Warsaw", "Parts": "Warsaw was seen by our friend Barry"}
    doubtful = replace(UNLIKELY, answer=replace(NEVER, features=("top_cosine",)))
    with library(notes) as kb:
        answer = search(Request("barry warsaw"), tools(kb, doubtful))
        apart = search(Request("friend warsaw"), tools(kb, doubtful))
    scores = dict(zip(titles(answer), (hit.score for hit in answer.hits), strict=True))
    assert (answer.answerable, apart.answerable) == (True, False)
    assert scores["Whole"] > 0.5 > 0.1 > scores["Parts"]


def test_words_vouch_less_for_each_of_many_passages_however_few_are_asked_for():
    notes = {f"Number {n}": f"Part {n} was written by Barry Warsaw in {1990 + n}" for n in range(4)}
    with library(notes) as kb:
        all_of_them = search(Request("barry warsaw"), tools(kb, UNLIKELY))
        one = search(Request("barry warsaw", top=1), tools(kb, UNLIKELY))
    assert {round(hit.score, 2) for hit in (*all_of_them.hits, *one.hits)} == {0.25}
