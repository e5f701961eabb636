"""What tokens the lexical index keeps of a text: those of `text/terms.py`, ready made for PostgreSQL."""

from __future__ import annotations

import hashlib

from concord.text.tokens import folded, stem, tokenize

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it
_SURELY_SHORT = _LONGEST_BYTES // 4  # characters
# A posting is one number: how often the token occurs in each of the four columns, then the chunk's length.
COUNT_BITS = 8
MOST_COUNTED = 255
LENGTH_BITS = 32


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens = tokenize(text)
    if len(text) <= _SURELY_SHORT or max(map(len, tokens), default=0) <= _SURELY_SHORT:
        return tokens
    return [_shortened(token) for token in tokens]


# What `folded` makes of each character of ASCII, for texts that have no other: bytes are folded and split in
# half the time.
_FOLDED = bytes(ord("".join(folded(chr(code))) or " ") for code in range(0x80)) + bytes(range(0x80, 0x100))


class Vocabulary(dict[str | bytes, int]):
    """Tokens, numbered as they come, by words before stemming.

    One look tells the number of a word, which would be one to stem it and others to count and place it.
    """

    def __init__(self) -> None:
        self.tokens: list[str] = []  # by number
        self._numbers: dict[str, int] = {}  # by token

    def lexemes(self, text: str) -> map[int]:
        """Return the numbers of the tokens that `lexemes` returns."""
        words = text.encode().translate(_FOLDED).split() if text.isascii() else folded(text)
        return map(self.__getitem__, words)

    def __missing__(self, word: str | bytes) -> int:
        text = word if isinstance(word, str) else word.decode()
        token = stem(text) if len(text) <= _SURELY_SHORT else _shortened(stem(text))
        number = self[word] = self._numbers.setdefault(token, len(self.tokens))
        if number == len(self.tokens):
            self.tokens.append(token)
        return number


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
