"""Where the tokens of a byte-level BPE model begin, several times as fast as tokenising the whole text.

Such a tokenizer cuts a text by a regular expression and splits each piece on its own. Pieces never cross the
border of a word and the one space before it, so the starts within a word are remembered: a text is mostly
words that were seen before. The result is what `tokenizers` itself returns, offset by offset.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from itertools import accumulate

from concord.embedders.tokens import Tokens, speakable

# Unicode's White_Space, spelled out: Python's \s has four control characters more.
_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_SPACES = f"[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
_WORDS = re.compile(f" ?[^{_SPACE}]+|{_SPACES}")
# GPT-2's expression for text that is ASCII; elsewhere letters and numbers are left to `tokenizers`
_PIECES = re.compile(f"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^{_SPACE}A-Za-z0-9]+|{_SPACES}")
_SPACE_LETTER = "Ġ"  # how the vocabulary writes a space; offsets begin after it
_UNPRINTABLE = (*range(33), 127)  # ASCII that the vocabulary writes as U+0100, U+0101, …
_LETTERS = {code: chr(0x100 + index) for index, code in enumerate(_UNPRINTABLE)}

_BLOCK = 1 << 20  # characters cut at once: bounds the list of words of a very long text
_REMEMBERED = 1 << 17  # words, at most 25 MB; then all are forgotten, and the frequent ones are soon back
_LONGEST = 24  # longer words with punctuation in them are put together from their pieces each time

Starts = Sequence[int]


class ByteLevelStarts:
    """Finds the token starts of a byte-level BPE model's texts."""

    def __init__(self, tokens: Tokens, *, block: int = _BLOCK, remembered: int = _REMEMBERED) -> None:
        self._tokens = tokens
        self._block = block
        self._remembered = remembered
        self._known: dict[str, Starts] = {}
        self._busy = threading.Lock()

    def of(self, text: str) -> list[int]:
        """Return where each token begins."""
        text = speakable(text)
        with self._busy:
            known = self._known.get
            return [
                position + start
                for words, begin in _blocks(text, self._block)
                for word, position in zip(words, accumulate(map(len, words), initial=begin), strict=False)
                for start in known(word) or self._learn(word)
            ]

    def close(self) -> None:
        """Forget all words."""
        with self._busy:
            self._known.clear()

    def _learn(self, word: str) -> Starts:
        if not word.isascii():
            return self._remember(word, self._tokens.starts(word))
        pieces = _PIECES.findall(word)
        if len(pieces) == 1:
            return self._remember(word, self._split(word))
        positions = accumulate(map(len, pieces), initial=0)
        pairs = zip(pieces, positions, strict=False)
        starts = [at + start for piece, at in pairs for start in self._known.get(piece) or self._learn(piece)]
        return self._remember(word, starts) if len(word) <= _LONGEST else starts

    def _split(self, piece: str) -> Starts:
        """Split one piece by the model alone: a third of the time of the whole tokenizer."""
        values = [token.value for token in self._tokens.tokenizer.model.tokenize(piece.translate(_LETTERS))]
        ends = accumulate(map(len, values))
        return [end - len(value.lstrip(_SPACE_LETTER)) for value, end in zip(values, ends, strict=True)]

    def _remember(self, word: str, starts: Starts) -> Starts:
        if len(self._known) >= self._remembered:
            self._known.clear()
        self._known[word] = kept = tuple(starts)
        return kept


def _blocks(text: str, block: int) -> Iterator[tuple[list[str], int]]:
    """Cut a text into words, a block at a time, each block with the offset at which it begins."""
    begin, size = 0, block
    while begin < len(text):
        words = _WORDS.findall(text, begin, begin + size)
        if begin + size < len(text):
            if len(words) == 1:
                size *= 2
                continue
            words.pop()  # cut short by the block's end, perhaps
        yield words, begin
        begin, size = begin + sum(map(len, words)), block
