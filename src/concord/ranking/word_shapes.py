"""Is this one word an identifier, a code, a file name, a version or a number, and how surely?

A word is looked at on its own, stripped of surrounding punctuation. "sure" shapes are written by nobody by
accident (`snake_case`, `a.b.c`, `CVE-2024-1234`); "likely" ones are also ordinary English (`mp3`, `COVID-19`,
`404`), so they name something in a bare query but not inside a question: "how does COVID-19 spread" is
about meaning, "COVID-19 spread" asks for the word.
"""

from __future__ import annotations

import re
from typing import Literal

from concord.ranking.lexicon import ABBREVIATIONS, BRANDS, TOUCHING_UNITS, UNITS
from concord.ranking.words import is_initials
from concord.text.characters import has_digit
from concord.text.pattern import pattern

Sureness = Literal["sure", "likely"]

# Every pattern is used with fullmatch on one word and has no two ways to match the same text, so that a word
# of 100,000 characters costs time in proportion to its length.
_CODE = pattern(
    r"\w+(?:(?:\.|::|->|#)\w+)*\(\)"  # print(), list.append()
    r"|\w+(?:::\w+)+"  # std::vector
    r"|[A-Za-z_]\w*(?:->[A-Za-z_]\w*)+"  # self->next
    r"|--[A-Za-z][\w-]*(?:=\S*)?"  # --no-embed
    r"|\$\{?[A-Za-z_]\w*\}?"  # $PATH
    r"|@[A-Za-z_][\w.]*"  # @dataclass
    r"|#[0-9]+"  # issue #123
    r"|</?[A-Za-z][\w-]*/?>"  # <div>
    r"|0[xX][0-9A-Fa-f]+"
)
SNAKE = pattern(r"_*[^\W_]+(?:_+[^\W_]+)+_*|__[^\W_]+__")
_CAMEL = pattern(
    r"[a-z]+[0-9]*(?:[A-Z]+[a-z0-9]+)+[A-Z]*"  # getUserName, parseHTMLPage, fetchAsJSON
    r"|[a-z]{4,}[A-Z]{2,}"  # userID; shorter heads are biology and brands: mRNA, cDNA, macOS, gRPC
    r"|(?:get|set|has|is|to|on|new|max|min|num|raw|my)[A-Z]{2,}"  # toJSON
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+"  # UserService
    r"|[A-Z]{2,}[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+)*"  # HTTPServer
)
_SURNAME = pattern(r"(?:Mc|Mac|De|Le|La|Van|Di|Fitz)[A-Z][a-z]+")  # McKinley, DeLorean
_PLURAL_ACRONYM = pattern(r"[a-z]{0,3}[A-Z]{2,}(?:s|ed|ing)")  # APIs, PDFs, miRNAs
# a.b.c, config.yaml, example.com, .gitignore
_DOTTED = pattern(r"\.?[^\W\d][\w-]*(?:\.[\w-]+)+|\.[a-z][\w-]*")
_ADDRESS = pattern(r"[A-Za-z][A-Za-z0-9+.-]*://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = pattern(
    r"(?:/[\w.@+-]+){2,}/?|(?:~|\.{1,2})(?:/[\w.@+-]+)+/?"  # /etc/hosts, ./run, ~/notes
    r"|[\w.@+-]+/(?:[\w.@+-]+/)+[\w.@+-]*"  # src/concord/types.py
    r"|[\w.@+-]+/[\w@+-]*\.[A-Za-z]\w*"  # docs/auth.md
    r"|[A-Za-z]:[\\/]\S*"  # C:\Windows
)
_VERSION = pattern(
    r"[vV][0-9]+(?:\.[0-9]+)*(?:[-+.]?(?:alpha|beta|rc|dev|post|[ab])\.?[0-9]*)?"
    r"|[0-9]+(?:\.[0-9]+){2,}(?:[-+.]?[a-z]+[.-]?[0-9]*)?(?::[0-9]+)?"  # 1.2.3, 3.12.0rc1, 192.168.0.1:8080
    r"|[0-9]+\.[0-9]+(?:[-+]?(?:alpha|beta|rc|dev)\.?[0-9]*)"  # 2.0-beta
)
# CVE-2024-1234, ISO-8601
_NUMBERED_CODE = pattern(r"[A-Z]{2}[A-Z0-9]*(?:-[0-9]{2,}){2,}|[A-Z]{2,}-[0-9]{3,}")
_SEGMENTS = pattern(r"[^\W_]+(?:[-.][^\W_]+)*")  # x86-64, COVID-19, python3.12
_SURE = (_CODE, SNAKE, _CAMEL, _DOTTED, _ADDRESS, _PATH, _VERSION, _NUMBERED_CODE)
_HASH = pattern(r"[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUNS = pattern(r"[0-9]+|[^\W\d_]+")

_NUMBER = pattern(r"[+-]?\d+(?:,\d+)*(?:\.\d+)?")
_YEAR = pattern(r"(?:1\d|20)\d\d(?:s|er)?|(?:mid|early|late|pre|post)-(?:1\d|20)\d\ds?|'?\d0s")
_DATE = pattern(
    r"(?:1\d|20)\d\d[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?:T[\d:.]+Z?)?"  # 2024-01-15, 2024-01
    r"|\d{1,2}[-/.]\d{1,2}[-/.](?:1\d|20)\d\d|\d{1,2}[-/]\d{1,2}[-/]\d\d"  # 15.01.2024; 3.11.10 is a version
    r"|(?:1\d|20)\d\d[-–/](?:(?:1\d|20)\d\d|\d\d)"  # 2020-2024
    r"|\d{1,2}:\d\d(?::\d\d)?(?:am|pm)?"
    r"|Q[1-4]|H[12]|FY'?(?:\d\d){1,2}",
    re.IGNORECASE,
)
_MEASURE = pattern(r"[$€£¥₹]?\d+(?:[.,]\d+)*([^\W\d_]*(?:/[^\W\d_]+)?|[%‰°][A-Z]?)", re.IGNORECASE)
# 24-hour, 20-year-old, 3D, 2x4, 10k, 5G, 3rd: written with a digit, but words
_COMPOUND = pattern(r"\d+(?:[.,]\d+)?-[^\W\d_]{2,}(?:-[^\W\d_]+)*|\d+[dDxXkKG]\d*|\d+(?:st|nd|rd|th)")
_CURRENCY = "$€£¥₹"
_NAMED_NUMBER_DIGITS = 3  # "top 10", "3 steps" count something; "386", "404", "8080" name something


def is_year(word: str) -> bool:
    """Whether the word is a year from 1000 to 2099, a decade or a date."""
    return has_digit(word) and bool(_YEAR.fullmatch(word) or _DATE.fullmatch(word))


def is_number(word: str) -> bool:
    """Whether the word is a number and nothing else."""
    return has_digit(word) and bool(_NUMBER.fullmatch(word))


def is_measure(word: str, following: str = "") -> bool:
    """Whether the word is a number with its unit, in it or after it: 10kg, $5, 5 GB."""
    found = _MEASURE.fullmatch(word) if has_digit(word) else None
    if not found:
        return False
    unit = found.group(1)
    if unit:  # single letters in their own case: 5g is a weight, 5G a network
        return unit.lower() in UNITS or unit in TOUCHING_UNITS or unit[0] in "%‰°"
    return word[0] in _CURRENCY or following.lower() in UNITS


def shape(word: str, following: str = "") -> Sureness | None:
    """Say how surely a word is an identifier, code, file name, version or number; None when it is none."""
    if word.isalpha() and (word.islower() or word.istitle()):
        return None  # most words, answered without a regular expression
    if _is_everyday(word, following):
        return None
    if _is_sure(word):
        return "sure"
    return "likely" if _is_likely(word) else None


def is_identifier(word: str) -> bool:
    """Whether a word can only be a name in code or settings: snake_case, camelCase."""
    return bool(SNAKE.fullmatch(word) or _CAMEL.fullmatch(word)) and shape(word) == "sure"


def _is_everyday(word: str, following: str) -> bool:
    lowered = word.lower()
    return (
        lowered in BRANDS
        or lowered.rstrip(".") in ABBREVIATIONS
        or is_initials(word)
        or is_year(word)
        or is_measure(word, following)
    )


def _is_sure(word: str) -> bool:
    if _SURNAME.fullmatch(word) or _PLURAL_ACRONYM.fullmatch(word):
        return False
    return any(pattern.fullmatch(word) for pattern in _SURE) or _is_dense(word)


def _is_dense(word: str) -> bool:
    """Whether letters and digits alternate too much for prose: 386DX33, a git hash, a UUID."""
    if not word.isascii() or word.isalpha():
        return False
    if _HASH.fullmatch(word) and not word.isdigit():
        return True
    return len(word) >= 5 and word.isalnum() and len(_RUNS.findall(word)) >= 3


def _is_likely(word: str) -> bool:
    if _NUMBER.fullmatch(word):
        return "," not in word and ("." in word or sum(map(str.isdigit, word)) >= _NAMED_NUMBER_DIGITS)
    if _COMPOUND.fullmatch(word):
        return False
    if not word.isascii():  # 2024年收入 is a phrase in a script without spaces
        return False
    mixed = has_digit(word) and any(map(str.isalpha, word))
    return mixed and bool(_SEGMENTS.fullmatch(word))
