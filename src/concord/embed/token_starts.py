"""Where the tokens of a byte-level BPE model begin, several times as fast as tokenising the whole text.

Such a tokenizer cuts a text into pieces by a regular expression and splits each piece on its own, so the
starts within a piece can be remembered: a text is mostly pieces that were seen before. Where a stretch of
text is ASCII we cut it by the same expression; elsewhere, where libraries disagree on what a letter is, into
whole words, each of which `tokenizers` splits once. The result is that of `tokenizers`, offset by offset.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from tokenizers.models import Model

from concord.embed.tokenizer import ModelTokenizer
from concord.text.clean import encodable

# Unicode's White_Space, spelled out: Python's \s has four control characters more.
_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_SPACES = f"[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
_WORDS = re.compile(f" ?[^{_SPACE}]+|{_SPACES}")
_PIECES = re.compile(f"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^{_SPACE}A-Za-z0-9]+|{_SPACES}")
_WORD_END = re.compile(f"[^{_SPACE}](?=[{_SPACE}])")  # no piece and no word crosses it
_SPACE_LETTER = "Ġ"  # how the vocabulary writes a space; offsets begin after it
_UNPRINTABLE = (*range(33), 127)  # ASCII that the vocabulary writes as U+0100, U+0101, …
_LETTERS = {code: chr(0x100 + index) for index, code in enumerate(_UNPRINTABLE)}

_STRETCH = 1024  # characters: short enough that one dash does not keep a page from being ASCII
_REMEMBERED = 1 << 16  # pieces, about 15 MB; then all are forgotten, and the frequent ones are soon back
_LONGEST = 64  # characters of what is remembered: longer ones hardly come back

Starts = Sequence[int]


class ByteLevelStarts:
    """Finds the token starts of a byte-level BPE model's texts."""

    def __init__(
        self, tokenizer: ModelTokenizer, *, stretch: int = _STRETCH, remembered: int = _REMEMBERED
    ) -> None:
        self._tokenizer = tokenizer
        self._stretch = stretch
        self._remembered = remembered
        self._known: dict[str, Starts] = {}
        self._busy = threading.Lock()

    def of(self, text: str) -> list[int]:
        """Return where each token begins."""
        starts: list[int] = []
        with self._busy:
            for begin, stretch in _stretches(encodable(text), self._stretch):
                parts = (_PIECES if stretch.isascii() else _WORDS).findall(stretch)
                starts += self._joined(parts, begin)
        return starts

    def close(self) -> None:
        """Forget all pieces."""
        with self._busy:
            self._known.clear()
            self.__dict__.pop("_model", None)  # what cached_property keeps

    def _joined(self, parts: Sequence[str], begin: int) -> list[int]:
        known = self._known.get
        positions = accumulate(map(len, parts), initial=begin)
        pairs = zip(parts, positions, strict=False)  # the last position is the end
        return [position + start for part, position in pairs for start in known(part) or self._learn(part)]

    def _learn(self, part: str) -> Starts:
        starts = tuple(self._split(part))
        if len(part) > _LONGEST:
            return starts
        if len(self._known) >= self._remembered:
            self._known.clear()
        self._known[part] = starts
        return starts

    def _split(self, part: str) -> Starts:
        if not part.isascii():
            return self._tokenizer.starts(part)
        pieces = _PIECES.findall(part)
        return self._split_piece(part) if len(pieces) == 1 else self._joined(pieces, 0)

    def _split_piece(self, piece: str) -> Starts:
        """Split by the model alone, which takes a third of the time of the whole tokenizer."""
        # str.translate takes longer than all the rest
        letters = piece.replace(" ", _SPACE_LETTER) if piece.isprintable() else piece.translate(_LETTERS)
        starts, end = [], 0
        for token in self._model.tokenize(letters):
            end += len(token.value)
            starts.append(end - len(token.value.lstrip(_SPACE_LETTER)))
        return starts

    @cached_property
    def _model(self) -> Model:
        model: Model = self._tokenizer.loaded.model
        return model


def _stretches(text: str, size: int) -> Iterator[tuple[int, str]]:
    """Cut a text at ends of words, about every `size` characters; return each stretch with its offset."""
    begin = 0
    while begin < len(text):
        found = _WORD_END.search(text, begin + size)
        end = found.end() if found else len(text)
        yield begin, text[begin:end]
        begin = end
