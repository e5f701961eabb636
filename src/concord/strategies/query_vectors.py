"""The vectors of recent queries, and how much of a query a model is given."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from concord.errors import wrong_dimension
from concord.text.pattern import pattern
from concord.types import FLOAT_BYTES, Vector

if TYPE_CHECKING:
    from concord.protocols import Embedder

CACHE_ENTRIES = 50
CACHE_SECONDS = 60.0
# Of a query. What is asked for is said in that much, and a pasted file would keep the model busy for half a
# minute: everybody's model, at the cost of everybody's searches.
MOST_TOKENS = 512
_SHARE = 7 / 8  # of a window: the rest is for what a model wants before a query, and for estimated tokens
_TOKEN_CHARACTERS = 8  # more than a token has in any language, except for runs of one letter or of blanks
_CHARACTER_TOKENS = 4  # at most: one for each byte
LANGUAGE_WORDS = 4  # by which a language can be told; fewer may be names
TELLING_LETTERS = 4  # of a word: "en" or "la" is a word of many languages, and a token of most models
_WORD = pattern(r"\w+")


class QueryVectors:
    """The vectors of recent queries, so that paging and retries embed nothing. Never holds results.

    Keyed by query, provider and model; 50 entries for 60 seconds, because a conversation repeats itself soon
    or not at all.
    """

    def __init__(self, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], tuple[float, Vector]] = OrderedDict()

    def remembered(self, text: str) -> Vector | None:
        """Return the query's vector, if it is known."""
        return self._known(self._key(_beginning(text, self._embedder)))

    def vector(self, text: str) -> Vector:
        """Return the query's vector, embedding it only if it is not known; of a long one, its beginning's."""
        text = _beginning(text, self._embedder)
        key, identity = self._key(text), self._embedder.identity
        if (known := self._known(key)) is not None:
            return known
        vector = self._embedder.embed_query(text)
        if len(vector) != identity.dimension * FLOAT_BYTES:  # in the cache it would outlive the fault
            raise wrong_dimension(identity, len(vector) // FLOAT_BYTES)
        with self._lock:
            self._kept[key] = (self._clock(), vector)
            self._kept.move_to_end(key)
            while len(self._kept) > CACHE_ENTRIES:
                self._kept.popitem(last=False)
        return vector

    def known_words(self, text: str) -> float:
        """Return the share of longer words that are one token each: most, in the language of the model."""
        text = f" {_beginning(text, self._embedder)}"  # some models have words as tokens only after a blank
        words = [range(word.start() + 1, word.end()) for word in _WORD.finditer(text)]
        telling = [inside for inside in words if len(inside) + 1 >= TELLING_LETTERS]
        if len(words) < LANGUAGE_WORDS or not telling:
            return 1.0
        starts = set(self._embedder.token_starts(text))
        return sum(map(starts.isdisjoint, telling)) / len(telling)

    def is_word(self, word: str) -> bool:
        """Whether a word is one token."""
        text = f" {word}"
        return not any(1 < start < len(text) for start in self._embedder.token_starts(text))

    def forget(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._kept.clear()

    def _key(self, text: str) -> tuple[str, str, str]:
        return text, self._embedder.identity.provider, self._embedder.identity.model

    def _known(self, key: tuple[str, str, str]) -> Vector | None:
        with self._lock:
            if (kept := self._kept.get(key)) and self._clock() - kept[0] < CACHE_SECONDS:
                self._kept.move_to_end(key)
                return kept[1]
        return None


def _beginning(text: str, embedder: Embedder) -> str:
    """Return as much of a query as is embedded at once."""
    most = int(min(MOST_TOKENS, embedder.max_tokens) * _SHARE)
    if len(text) * _CHARACTER_TOKENS <= most:
        return text
    text = text[: most * _TOKEN_CHARACTERS]  # first, because to count the tokens of a whole file takes long
    starts = embedder.token_starts(text)
    return text if len(starts) <= most else text[: starts[most]]
