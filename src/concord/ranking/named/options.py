"""An option of a command that a query asks for: which texts write it with its dashes, and which describe it?

To the index `--amend` is the word amend, so that it finds `--fixup=amend:` as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concord.ranking.named.entries import Entry, entry_lift, share_in_place
from concord.ranking.named.kinds import FoundTexts, Kind, Lifted, ReadPassages
from concord.ranking.words import AROUND, bare_words
from concord.text.pattern import pattern
from concord.text.terms import word_match
from concord.types import ChunkId, Query, Survivor

# Of the range of scores.
WRITTEN_BOOST = 1.1  # for an option with its dashes: before all that hold only its letters
ENTRY_BOOST = 1.6  # for its entry: before summaries, too, and sentences with it at a line's begin
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

    A single dash excludes a word, unless passages write that word with its dash.
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


def _named(found: FoundTexts) -> Iterator[str]:
    """Yield the option with two dashes that a query asks for, if some text writes another such option."""
    asked = asked_option(found.query)
    if asked is not None and asked.option.startswith("--"):
        others = (one for text in found.texts for one in _LONG.findall(text))
        if any(one != asked.option for one in others):
            yield asked.option


def _is_held(named: str, found: FoundTexts) -> bool | None:
    """Whether a text has an option, with its dashes or as the name of a setting: dry-run, dry_run.

    The index has only its words, so texts are read. A quoted option is looked for as it stands.
    """
    if not named.startswith("--") or named in found.query.phrases:
        return None
    parts = map(re.escape, named.lstrip("-").split("-"))
    spelt = re.compile(rf"(?<![^\W_])(?:no-)?{'[-_]?'.join(parts)}(?![^\W_])", re.IGNORECASE)
    return any(map(spelt.search, (*found.texts, *found.holders(word_match(named)))))


def _lift(lifted: Lifted, read: ReadPassages) -> Lifted:
    asked = asked_option(read.query)
    if asked is None:
        return lifted
    writing = [one.ranked.chunk_id for one in read.survivors if writes(asked.option, one.chunk.text)]
    entries = _entries(read.survivors, asked)
    lifted = lifted.by(dict.fromkeys(writing, WRITTEN_BOOST)).by_entries(entries)
    return lifted.marked((chunk_id for chunk_id, one in entries.items() if one.is_asked), "option")


def _entries(survivors: Sequence[Survivor], asked: AskedOption) -> dict[ChunkId, Entry]:
    """Return the passages that describe an option; asked for are those in a place about its command."""
    from concord.text.option_lines import description  # late: few queries ask for an option

    found: dict[ChunkId, Entry] = {}
    for one in survivors:
        if line := description(asked.option, one.chunk.text):
            is_asked = not asked.beside or share_in_place(asked.beside, one) > 0
            lift = entry_lift(asked.beside, one) + ENTRY_BOOST * line.sureness * is_asked
            found[one.ranked.chunk_id] = Entry(lift, line.start, is_asked)
    return found


def _is_asked(word: str, query: Query) -> bool:
    """Whether a word with a dash is looked for: two dashes, or one before a letter, exclude nothing."""
    return word.startswith("--") or len(word.partition("=")[0]) == 2 or word[1:] in query.options


def _is_beside(word: str, option: str) -> bool:
    return word.lower() not in _ASKING and word.partition("=")[0].lstrip("-") != option.lstrip("-")


def _whole(option: str) -> str:
    return rf"(?<![\w-]){re.escape(option)}(?![\w-])"


KIND = Kind(_named, _is_held, _lift)
