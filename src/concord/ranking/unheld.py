"""Codes, dates, versions, options, identifiers, quotations and the like of a query that no text holds.

What is like it (INC-4713 for INC-4712, release 3.2 for 3.3, Q2 2024 for Q2 2023) is found and near, and is
not it. Of other words that no text has only a note is made (`answering/remarks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from concord.ranking import rarity
from concord.ranking.identifiers import SNAKE, shape
from concord.ranking.options import long_option, names
from concord.text.contains import contains
from concord.text.dates import Day, days_of, named_forms
from concord.text.identifiers import is_version
from concord.text.pattern import pattern
from concord.text.quarters import Quarter, is_of, numerals, quarter_of
from concord.text.stopwords import is_stop_word
from concord.text.terms import (
    any_of,
    day_matches,
    loose_words,
    phrase_match,
    quarter_matches,
    tokenize,
    word_match,
)
from concord.types import AllOf, AnyOf, Match, Phrase, Query, Word

if TYPE_CHECKING:
    from concord.ranking.held_releases import Holders
    from concord.text.months import Month

# Shares of a query, by rarity: up to the first, what nothing holds is one word of many; from the second on it
# is what was asked for. Between them a word more or less in the query must not decide.
LITTLE, MOSTLY = 0.2, 0.4

# Factors on the chances of an answer.
NOTHING_ASKED = 0.1  # where a query is stop words alone: no text is its answer
MISQUOTED = 0.3  # where nothing holds what was quoted; not measured
SLIP = 0.05  # at least, where nothing holds a code: it may be a slip for one that is like it; not measured

MESSAGE_WORDS = 5  # from which on what is quoted may be a message with values in it
MESSAGE_SHARE = 0.6  # of its words that a text has in their order, if it is one

# What names one thing of many by its number; not a product (e2fsprogs), a compound or a list (MP3/Ogg).
_ENDS_IN_NUMBER = pattern(r"[^/<>]*[0-9][A-Za-z]{0,2}")


def unheld(texts: Sequence[str], query: Query, holders: Holders) -> tuple[str, ...]:
    """Return the codes, names and quotations of a query that nothing holds; `texts` are those found.

    A code is such as INC-4712. What may be one (BUG-89, E1042), a date or a version counts where a text has
    another. A date, a quarter or a month is held in whatever form it is written.
    """
    quoted = [phrase for phrase in query.phrases if not any(_is_message(phrase, text) for text in texts)]
    sure = {name: part for name in query.entities if (part := _decisive(name, query))}
    asked = {**{one: one for one in (*quoted, *_with_others(query.meaning, texts))}, **sure}
    missing = [
        one
        for one, part in asked.items()
        if not _is_held(part, texts, holders) or _is_of_another(one, query.meaning, texts, holders)
    ]
    return (*missing, *_unheld_whole(query.meaning, texts, holders), *_unheld_option(query, texts, holders))


def _with_others(asked: str, texts: Sequence[str]) -> Iterable[str]:
    if not _has_number(asked):
        return ()
    from concord.ranking.asked_numbers import with_others  # late, as below: few queries have a number

    return with_others(asked, texts)


def _is_of_another(one: str, asked: str, texts: Sequence[str], holders: Holders) -> bool:
    if not is_version(one):
        return False
    from concord.ranking.held_releases import is_of_another

    return is_of_another(one, asked, texts, holders)


def _unheld_whole(asked: str, texts: Sequence[str], holders: Holders) -> Iterable[str]:
    if not _has_number(asked):
        return ()
    from concord.ranking.held_releases import unheld_whole

    return unheld_whole(asked, texts, holders)


def _unheld_option(query: Query, texts: Sequence[str], holders: Holders) -> Iterable[str]:
    """Yield the option that a query asks for, if nothing has it: to the index it is but its words."""
    option = long_option(query, texts) if "--" in query.text else None
    if option and not any(names(option, text) for text in (*texts, *holders(word_match(option)))):
        yield option


def _has_number(text: str) -> bool:
    return any(map(str.isdigit, text))


def _is_held(part: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether something holds what was asked for."""
    if days := days_of(part):
        return _is_dated(days, texts) or bool(holders(any_of([*map(_day_match, days)])))
    if quarter := quarter_of(part):
        return any(is_of(one, quarter) for one in (*texts, *holders(_quarter_match(quarter))))
    if month := _month(part):
        from concord.ranking.asked_months import holds_month

        return holds_month(month, texts, holders)
    if is_version(part):
        from concord.ranking.held_releases import holds_version

        return holds_version(part, texts, holders)
    return any(contains(text, part) for text in texts) or bool(holders(word_match(part)))


