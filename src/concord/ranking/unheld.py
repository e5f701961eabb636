"""Codes, dates, versions, options, identifiers, quotations and the like of a query that no text holds.

What is like it (INC-4713 for INC-4712, release 3.2 for 3.3, Q2 2024 for Q2 2023) is found and near, and is
not it. A name of which no text has a word needs no rule: such words count against an answer in any case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from concord.ranking import rarity
from concord.ranking.identifiers import SNAKE, shape
from concord.ranking.options import long_option, names
from concord.ranking.words import AROUND, bare_words
from concord.text.contains import contains
from concord.text.dates import Day, dates_in, days_of, is_open_span, month_number, named_forms
from concord.text.identifiers import is_version
from concord.text.pattern import pattern
from concord.text.quarters import Quarter, is_of, numerals, quarter_of, quarters_in
from concord.text.stopwords import is_stop_word
from concord.text.terms import (
    all_of,
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
_NUMBERED = pattern(r"[A-Z][A-Za-z]*-[0-9]{2,}|[0-9]{4}-[0-9]{2}-[0-9]{2}")  # BUG-89, 2024-03-05
_LETTERED = pattern(r"(?P<letters>[A-Z]{1,3})(?P<digits>[0-9]{3,})")  # E1042, ST012: as many digits as others
# Who asks about releases has a word such as these; another release stands at such a place, as in a heading.
_ABOUT_RELEASES = pattern(
    r"\b(?:added|breaking|(?:bug)?fix(?:ed|es)?|change[ds]?|changelog|deprecated|features?|improvements?|migrat\w+"
    r"|new|news|notes|releases?d?|removed|security|since|upgrad\w+|versions?)\b",
    re.IGNORECASE,
)
_PLACE = r"\b(?:release|version)|^[#*=\[ ]{1,6}"
# What the number of a part comes after: its heading may have the number alone.
_PART = pattern(
    r"appendix|article|chapter|clause|figure|page|paragraph|part|rule|section|step|table|kapitel|abschnitt",
    re.IGNORECASE,
)
# A release that is one number: of a name, and with nothing after it that would be counted (Node 3 replicas).
# Of 9,904 judged queries 507 have a number after a word; it takes three for releases, all of which are held.
_WHOLE = pattern(
    r"(?<!\w)(?P<name>[^\W\d_]{2,}) (?:(?:release|version) )?v?(?P<n>[1-9][0-9]{0,2})"
    r"(?=[.,;:!?)]*(?: (?P<after>[^\W\d_]+)|$))"
)
# What is numbered and has no releases; what is asked for by its number may stand in a text as another (port).
_COUNTED = pattern(
    r"bugs?|case|class|code|day|error|exit|exercise|group|homework|http|issue|item|layer|lesson|level|line|module"
    r"|option|phase|point|port|problem|question|room|round|row|signal|stage|status|task|team|tier|top|type|unit"
    r"|week|woche|tag|zeile|fehler|stufe|seite",
    re.IGNORECASE,
)
# The one year that a query asks about: a number at its end, or after such a word. Of 213 judged questions
# with years it would not have refused one.
_OF_A_YEAR = (
    "after|before|by|during|for|from|in|of|since|until|year|im|jahr|seit|von|dans|depuis|en|del?|desde|año"
    r"|(?:jan|feb|mar|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])\w{0,6}"
)
_ASKED_YEAR = pattern(
    rf"\b(?:{_OF_A_YEAR})[ ](?P<y>(?:19|20)[0-9]{{2}})(?![\w%]|[.,:/-]\w)"
    r"|(?<![\w.,:$€£#/-])(?P<y2>(?:19|20)[0-9]{2})\W*$",
    re.IGNORECASE,
)
_YEAR = pattern(r"(?<![\w.,:$€£#/])(?:19|20)[0-9]{2}(?![\w%]|[.,:]\w)")
_DIGITS = pattern("[0-9]+")
_BEGINNING = 5  # letters that names of one thing share: PostgreSQL, Postgres

Holders = Callable[[Match | None], Sequence[str]]  # some texts of the store that match


def unheld(texts: Sequence[str], query: Query, holders: Holders) -> tuple[str, ...]:
    """Return the codes, names and quotations of a query that nothing holds; `texts` are those found.

    A code is such as INC-4712. What may be one (BUG-89, E1042), a date or a version counts where a text has
    another. A date, a quarter or a month is held in whatever form it is written.
    """
    quoted = [phrase for phrase in query.phrases if not any(_is_message(phrase, text) for text in texts)]
    sure = {name: part for name in query.entities if (part := _decisive(name, query))}
    asked = {**{one: one for one in (*quoted, *_with_others(query.meaning, texts))}, **sure}
    named = {one: name for one in asked if is_version(one) and (name := _name(one, query.meaning, texts))}
    return (
        *(
            one
            for one, part in asked.items()
            if not _is_held(part, texts, holders)
            or one in named
            and not _is_released(part, named[one], texts, holders)
        ),
        *(one[0] for one in _whole_releases(query.meaning, texts) if not _has_whole(one, texts, holders)),
        *_options(query, texts, holders),
    )


def _options(query: Query, texts: Sequence[str], holders: Holders) -> Iterator[str]:
    """Yield the option that a query asks for, if nothing has it: to the index it is but its words."""
    if "--" not in query.text:
        return
    option = long_option(query, texts)
    if option and not any(names(option, text) for text in (*texts, *holders(word_match(option)))):
        yield option


def _is_held(part: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether something holds what was asked for; of a version the index has only the numbers, in a row."""
    if days := days_of(part):
        return _is_dated(days, texts) or bool(holders(any_of([*map(_day_match, days)])))
    if quarter := quarter_of(part):
        return any(is_of(one, quarter) for one in (*texts, *holders(_quarter_match(quarter))))
    if month := _month(part):
        from concord.ranking.asked_months import holds_month

        return holds_month(month, texts, holders)
    if not is_version(part):
        return any(contains(text, part) for text in texts) or bool(holders(word_match(part)))
    written = _as_written(part)
    return any(map(written.search, texts)) or any(map(written.search, holders(word_match(part))))


