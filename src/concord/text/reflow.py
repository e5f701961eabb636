"""The lines of a page as sentences and paragraphs again: divided words, broken sentences, spaced-out letters.

Whether a hyphen at a line's end is part of the word is asked of the document first: it mostly writes the same
word elsewhere in the middle of a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

_SOFT_HYPHEN = "\xad"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DIVIDED = re.compile(r"((?:[^\W\d_]+-)*[^\W\d_]+)[-\u2010\xad]$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
# Words that keep their hyphen when nothing in the document says otherwise.
_HYPHENATING = frozenset(
    ("self", "non", "well", "ill", "ex", "all", "cross", "high", "low", "long", "short", "half", "full", "so")
    + ("one", "two", "three", "four", "five", "ten", "first", "second", "third", "multi", "semi", "quasi")
    + (
        "much",
        "many",
        "more",
        "most",
        "less",
        "least",
        "open",
        "closed",
        "real",
        "time",
        "co",
        "vice",
        "post",
    )
)

# The page of an entry in a table of contents ends it, too.
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$|… [ivxlc\d]+$")
_PARAGRAPH_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_ENDS_IN_LOWER_CASE = re.compile(r"(?<!\S)[a-zß-öø-ÿ]+,?$")
_MANY_NEWLINES = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_SPACED_LETTERS = re.compile(r"(?<!\S)(?:[^\W\d_] ){2,}[^\W\d_](?!\S)")
_LEAST_SPACED = 8  # letters that are certainly one word, where the document does not write the word elsewhere

_WIDE_PAGE = 40  # characters; in narrower columns the length of a line tells nothing
_FULL = 0.85  # of the page's width: such a line was broken because it was full
_LONG = 0.6  # a line this long may go on in the next if that begins in the middle of a sentence
_SHORT = 0.75  # a line this short that ends a sentence also ends its paragraph


class Vocabulary(Struct, frozen=True):
    """The words that a document writes within its lines, and how often; made by `vocabulary_of`."""

    counts: Counter[str]

    def __contains__(self, word: str) -> bool:
        return word.lower() in self.counts

    def prefers(self, word: str, other: str) -> bool | None:
        """Whether a spelling is more frequent than another; None when they are equally so."""
        first, second = self.counts[word.lower()], self.counts[other.lower()]
        return None if first == second else first > second


def vocabulary_of(pages: Sequence[Sequence[str]]) -> Vocabulary:
    """Return the words of all pages."""
    lines = (line.lower() for page in pages for line in page)
    return Vocabulary(Counter(word for line in lines for word in _WORD.findall(line)))


def reflowed(lines: Sequence[str], vocabulary: Vocabulary) -> str:
    """Return a page's text: a space where a sentence goes on, blank lines between paragraphs."""
    tidy = [_tidied(line, vocabulary) for line in lines]
    width = _width(tidy)
    parts: list[str] = []
    for line, below in pairwise([*tidy, ""]):
        parts.extend(_seam(line, below, width, vocabulary))
    return _MANY_NEWLINES.sub("\n\n", "".join(parts)).strip("\n")


def goes_on(line: str, below: str) -> bool:
    """Whether a sentence is broken between two lines: nothing ends, and what follows begins in lower case."""
    return below[:1].islower() and not _SENTENCE_END.search(line, max(0, len(line) - 10))


def _seam(line: str, below: str, width: int, vocabulary: Vocabulary) -> tuple[str, str]:
    """Return a line as it is written, and what parts it from the next."""
    divided, right = _DIVIDED.search(line), _FIRST_WORD.match(below)
    if divided and right:
        is_one = line.endswith(_SOFT_HYPHEN) or _is_one_word(divided[1], right[0], vocabulary)
        return (line[:-1] if is_one else line), ""
    line = line.rstrip(_SOFT_HYPHEN)
    if not line or not below:
        return line, "\n"
    if len(line) >= _LONG * width and goes_on(line, below):
        return line, " "
    if width < _WIDE_PAGE:
        return line, "\n"
    return line, _seam_on_wide_page(line, below, width)


def _seam_on_wide_page(line: str, below: str, width: int) -> str:
    if len(line) < _SHORT * width and _PARAGRAPH_END.search(line) and not below[0].islower():
        return "\n\n"
    if len(line) >= _FULL * width and below[0].isalpha() and _ENDS_IN_LOWER_CASE.search(line):
        return " "  # a name begins the next line
    return "\n"


def _is_one_word(left: str, right: str, vocabulary: Vocabulary) -> bool:
    """Whether a hyphen at a line's end only divides a word; one that belongs to it stays."""
    if right[0].isupper():  # Anglo-Saxon
        return False
    known = vocabulary.prefers(left + right, f"{left}-{right}")
    if known is not None:
        return known
    is_compound = "-" in left or left.lower() in _HYPHENATING
    return not is_compound and len(left) > 1 and len(right) > 1


def _tidied(line: str, vocabulary: Vocabulary) -> str:
    """Close up letters that are spaced out, then spaces that are doubled."""
    line = _SPACED_LETTERS.sub(lambda found: _closed_up(found[0], vocabulary), line.strip())
    return _SPACES.sub(" ", line)


def _closed_up(letters: str, vocabulary: Vocabulary) -> str:
    word = letters.replace(" ", "")
    is_alphabet = sorted(word.lower()) == list(word.lower())
    is_word = word in vocabulary or (len(word) >= _LEAST_SPACED and not is_alphabet)
    return word if is_word else letters


def _width(lines: Sequence[str]) -> int:
    """Return the length that nine in ten lines do not exceed."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[9 * (len(lengths) - 1) // 10] if lengths else 0
