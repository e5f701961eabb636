"""Words that nothing holds are searched by known ones: umlauts, compounds, glued tokens, corrections."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.store.sqlite.store import SQLiteStore
from concord.text.similar import (
    LONGEST,
    distance,
    forms_of,
    is_mistyped,
    likeliest,
    similar,
    splits,
    typed,
    variants,
)
from concord.text.tokens import stem
from contract.stored import put
from support.small_library import library, titles

TYPOS = """
    kuberntes kubernetes, authentification authentication, recieve receive, seperate separate,
    enviroment environment, independant independent, calender calendar, definately definitely,
    conection connection, zebrra zebra, srver server, databse database, datebase database,
    retreival retrieval, implmentation implementation, langauge language, documnet document,
    serach search, funtion function,
    paramter parameter, agrument argument, retrun return, strign string, lenght length, exeption exception,
    occured occurred, succesful successful, neccessary necessary, accomodate accommodate, begining beginning,
    beleive believe, buisness business, catagory category, comming coming, commitee committee,
    concious conscious, existance existence, foriegn foreign, goverment government, gaurantee guarantee,
    happend happened, immediatly immediately, knowlege knowledge, libary library, maintainance maintenance,
    noticable noticeable, ocasion occasion, persistant persistent, posession possession, prefered preferred,
    publically publicly, recomend recommend, refered referred, rember remember, responsability responsibility,
    shedule schedule, similiar similar, sucess success, tommorow tomorrow, wich which
"""
OTHER_WORDS = """
    bread read, bake base, bake make, bead read, poll pool, form forum, hook took, stack tack, house mouse,
    cat cut, ten then, milk mild, test text, port post, lead load, error404 error403, which with
"""
WORDS = st.text(alphabet="abcdeé", max_size=7)


def pairs(listed: str) -> list[tuple[str, str]]:
    return [(pair.split()[0], pair.split()[1]) for pair in listed.split(",")]


def test_what_people_mistype_is_put_right(tmp_path: Path):
    store = SQLiteStore.open(f"sqlite://{tmp_path}", "default", {})
    put(store, "docs/a.md", *(f"the {meant} is here" for _, meant in pairs(TYPOS)))
    put(store, "docs/b.md", *(f"filler{number:03} text" for number in range(300)))
    lexical, corrected = store.words, 0
    for mistyped, meant in pairs(TYPOS):
        form = forms_of(
            [mistyped], lambda w: lexical.frequencies(w)[1], lexical.similar_words, lambda _: False
        )
        corrected += [stem(word) for word in form.get(mistyped, ())] == [stem(meant)]
    store.close()
    assert len(pairs(TYPOS)) == 60
    assert corrected >= 55


@pytest.mark.parametrize(("word", "near"), pairs(OTHER_WORDS))
def test_a_word_that_happens_to_be_near_is_another(word: str, near: str):
    assert not is_mistyped(word, near)


def forms(word: str, *known: str, is_word: bool = False) -> tuple[str, ...]:
    def frequencies(words: object) -> dict[str, int]:
        return dict.fromkeys(known, 1)

    similar = [(other, 1) for other in known]
    return forms_of([word], frequencies, lambda word, most: similar, lambda _: is_word).get(word, ())


def test_a_word_is_given_the_form_that_is_known():
    assert forms("Mueller", "muller", "miller") == ("muller",)
    assert forms("Müller", "mueller") == ("mueller",)
    assert forms("FY2022", "fy", "2022") == ("fy", "2022")
    assert forms("FY2022", "2022") == ("2022",)
    assert forms("FY2022", "fy") == ()
    assert forms("timezone", "time", "zone") == ("time", "zone")
    assert forms("tokenn", "token") == ("token",)
    assert forms("bread", "break") == ("break",)
    assert forms("bread", "break", is_word=True) == ()
    assert forms("検索エンジン", "検索") == ()
    assert forms("email", "e-mail") == ("e-mail",)
    assert forms("setup", "set-up", "e-mail") == ("set-up",)
    assert forms("mail", "email") == ()


def test_parts_of_a_word_are_words_and_not_stems_of_other_words():
    known = {"reli": ["relied"], "able": ["able"], "time": ["time"], "zones": ["zone"]}

    def similar(word: str, most: int) -> list[tuple[str, int]]:
        return [(other, 1) for other in known.get(word, [])]

    words = forms_of(
        ["reliable", "timezones"], lambda words: dict.fromkeys(known, 1), similar, lambda _: False
    )
    assert words == {"timezones": ("time", "zones")}


_KNOWN = "kundigung frist kundigungs punkt punkte stand check button but ton iing test runs form check2"
KNOWN = {*_KNOWN.split(), "c" * (LONGEST - 5), "c" * (LONGEST - 4)}


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("checkbutton", ("check", "button")),
        ("Punktestand", ("punkte", "stand")),
        ("formbut", ()),
        ("checkiing", ()),  # mistyped: its end has the stem of i
        ("check2button", ()),
        ("c" * (LONGEST - 4) + "check", ()),
    ],
)
def test_a_word_is_made_of_two_that_are_known(word: str, parts: tuple[str, ...]):
    assert likeliest(splits(word), KNOWN) == parts
    assert likeliest(splits("Kündigungsfrist"), {"kundigung", "frist"}) == ("kundigung", "frist")


NOTES = {
    "Vertrag": "Die Kündigung braucht Textform, die Frist sind drei Monate.",
    "Lager": "Der Schlüssel vom Lager liegt beim Empfang im Vertrag.",
    "Frost": "Im Lager herrscht Frost.",
}


@pytest.mark.parametrize("store", ["memory://", "sqlite"])
def test_a_search_for_a_compound_that_nothing_holds_finds_its_parts(store: str, tmp_path: Path):
    kb = library(NOTES, store__url=store if ":" in store else f"sqlite:///{tmp_path}")
    assert titles(kb.search("Kündigungsfrist im Vertrag", mode="fts5"))[0] == "Vertrag"
    assert titles(kb.search("Lagerschlüssel beim Empfang -Frost", mode="fts5")) == ["Lager"]
    assert titles(kb.search('"Kündigungsfrist" Empfang', mode="fts5")) == ["Lager"]  # quoted: as it is
    whole = library({**NOTES, "Gesetz": "Die Kündigungsfrist steht hier."})
    assert titles(whole.search("Kündigungsfrist", mode="fts5")) == ["Gesetz"]


@settings(max_examples=60)
@given(WORDS, WORDS)
def test_distance_is_symmetric_and_zero_only_for_equal_words(one: str, other: str):
    apart = distance(one, other, 20)
    assert apart == distance(other, one, 20)
    assert (apart == 0) == (one == other)
    assert apart == 0 or distance(one, other, (apart or 1) - 1) is None
    assert {distance(one, variant, 1) for variant in variants(one)} <= {0, 1}


def test_a_stem_is_near_by_the_words_that_it_stands_for():
    asked, capital = typed("implmentaton"), typed("capital")
    assert asked is not None
    assert capital is not None
    words = {stem(word): [word] for word in ("implementation", "implantation", "implications")}
    vocabulary = [(token, 1) for token in words]
    assert similar(asked, vocabulary, lambda token: words[token], 5) == [("implementation", 1)]
    assert similar(asked, vocabulary, lambda token: [], 5) == []
    assert similar(capital, [("capath", 3)], lambda token: ["capath"], 5) == []  # near as stems alone
    spelt = ["Implemented", "implementation", "unrelated"]
    assert similar(asked, [(stem("implementation"), 3)], lambda token: spelt, 5) == [("implementation", 3)]