def _is_dated(days: Sequence[Day], texts: Sequence[str]) -> bool:
    """Whether a text has one of some days in its path, which has no words in the index."""
    written = [f"{day.year}-{day.month:02}-{day.day:02}" for day in days]
    return any(one in text for one in written for text in texts)


def _month(part: str) -> Month | None:
    if not _has_number(part):
        return None
    from concord.text.months import month_of

    return month_of(part)


def _day_match(day: Day) -> Match:
    """Return a match of a day in any form; of one that has a month's name the year may stand elsewhere."""
    named = AnyOf(tuple(map(Phrase, named_forms(day))))
    return AnyOf((*day_matches(day), AllOf((named, Word(str(day.year))))))


def _quarter_match(quarter: Quarter) -> Match:
    """Return a match of a quarter in any form, or of its number and its year: of a table's columns, say."""
    number = any_of([match for one in numerals(quarter) if (match := phrase_match(one))])
    apart = [AllOf((number, Word(str(quarter.year))))] if number else []
    return AnyOf((*quarter_matches(quarter), *apart))


def _decisive(name: str, query: Query) -> str | None:
    """Return what of a name must be held as it is written: a code, or the last part of an identifier.

    Of `URL.copy_with` a text that defines it has the second part alone. In a sentence words joined by
    capitals are brands as well, which other texts spell otherwise (PostgreSQL, Postgres).
    """
    if shape(name) != "sure" or name.startswith("-"):  # an option with a value of its own
        return None
    last = name.removesuffix("()").rpartition(".")[2].rpartition("::")[2]
    is_alone = query.text.strip() == name
    if SNAKE.fullmatch(last) or is_alone and last.isalpha() and shape(last) == "sure":
        return last
    return name if _ENDS_IN_NUMBER.fullmatch(name) else None


def _is_message(quoted: str, text: str) -> bool:
    """Whether a text has a message that was quoted with the values it had then: most words, in order."""
    words = tokenize(quoted)
    if len(words) < MESSAGE_WORDS:
        return False
    held, found, at = tokenize(text), 0, 0
    for word in words:
        if word in held[at:]:
            found, at = found + 1, held.index(word, at) + 1
    return found >= MESSAGE_SHARE * len(words)


def discount(query: Query, missing: Sequence[str], chunks: int) -> float:
    """Return what chances are worth: all, but of a query that asks for nothing, or for what nothing holds."""
    if query.words and not (query.phrases or query.entities) and all(map(is_stop_word, query.words)):
        return NOTHING_ASKED
    held = {word: holding for word, holding in query.frequencies.items() if holding}
    share = _share(missing, rarity.worths(chunks, held), rarity.worth(chunks, 0))
    if share <= LITTLE:
        return 1.0
    left = 1 - share if share >= MOSTLY else 1 - MOSTLY * (share - LITTLE) / (MOSTLY - LITTLE)
    is_misquoted = share >= MOSTLY and not {*query.phrases}.isdisjoint(missing)
    return min(MISQUOTED, left) if is_misquoted else max(SLIP, left)


def _share(missing: Sequence[str], worths: Mapping[str, float], whole: float) -> float:
    """Return how much of a query, by rarity, is what nothing holds; its parts may be common, it is not.

    `worths` are of the words that something holds: whatever is put beside a code, it is asked for as much.
    """
    parts = {part for code in missing for part in loose_words(code)}
    others = math.fsum(worth for word, worth in worths.items() if word not in parts)
    own = max(whole * len(missing), math.fsum(worth for word, worth in worths.items() if word in parts))
    return own / (own + others) if own else 0.0
