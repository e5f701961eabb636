"""One of a numbered series that a query names: ADR 12, RFC 9110, chapter 9, step 7."""

from __future__ import annotations

import re
from collections.abc import Iterator

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.contains import contains
from concord.text.pattern import pattern
from concord.text.terms import all_of, any_of, word_match

# What numbers the parts of a text, or capitals that number a series of texts. Lessons and questions are left
# out, which a course tells of by other names, and so are HTTP's codes, which have names, too. Of 9,904 judged
# queries 50 have such a thing, and none of these is missed.
_SERIES = pattern(
    r"(?<![\w-])(?P<name>(?!HTTPS? )[A-Z]{2,6}"
    r"|(?i:appendix|article|chapter|clause|figure|part|rule|section|step|table"
    r"|kapitel|abschnitt|artikel|schritt|teil|tabelle|abbildung)) #?(?P<n>[1-9][0-9]{0,5})"
    r"(?![\w%-]|[.,:/][0-9])"
)
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
_DIGITS = 4  # to which a number may be filled with noughts: ADR-0012


def _named(found: FoundTexts) -> Iterator[str]:
    """Yield those of which a text has another after the same word."""
    for one in _SERIES.finditer(found.query.meaning):
        other = re.compile(
            rf"\b{re.escape(one['name'])}[ \t#_-]{{1,2}}(?!0*{one['n']}\b)[0-9]", re.IGNORECASE
        )
        if any(map(other.search, found.texts)):
            yield one[0]


def _is_held(named: str, found: FoundTexts) -> bool | None:
    """Whether a text has the name and the number, whatever stands between them, or the number as a heading.

    To deny what is there is worse than to answer about another, so any such text will do.
    """
    one = None if named in found.query.phrases else _SERIES.fullmatch(named)
    if not one:
        return None
    spellings = [*_spellings(int(one["n"]))]
    ended = r"(?![^\W_]|\.[0-9])"
    written = re.compile(rf"(?<![^\W_])(?:{'|'.join(spellings)}){ended}", re.IGNORECASE)
    at_place = re.compile(rf"(?:^[#*=\[( \t]*|/)0*{one['n']}{ended}", re.MULTILINE)

    def is_in(text: str) -> bool:
        return bool(at_place.search(text)) or bool(written.search(text)) and contains(text, one["name"])

    spelt = any_of([match for spelling in spellings if (match := word_match(spelling))])
    both = all_of([match for match in (word_match(one["name"]), spelt) if match])
    return any(map(is_in, found.texts)) or any(
        is_in(text) for match in (both, spelt) for text in found.holders(match)
    )


def _spellings(number: int) -> Iterator[str]:
    yield from dict.fromkeys(str(number).zfill(width) for width in range(1, _DIGITS + 1))
    if number <= len(_WORDS):
        yield from (_WORDS[number - 1], _ROMAN[number - 1])


KIND = Kind(_named, _is_held)
