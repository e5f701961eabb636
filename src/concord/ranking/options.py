"""Does a query ask for one option of a command, which texts write it with its dashes, and which describe it?

To the index `--amend` is the word amend, so `--fixup=amend:` holds it as well as what is said of `--amend`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from concord.ranking.words import AROUND, bare_words
from concord.text.pattern import pattern
from concord.types import Query

WRITTEN_BOOST = 1.1  # of the range of scores: before all that hold only its letters
MOST_WORDS = 8  # a longer query tells what happened, and an option was part of it
MOST_BESIDE = 3  # that are more than "what does … do": docker compose up -d

_OPTION = pattern(r"(--?[A-Za-z][\w-]*)(?:=\S*)?")
_LONG = pattern(r"(?<![\w-])--[A-Za-z][\w-]+")
_ASKING = {
    "option", "flag", "switch", "argument", "parameter", "mean", "means", "meaning", "stand", "use", "used",
}  # fmt: skip


class AskedOption(NamedTuple):
    """An option with its dashes and without a value, and the words beside it: mostly its command."""

    option: str
    beside: tuple[str, ...] = ()


def asked_option(query: Query) -> AskedOption | None:
    """Return the option that a query asks for: the only one of a short query.

    A word that a single dash excludes is none, unless passages write it so.
    """
    if "-" not in query.text:  # most queries
        return None
    words = bare_words(query.text)
    if len(words) > MOST_WORDS:
        return None
    options = [found[1] for word in words if (found := _OPTION.fullmatch(word)) and _is_asked(word, query)]
    if len(options) != 1:
        return None
    terms = (term.strip(AROUND) for term in query.terms)
    beside = tuple(term for term in terms if _is_beside(term, options[0]))
    return AskedOption(options[0], beside) if len(beside) <= MOST_BESIDE else None


def writes(option: str, text: str) -> bool:
    """Whether a text has an option with its dashes; in its own case, for -c and -C are two."""
    return option in text and re.search(_whole(option), text) is not None


def long_option(query: Query, texts: Iterable[str]) -> str | None:
    """Return the option of two dashes that a query asks for, if texts write others: they are about such."""
    asked = asked_option(query)
    if asked is None or not asked.option.startswith("--"):
        return None
    others = (one for text in texts for one in _LONG.findall(text))
    return asked.option if any(one != asked.option for one in others) else None


def names(option: str, text: str) -> bool:
    """Whether a text has an option, with its dashes or as the name that a setting has: dry-run, dry_run."""
    parts = map(re.escape, option.lstrip("-").split("-"))
    return re.search(rf"(?<![^\W_])(?:no-)?{'[-_]?'.join(parts)}(?![^\W_])", text, re.IGNORECASE) is not None


def _is_asked(word: str, query: Query) -> bool:
    """Whether a word with a dash is looked for: nobody excludes by two dashes, or a single letter."""
    return word.startswith("--") or len(word.partition("=")[0]) == 2 or word[1:] in query.options


def _is_beside(word: str, option: str) -> bool:
    return word.lower() not in _ASKING and word.partition("=")[0].lstrip("-") != option.lstrip("-")


def _whole(option: str) -> str:
    return rf"(?<![\w-]){re.escape(option)}(?![\w-])"
