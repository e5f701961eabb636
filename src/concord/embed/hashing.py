"""An embedder without a model: words and letter triples hashed into 256 numbers.

Deterministic and made of the standard library alone. It knows no meaning, only that texts which share words,
word stems or spelling are near. It stands in for a model in tests, and serves where none can be installed.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from concord.core.overriding import override
from concord.core.protocols import Embedder
from concord.types import Identity, Vector

if TYPE_CHECKING:
    from concord.core.config import Paths

DIMENSION = 256
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_ENDINGS = re.compile(r"(?:ations?|ational|ingly|edly|ings?|ness|ments?|ers?|ed|ly|ies|es|s)$")
_SHORTEST_STEM = 3
# A whole word says most, a triple of letters least; there are many triples to a word.
_WORD_WEIGHT, _STEM_WEIGHT, _TRIPLE_WEIGHT = 1.0, 0.8, 0.25
_SHORT_WORD_WEIGHT = 0.3  # up to three letters: mostly articles and prepositions


class HashingEmbedder(Embedder):
    """Reads no options."""

    identity = Identity(provider="hashing", model=f"hashing-{DIMENSION}", dimension=DIMENSION)
    max_tokens = 512  # no limit of the method: what callers cut their chunks by
    overflowed = 0
    is_warm = True  # there is nothing to load

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        """Take the arguments that every embedder gets; none of them is needed."""

    @override
    def token_starts(self, text: str) -> Sequence[int]:
        return [match.start() for match in _TOKEN.finditer(text)]

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> Vector:
        sums = [0.0] * DIMENSION
        for feature, weight in _features(text):
            index, sign = _place(feature)
            sums[index] += sign * weight
        return _to_vector(sums)

    @override
    def warm(self) -> None:
        pass

    @override
    def close(self) -> None:
        pass


def _features(text: str) -> Iterator[tuple[str, float]]:
    counts = Counter(_WORD.findall(text.casefold()))
    if not counts:
        yield text, 1.0  # punctuation only, or nothing: equal texts are still equal
    for word, count in counts.items():
        often = math.sqrt(count)  # the tenth mention says less than the first
        yield word, often * (_WORD_WEIGHT if len(word) > _SHORTEST_STEM else _SHORT_WORD_WEIGHT)
        yield "stem " + _stem(word), often * _STEM_WEIGHT * (len(word) > _SHORTEST_STEM)
        edged = f"^{word}$"
        for start in range(len(edged) - 2):
            yield "part " + edged[start : start + 3], often * _TRIPLE_WEIGHT


def _stem(word: str) -> str:
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) >= _SHORTEST_STEM else word


@lru_cache(maxsize=1 << 16)
def _place(feature: str) -> tuple[int, int]:
    """Return a feature's dimension and sign; the sign lets features that collide cancel out on average."""
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest[:2], "little") % DIMENSION, 1 if digest[2] & 1 else -1


def _to_vector(sums: Sequence[float]) -> Vector:
    length = math.hypot(*sums)
    if length == 0:  # all features cancelled out: rare, and any direction is as good
        return _to_vector([1.0, *[0.0] * (DIMENSION - 1)])
    return array("f", [value / length for value in sums]).tobytes()
