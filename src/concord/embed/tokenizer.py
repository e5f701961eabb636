"""Text to token numbers: what a model reads, and where each token begins in the text."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence

from tokenizers import Tokenizer

from concord.core.errors import EmbedderDown
from concord.text.clean import encodable

# Characters that are tokenised at once: `tokenizers` takes 200 bytes for each. No token crosses the end of a
# word, so the starts are those of the whole text.
_STRETCH = 1 << 16
_WORD_END = re.compile(r"\S(?=[ \n])")
_PADDING_NAMES = ("<pad>", "[PAD]")
_PROBE = "a"  # one plain letter: what a model adds around it, it adds around any text


class ModelTokenizer:
    """A model's tokenizer, loaded at first use, without the truncation and padding that its file may ask for.

    Text that spells a special token (`</s>`) is read as text: a document must not be able to end itself.
    """

    def __init__(self, read: Callable[[], bytes | Tokenizer]) -> None:
        self._read = read  # returns a tokenizer.json, or what was made of another kind of file
        self._loading = threading.Lock()
        self._loaded: Tokenizer | None = None
        self._padding = 0
        self._around: tuple[list[int], list[int]] = ([], [])

    @property
    def is_loaded(self) -> bool:
        """Whether the next call will not have to load the tokenizer."""
        return self._loaded is not None

    @property
    def loaded(self) -> Tokenizer:
        """The tokenizer itself, loaded if it is not yet."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    @property
    def padding(self) -> int:
        """The number that fills up short rows."""
        return self._padding

    def close(self) -> None:
        """Free the tokenizer."""
        with self._loading:
            self._loaded = None

    def special(self) -> int:
        """Return how many special tokens go around a text."""
        return self.loaded.num_special_tokens_to_add(False)

    def starts(self, text: str) -> Sequence[int]:
        """Return where each token of a text begins, special tokens left out."""
        encode, starts = self.loaded.encode, array("I")  # a list of as many numbers takes nine times the room
        for begin, stretch in _stretches(encodable(text)):
            encoding = encode(stretch, add_special_tokens=False)
            starts.fromlist([begin + start for start, _ in encoding.offsets])
        return starts

    def windows(self, text: str, window: int) -> list[list[int]]:
        """Cut a text into as many rows of even length as it needs, each with its special tokens."""
        ids = self.loaded.encode(encodable(text), add_special_tokens=False).ids
        before, after = self._around
        capacity = max(1, window - len(before) - len(after))
        count = max(1, -(-len(ids) // capacity))
        size = max(1, -(-len(ids) // count))
        pieces = [ids[start : start + size] for start in range(0, len(ids), size)] or [[]]
        return [[*before, *piece, *after] or [self._padding] for piece in pieces]

    def _load(self) -> Tokenizer:
        try:
            read = self._read()
            tokenizer = read if isinstance(read, Tokenizer) else Tokenizer.from_buffer(read)
        except ValueError as fault:
            raise EmbedderDown(
                f"the model's tokenizer cannot be read: {fault}", hint="install it again"
            ) from fault
        self._padding = padding_id(tokenizer)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._around = _around(tokenizer)
        return tokenizer


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text after words, and return each stretch with its offset."""
    begin = 0
    while begin < len(text):
        word = _WORD_END.search(text, begin + _STRETCH)
        end = word.end() if word else len(text)
        yield begin, text[begin:end]
        begin = end


def _around(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    bare = tokenizer.encode(_PROBE, add_special_tokens=False).ids
    full = tokenizer.encode(_PROBE).ids
    first = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
    return full[:first], full[first + len(bare) :]


def padding_id(tokenizer: Tokenizer) -> int:
    """Return the token that fills rows up, which few tokenizers name and most have."""
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    numbers = map(tokenizer.token_to_id, _PADDING_NAMES)
    return next((number for number in numbers if number is not None), 0)