def _is_released(version: str, name: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether a text has a version and, or where it stands, the name: another product may have the number."""
    number, named = word_match(version), word_match(name)
    written = _as_written(version, name)

    def has_both(texts: Iterable[str]) -> bool:
        return any(written.search(text) and contains(text, name) for text in texts)

    both = all_of([one for one in (number, named) if one])
    return has_both(texts) or has_both(holders(both)) or has_both(holders(number))


def _as_written(version: str, name: str = "") -> re.Pattern[str]:
    """Return a pattern of a version; not of an address (10.1.1.1), nor of what another name is joined to."""
    joined = rf"(?:(?<![A-Za-z][-_])|(?<={re.escape(name)}[-_]))" if name else ""
    number = re.escape(version.lstrip("vV"))
    return re.compile(rf"(?<![0-9.]){joined}v?{number}(?![0-9]|\.[0-9]+\.[0-9])", re.IGNORECASE)


def _name(version: str, asked: str, texts: Sequence[str]) -> str | None:
    """Return what a release was asked for of, if a text has another release of it, named as such.

    Where none has, its changelog may not say whose it is.
    """
    words = bare_words(asked)
    before = words[: words.index(version)] if version in words else []
    while before and _ABOUT_RELEASES.fullmatch(before[-1]):
        before.pop()
    name = before[-1] if before else ""
    if not _ABOUT_RELEASES.search(asked) or not name.isalpha() or is_stop_word(name) or _PART.fullmatch(name):
        return None
    other = _with_any_number(version.lstrip("vV"))
    beside = re.compile(rf"\b{re.escape(name)}\W{{0,3}}(?:(?:release|version)\W)?v?{other}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{_PLACE})\W{{0,3}}v?{other}", re.IGNORECASE | re.MULTILINE)
    is_known = any(beside.search(one) or at_place.search(one) and contains(one, name) for one in texts)
    return name if is_known else None


def _whole_releases(asked: str, texts: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield releases of one number, such as PostgreSQL 17, if a text has another of the same name.

    They are asked for by a word such as notes or upgrade, or alone, with a name that is written as one.
    """
    if not any(map(str.isdigit, asked)):
        return
    about = _ABOUT_RELEASES.search(asked)
    for found in _WHOLE.finditer(asked):
        name, after = found["name"], found["after"] or ""
        is_alone = asked.strip(f" {AROUND}") == found[0] and not name.isupper()
        is_counted = after and not is_stop_word(after) and not _ABOUT_RELEASES.fullmatch(after)
        is_name = not name.islower() and not is_stop_word(name) and not month_number(name)
        is_other = any(one.fullmatch(name) for one in (_ABOUT_RELEASES, _PART, _COUNTED))
        if not (about or is_alone) or is_counted or not is_name or is_other:
            continue
        other = rf"\b{re.escape(name)}\W{{0,3}}(?:(?:release|version)\W)?v?(?!{found['n']}\b)[0-9]+"
        if any(re.search(other, text, re.IGNORECASE) for text in texts):
            yield found


def _has_whole(release: re.Match[str], texts: Sequence[str], holders: Holders) -> bool:
    """Whether a text has a release of one number, or may have it: the number, and its name anywhere.

    Between them there may be more than can be told (15, 16 and 17; Vue.js 3; a table), and to say that
    nothing holds what is there is worse than to answer about another.
    """
    name, number = release["name"], release["n"]
    begun = name[:_BEGINNING].casefold()
    ended = rf"{number}(?!(?!(?:alpha|beta|rc)[0-9])\w)"  # 17beta1 is one of 17, and 17f0 begins an id
    written = re.compile(rf"(?:(?<![\w.])v?|{re.escape(name)}){ended}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{_PLACE}|\bv|/)\W{{0,3}}v?{ended}", re.IGNORECASE | re.MULTILINE)
    if any(written.search(one) and (begun in one.casefold() or at_place.search(one)) for one in texts):
        return True
    numbers = any_of([match for one in (number, f"v{number}") if (match := word_match(one))])
    apart = all_of([one for one in (word_match(name), numbers) if one])
    return bool(holders(any_of([one for one in (apart, word_match(f"{name}{number}")) if one])))


def _is_dated(days: Sequence[Day], texts: Sequence[str]) -> bool:
    """Whether a text has one of some days in its path, which has no words in the index."""
    written = [f"{day.year}-{day.month:02}-{day.day:02}" for day in days]
    return any(one in text for one in written for text in texts)


def _month(part: str) -> Month | None:
    if not any(map(str.isdigit, part)):
        return None
    from concord.text.months import month_of  # late: few queries have a number

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
    """Return the factor on all probabilities: less than 1 where what is asked for is nothing, or nowhere."""
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


def _with_others(asked: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of a query that name one of many, if a text has the same with another number."""
    if not any(map(str.isdigit, asked)):
        return  # as most: two patterns less to compile
    is_span = is_open_span(asked)
    dates = [*dates_in(asked)]
    if dates and not is_span:
        known = {day for text in texts for one in dates_in(text) for day in one.days}
        yield from (one.written for one in dates if known.difference(one.days))
    quarters = [*quarters_in(asked)]
    if quarters and not is_span:
        known_quarters = {one.quarter for text in texts for one in quarters_in(text)}
        yield from (one.written for one in quarters if known_quarters.difference({one.quarter}))
    from concord.ranking.asked_months import asked_months  # late: few queries have a number

    months = [*asked_months(asked, texts)]
    yield from (one for one, has_others in months if has_others)
    if not dates and not quarters and not months and not is_span:
        yield from _year_with_others(asked, texts)
    words = [word for word in bare_words(asked) if not days_of(word)]
    place = f"|{_PLACE}" if _ABOUT_RELEASES.search(asked) else ""
    for before, word in dict.fromkeys(pairwise(["", *words])):
        if _NUMBERED.fullmatch(word):
            others = rf"\b{_with_any_number(word)}\b"
        elif code := _LETTERED.fullmatch(word):
            others = rf"\b(?-i:{code['letters']})[0-9]{{{len(code['digits'])}}}\b"
        elif before and is_version(word):  # at such a place, or it would be any number at all
            others = rf"(?:\b{re.escape(before)}{place})\W{{0,3}}v?{_with_any_number(word.lstrip('vV'))}"
        else:
            continue
        if any(re.search(others, text, re.IGNORECASE | re.MULTILINE) for text in texts):
            yield word


def _year_with_others(asked: str, texts: Sequence[str]) -> list[str]:
    """Return the year that a query asks about, if it names one and a text has another."""
    found, years = _ASKED_YEAR.search(asked), {*_YEAR.findall(asked)}
    year = (found["y"] or found["y2"]) if found else ""
    if years != {year}:
        return []
    return [year] if any(one != year for text in texts for one in _YEAR.findall(text)) else []


def _with_any_number(word: str) -> str:
    return _DIGITS.sub("[0-9]+", re.escape(word))
