"""What is a slip of the fingers, and what another word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.text.slips import SHORTEST, is_slip

SLIPS = """
    kuberntes kubernetes, authentification authentication, recieve receive, seperate separate,
    enviroment environment, independant independent, calender calendar, definately definitely,
    conection connection, pooll pool, zebrra zebra, tokn token, tokem token, lgoin login, srver server,
    databse database, datebase database, implmentation implementation, langauge language,
    recieve received, mesage messages, Konfiguratoin Konfiguration, bibliotheque bibliothèque, сервре сервер
"""
OTHER_WORDS = """
    bread read, bake base, bake make, bake brake, react reach, france frac, bead read, poll pool, form forum,
    form from, hook took, computer commuter, stack stock, cache catch, house mouse, place plane, plan plain,
    cat cut, ten then, bread broad, milk mild, test text, port post, count court, lead load
"""


def listed(pairs: str) -> list[tuple[str, ...]]:
    return [tuple(pair.split()) for pair in pairs.split(",")]


@pytest.mark.parametrize(("typed", "meant"), listed(SLIPS))
def test_a_slip_is_put_right(typed: str, meant: str):
    assert is_slip(typed, meant)


@pytest.mark.parametrize(("typed", "near"), listed(OTHER_WORDS))
def test_a_word_that_happens_to_be_near_is_another(typed: str, near: str):
    assert not is_slip(typed, near)


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_two_texts_are_refused_and_the_first_letter_is_right(one: str, other: str):
    assert not is_slip(one, other) or (len(one) >= SHORTEST and other)
