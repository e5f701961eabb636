"""The words that a rung of the cascade looks for: words that begin like those typed, similar words, parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from concord.answering.absent_words import MAX_WORDS
from concord.answering.deadline import Deadline
from concord.text.characters import folded
from concord.text.nearness import MIN_LETTERS, MIN_PART, distance
from concord.text.parse import parse
from concord.text.stem import stem
from concord.text.terms import any_of, word_match
from concord.text.unspaced import characters, has_unspaced
from concord.text.vowel_signs import is_form
from concord.types import Match, Query, Without, Word

if TYPE_CHECKING:
    from concord.answering.suggest import LikeWords
    from concord.storage import LexicalIndex

MAX_BEGINNINGS = 8  # words looked for by their beginnings: each reads all that begin so
LONGEST_COMPOUND = 32  # letters of a word that is taken apart: the number of its parts grows with the square


def prefix_match(query: Query) -> Match | None:
    """Return a match of words that begin like the query's words or their stems; short words are left out."""
    words = [word for word in query.words if len(word) >= MIN_LETTERS and not has_unspaced(word)]
    chosen = sorted(words, key=len, reverse=True)[:MAX_BEGINNINGS]
    return _allowed(query, [match for word in chosen for match in _begun(word)])


def partial_match(query: Query, near: LikeWords, index: LexicalIndex, budget_ms: float) -> Match | None:
    """Return a match of the known words nearest to each of the query's, or else of the parts of it."""
    deadline = Deadline(budget_ms)
    found: list[Match] = []
    for word in sorted(query.words, key=len, reverse=True)[:MAX_WORDS]:
        if not deadline.left_ms():
            break
        if has_unspaced(word):
            found += [Word(character, prefix=True) for character in characters(word)]
        else:
            like = _nearest(word, near(word)) or _known_parts(word, index)
            found += [match for one in like if (match := word_match(one))]
    return _allowed(query, found)


def _allowed(query: Query, found: Sequence[Match]) -> Match | None:
    """Return a match of any of these that still leaves out what the query excludes."""
    match, dropped = any_of(found), parse(query.text, query.options).dropped
    return Without(match, dropped) if match and dropped else match


def _begun(word: str) -> Iterator[Match]:
    match = word_match(word, prefix=True)
    if match is not None:
        yield match
    root = stem("".join(folded(word)))
    if len(root) >= MIN_LETTERS and stem(root) == root:  # an engine would stem it further: databs to datab
        yield Word(root, prefix=True)


def _nearest(word: str, like: Sequence[tuple[str, int]]) -> list[str]:
    """Return the words with the fewest edits; with others, farther hits would mix into the order."""
    plain = "".join(folded(word))
    apart = {known: distance(plain, "".join(folded(known)), 2) for known, _ in like}
    least = min((edits for edits in apart.values() if edits is not None), default=None)
    return [known for known, edits in apart.items() if edits == least]


def _known_parts(word: str, index: LexicalIndex) -> list[str]:
    """Return the longest known words within a word, if together they make up half of it."""
    plain = "".join(folded(word))
    size = len(plain)
    if not 2 * MIN_PART <= size <= LONGEST_COMPOUND or is_form(plain):
        return []
    spans = [(a, b) for a in range(size) for b in range(a + MIN_PART, size + 1)]
    _, holding = index.frequencies([plain[a:b] for a, b in spans])
    chosen: list[tuple[int, int]] = []
    for a, b in sorted(spans, key=lambda span: span[0] - span[1]):
        if holding[plain[a:b]] and all(b <= start or a >= end for start, end in chosen):
            chosen.append((a, b))
    return [plain[a:b] for a, b in chosen] if 2 * sum(b - a for a, b in chosen) >= size else []
