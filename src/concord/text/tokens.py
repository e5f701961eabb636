"""What is a token, and what is it worth? FTS5's tokenizers and its BM25, the same on every backend.

`porter unicode61` makes the tokens of the index; `unicode61` alone those before stemming. FTS5 froze its
tables at Unicode 6.1, so Python's own cannot stand in for them; apsw lets us ask its tokenizers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import apsw

K1 = 1.2  # of BM25 in FTS5, and so is B: a term's weight saturates at k1 + 1
B = 0.75  # how far a chunk's length counts
LEAST_IDF = 1e-6  # of words that more than half of all chunks hold: they must not count against a chunk

_DOCUMENT = 0x0004  # FTS5_TOKENIZE_DOCUMENT: why a tokenizer is asked
_ASCII_BYTES = bytes(range(0x80))
_SPELT = str.maketrans(
    {"ß": "ss", "ø": "o", "ł": "l", "œ": "oe", "æ": "ae", "đ": "d", "þ": "th", "ı": "i"}
    | {"ẞ": "ss", "Ø": "O", "Ł": "L", "Œ": "Oe", "Æ": "Ae", "Đ": "D", "Þ": "Th"}
    # Points of Hebrew and Arabic, which are mostly left out, and what makes an Arabic word longer.
    | dict.fromkeys(map(chr, (*range(0x591, 0x5BE), 0x5C1, 0x5C2, 0x640, *range(0x64B, 0x660), 0x670)), "")
)


class _Late:
    """Stands for a compiled pattern; each of its methods is looked up once, then called directly."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern like `re.compile`, compiled at first use: all would take a tenth of a quick search."""
    return cast("re.Pattern[str]", _Late(source, flags))


@cache
def _tokenizer(name: str, *arguments: str) -> apsw.FTS5Tokenizer:
    import apsw  # late: whoever shows what another process has found asks no tokenizer

    return apsw.Connection(":memory:").fts5_tokenizer(name, list(arguments))


def _ask(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    data = text.encode("utf-8", "replace")  # a lone surrogate is a separator, and so is a question mark
    found = tokenizer(data, _DOCUMENT, None, include_offsets=False, include_colocated=False)
    return cast("list[str]", found)


def tokenize(text: str) -> list[str]:
    """Return the tokens that FTS5 `porter unicode61` makes of a text, in order."""
    return _ask(_tokenizer("porter", "unicode61"), text)


def folded(text: str) -> list[str]:
    """Return the tokens of a text before stemming: lower case, without accents."""
    return _ask(_tokenizer("unicode61"), text)


def tokens_at(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of each token."""
    return _placed(_tokenizer("porter", "unicode61"), text)


def separated(text: str) -> list[str]:
    """Return the runs of token characters in a text, as they are written there."""
    return [text[start:end] for start, end, _ in _placed(_tokenizer("unicode61"), text)]


def _placed(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[tuple[int, int, str]]:
    data = text.encode("utf-8", "replace")
    asked = tokenizer(data, _DOCUMENT, None, include_colocated=False)
    found = cast("list[tuple[int, int, str]]", asked)
    if len(data) == len(text):
        return found
    tokens: list[tuple[int, int, str]] = []
    at = last = 0  # the same place in characters and in bytes
    for start, end, token in found:
        at += len(data[last:start].decode())
        size = len(data[start:end].decode())
        tokens.append((at, at + size, token))
        at, last = at + size, end
    return tokens


@lru_cache(maxsize=1 << 12)
def stem(word: str) -> str:
    """Return the stem of one word that is folded already."""
    return "".join(tokenize(word)[:1])


@lru_cache(maxsize=1 << 13)
def is_token_character(character: str) -> bool:
    """Whether FTS5 would make this character part of a token."""
    return bool(folded(character))


def has_undivided(text: str) -> bool:
    """Whether a text holds what has another spelling: ß as ss, ł as l, Hebrew and Arabic with points."""
    return not text.isascii() and not _SPELT.keys().isdisjoint(map(ord, set(beyond_ascii(text))))


def spelt_out(text: str) -> str:
    """Return a text with such letters as people without a key for them write: Strasse, Lodz, oeufs."""
    spelt = text.translate(_SPELT)
    return spelt.upper() if text.isupper() else spelt  # no capital may stand where an identifier has a hump


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII.

    To drop the ASCII ones from its bytes takes a fifth of the time of looking at every character.
    """
    if text.isascii():
        return ""
    return (
        text.encode("utf-8", "surrogatepass").translate(None, _ASCII_BYTES).decode("utf-8", "surrogatepass")
    )


def is_near(text: str) -> bool:
    """Whether a text surely holds no script without spaces, no wide form and no emoji."""
    return text.isascii() or not any(map(_is_far, set(beyond_ascii(text))))


def _is_far(character: str) -> bool:
    """Whether a character comes after the alphabets and is no dash, arrow or the like.

    A pattern of these ranges takes longer to compile than a quick search takes.
    """
    return character >= "\u0e00" and (not "\u1800" <= character < "\u2e80" or character == "\u20bf")


def has_digit(text: str) -> bool:
    """Whether a text has a digit: most have none, and need not be looked through for numbers."""
    return any(map(str.isdigit, text))


def latin_share(text: str) -> float:
    """Return how many of a text's letters are of the Latin script; all, where there are no letters."""
    if text.isascii():
        return 1.0
    letters = [character for character in text if character.isalpha()]
    # U+024F ends Latin Extended-B; U+1E00–U+1EFF holds the rest that living languages use.
    latin = sum(character <= "\u024f" or "\u1e00" <= character <= "\u1eff" for character in letters)
    return latin / len(letters) if letters else 1.0


def idf(chunks: int, holding: int) -> float:
    """Return BM25's inverse document frequency of a term that `holding` of `chunks` hold."""
    if chunks < holding:
        return LEAST_IDF
    return max(LEAST_IDF, math.log((chunks - holding + 0.5) / (holding + 0.5)))


def idfs(chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return the idf of each word; a word that nothing holds weighs most."""
    return {word: idf(chunks, holding) for word, holding in frequencies.items()}
