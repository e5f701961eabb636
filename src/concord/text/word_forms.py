"""Which known words are meant by an unknown one? Parts of a glued token, halves of a compound, a correction.

Forms are alternatives of a word that matches nothing, so no other query can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from concord.text.compounds import likeliest, splits
from concord.text.nearness import distance
from concord.text.scripts import has_unspaced
from concord.text.stopwords import is_stop_word
from concord.text.terms import identifier_parts, written
from concord.text.tokens import folded

MAX_WORDS = 4  # of a query that are given forms: who mistypes more has pasted something
ONE_EDIT_FROM, TWO_EDITS_FROM = 5, 8  # letters of a word that may be one or two edits off
SIMILAR = 5  # known words that a correction is chosen from

Frequencies = Callable[[Sequence[str]], Mapping[str, int]]
Similar = Callable[[str, int], Sequence[tuple[str, int]]]


def forms_of(
    words: Iterable[str], frequencies: Frequencies, similar: Similar, is_word: Callable[[str], bool]
) -> dict[str, tuple[str, ...]]:
    """Return for each unknown word the known ones that it is searched by; none for what has no form.

    `is_word` says what is a word of the model's language: bread is no mistyped read.
    """
    chosen = sorted((word for word in words if not has_unspaced(word)), key=len)[-MAX_WORDS:]
    parts = {word: _parts(word) for word in chosen}
    wanted = {part for pairs in parts.values() for pair in pairs for part in pair}
    held = {part for part, count in frequencies([*wanted]).items() if count} if wanted else set()
    forms = {word: _known_parts(word, pairs, held) for word, pairs in parts.items()}
    for word in chosen:
        if not forms[word] and not is_word(word.casefold()):
            forms[word] = tuple(_corrections(written(word), similar(word, SIMILAR)))
    return {word: form for word, form in forms.items() if form}


def _parts(word: str) -> list[tuple[str, ...]]:
    """Return the ways to take a word apart: FY2022 at the digits, timezone in two."""
    glued = tuple(part.lower() for part in identifier_parts(word))
    return [glued] if len(glued) > 1 else [*splits(word)]


def _known_parts(word: str, pairs: Sequence[tuple[str, ...]], held: set[str]) -> tuple[str, ...]:
    """Return the known parts; of a glued token the number counts and the letters may be missing."""
    if len(pairs) == 1 and any(map(str.isdigit, word)):
        known = tuple(part for part in pairs[0] if part in held)
        return known if any(part.isdigit() for part in known) else ()
    return likeliest([pair for pair in pairs if len(pair) == 2], held) or ()


def _corrections(word: str, similar: Sequence[tuple[str, int]]) -> list[str]:
    """Return the nearest known word, if it is near enough to be meant."""
    typed = "".join(folded(word))
    most = (len(typed) >= ONE_EDIT_FROM) + (len(typed) >= TWO_EDITS_FROM)
    apart = {known: _edits(typed, "".join(folded(known)), most) for known, _ in similar}
    near = {known: edits for known, edits in apart.items() if edits is not None}
    return [min(near, key=lambda known: near[known])] if near else []


def _edits(typed: str, known: str, most: int) -> int | None:
    if not most or typed[:1] != known[:1] or is_stop_word(known) or any(map(str.isdigit, typed)):
        return None
    return distance(typed, known, most)
