"""A polite frame around a question is no part of what is sought."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord import KnowledgeBase, Note
from concord.ranking.politeness import without_politeness

FRAMES = [
    "please tell me",
    "Tell me about",
    "can you show me",
    "Could you please tell me if",
    "Hi, can you tell me",
    "give me",
    "explain to me",
    "Can you explain",
    "Please explain",
    "could you please explain to me",
    "I would like to know",
    "I’d like to know whether",
    "we need to know",
    "I was wondering if",
    "do you know",
    "Does anyone know",
    "Kannst du mir bitte sagen,",
    "Können Sie mir sagen, ob",
    "bitte zeigen Sie mir",
    "sag mir",
    "Erklär mir bitte,",
    "Können Sie mir erklären,",
    "Ich möchte gerne wissen,",
    "Weißt du,",
    "Wissen Sie",
    "Pouvez-vous me dire",
    "S'il vous plaît, dites-moi",
    "Bonjour, je voudrais savoir si",
    "J’aimerais savoir",
    "Montrez-nous",
    "Pouvez-vous m'expliquer",
    "Expliquez-moi",
    "Est-ce que vous savez",
    "¿Puedes decirme",
    "Por favor, muéstrame",
    "¿Me podría decir",
    "Quisiera saber",
    "¿Puedes explicarme",
    "¿Sabes",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_at_the_beginning_is_left_out(frame: str):
    assert without_politeness(f"{frame} Büro in Kraków?") == "Büro in Kraków?"


THANKS = [
    ", thanks",
    "? Thanks!",
    "? Thank you.",
    ". Many thanks in advance",
    " - thank you so much",
    "?\nThx",
    ", please",
    "? Danke!",
    ", vielen Dank im Voraus.",
    "? Danke schön",
    ", merci beaucoup",
    ", merci d’avance",
    "? ¡Gracias",
    ", por favor.",
]


@pytest.mark.parametrize("thanks", THANKS)
def test_thanks_at_the_end_are_left_out(thanks: str):
    assert without_politeness(f"Büro in Kraków{thanks}").rstrip("?") == "Büro in Kraków"


def test_a_question_keeps_its_mark_and_loses_both_ends_of_its_frame():
    assert without_politeness("Hi, can you tell me where Kraków is? Thanks a lot!") == "where Kraków is?"


@pytest.mark.parametrize(
    "query",
    [
        "how to say thank you",
        "letter of thanks",
        "explain analyze select",
        "EXPLAIN to table",
        "no, thanks",
        "danke",
        "thanks",
        "I will follow you",
        "songs: Thank You, Dido",
    ],
)
def test_thanks_that_are_asked_about_stay(query: str):
    assert without_politeness(query) == query


def test_what_only_asks_in_spanish_is_left_out_before_a_word_of_spanish():
    assert without_politeness("dime qué hora es") == "qué hora es"
    assert without_politeness("dime novels of 1880") == "dime novels of 1880"


@pytest.mark.parametrize(
    "query",
    [
        "git show HEAD",
        "show tables like x",
        "SHOW DATABASES",
        "tell application Finder to quit",
        "show menu bar on startup",
        "give up after three tries",
        "can you hear the difference",
        "do you know",
        "please tell me",
        "show me Kraków",
        "will you",
        '"please tell me where it is"',
        "“can you show me” song lyrics",
        "what does tell me about it mean",
        "please find the invoice attached",
        "I would like a refund",
        "me podrida agua",
        "can",
        "",
        "   ",
    ],
)
def test_other_words_and_what_hardly_anything_follows_stay(query: str):
    assert without_politeness(query) == query


@given(st.text(max_size=60))
def test_any_text_behind_a_frame_stays_whole_but_for_its_white_space(text: str):
    rest = without_politeness(f"can you show me {text} of it")
    assert rest.split() in (f"{text} of it".split(), f"can you show me {text} of it".split())


@pytest.mark.parametrize("frame", ["please tell me", "I would like to know", "Können Sie mir sagen,"])
def test_a_polite_question_has_the_answer_of_a_plain_one(frame: str):
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.note(Note("The Kraków office opened in March and has forty desks.", title="Offices"))
        kb.note(Note("Tell your manager; they like to know and show it to me, sagen Sie.", title="Leave"))
        plain, polite = (kb.search(text) for text in ("Kraków office desks", f"{frame} Kraków office desks"))
        assert [(hit.citation, hit.score) for hit in polite.hits] == [
            (h.citation, h.score) for h in plain.hits
        ]
        assert (polite.confidence_score, polite.answerable) == (plain.confidence_score, plain.answerable)
        assert polite.request.text.startswith(frame)


def test_a_question_with_thanks_has_the_answer_of_one_without():
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.note(Note("The Kraków office opened in March and has forty desks.", title="Offices"))
        kb.note(Note("Thanks to all, and thank you for your leave.", title="Leave"))
        plain, polite = (kb.search(f"Kraków office desks{end}") for end in ("", ", thank you"))
        assert [hit.score for hit in polite.hits] == [hit.score for hit in plain.hits]
        assert polite.confidence_score == plain.confidence_score
