"""What tokens the lexical index keeps of a text: those of `text/terms.py`, ready made for PostgreSQL."""

from __future__ import annotations

import hashlib
from array import array

from concord.text.characters import folded
from concord.text.stem import stem
from concord.text.terms import tokenize

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens, surely_short = tokenize(text), _LONGEST_BYTES // 4
    if len(text) <= surely_short or max(map(len, tokens), default=0) <= surely_short:
        return tokens
    return [_shortened(token) for token in tokens]


class Vocabulary(dict[str, int]):
    """The tokens of texts that are indexed together, numbered as they come, by words before stemming.

    One look tells the number of a word, which would be one to stem it and others to count and place it.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # by token
        self.texts = bytearray()  # of all tokens, one after the other
        self.ends = array("q")

    def lexemes(self, text: str) -> map[int]:
        """Return the numbers of the tokens that `lexemes` returns."""
        return map(self.__getitem__, folded(text))

    def __missing__(self, word: str) -> int:
        token = _shortened(stem(word))
        number = self.numbers.get(token)
        if number is None:
            number = self.numbers[token] = len(self.numbers)
            self.texts += token.encode()
            self.ends.append(len(self.texts))
        self[word] = number
        return number


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
