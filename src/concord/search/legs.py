"""Who looks, and with what? All words (`fts_exact`), any word (`fts_relaxed`), meaning (`semantic`)."""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from concord.core.errors import wrong_dimension
from concord.search.calibration import UNFITTED, Calibration
from concord.search.deadline import LATE_S, Breaker
from concord.text.tokens import pattern
from concord.types import FLOAT_BYTES, ChunkId, Degraded, Leg, Match, Query, RankedList, Scored, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from concord.core.protocols import Embedder, Reranker, Strategy
    from concord.search.reader_model import ReaderModel
    from concord.store.contract import Snapshot, Store, VectorIndex, WordIndex

LEXICAL = ("fts_exact", "fts_relaxed")
STRATEGIES = (*LEXICAL, "semantic")  # the order in which they are always named
NAMES = "names"  # as a strategy: chunks that define what the query names, or the place it points to
STEPS = ("fts_prefix", "fts_partial")  # as strategies: what the steps of the fallback find
BUILT_IN = frozenset({*STRATEGIES, NAMES, *STEPS})
# Sorting a thousand scores rather than forty costs the engine next to nothing, and most of what meaning finds
# is among them: both scores of a candidate are known without asking again.
KNOWN = 1000
CACHE_ENTRIES, CACHE_SECONDS = 50, 60.0
# Of a query. What is asked for is said in that much; a pasted file would keep a model busy for half a minute.
MAX_TOKENS = 512
_SHARE = 7 / 8  # of a window: the rest is for what a model wants before a query, and for estimated tokens
_TOKEN_CHARACTERS = 8  # more than a token has in any language, except for runs of one letter or of blanks
_CHARACTER_TOKENS = 4  # at most: one for each byte
LANGUAGE_WORDS = 4  # by which a language can be recognised; fewer may be names
TELLING_LETTERS = 4  # of a word: "en" or "la" is a word of many languages, and a token of most models
_WORD = pattern(r"\w+")


class Tools(Struct, frozen=True):
    """What a search works with: the adapters that are open, and the settings."""

    store: Store
    strategies: Sequence[Strategy]
    settings: Mapping[str, Any]
    org: str
    similarity: Semantic | None = None  # for cosines of chunks that the semantic strategy did not return
    calibration: Calibration = UNFITTED
    reranker: Reranker | None = None
    snapshot: Snapshot | None = None  # if it was taken already
    absent: Degraded | None = None  # why meaning is not among the strategies, where it should be
    reader: ReaderModel | None = None
    unread: Degraded | None = None  # why there is no reader, where there should be


class ExactWords:
    """Every significant term and every phrase."""

    name = "fts_exact"
    leg: Leg = "lexical"

    def __init__(self, index: WordIndex) -> None:
        self._index = index

    def search(self, query: Query) -> RankedList:
        """Return the chunks that hold what is asked for."""
        return self._found(query.exact, query, query.candidates)

    def _found(self, match: Match | None, query: Query, limit: int) -> RankedList:
        found = self._index.search(match, query.filter, limit) if match else []
        return RankedList(self.name, self.leg, found)


class RelaxedWords(ExactWords):
    """Any significant term that is not too frequent to mean anything; the scores of many more are known."""

    name = "fts_relaxed"

    def search(self, query: Query) -> RankedList:
        """Return the chunks that hold any of what is asked for."""
        return self._found(query.loose, query, max(KNOWN, query.candidates))


class Semantic:
    """The nearest chunks by cosine similarity, behind a breaker around embedder and vector store."""

    name = "semantic"
    leg: Leg = "semantic"

    def __init__(
        self, index: VectorIndex, embedder: Embedder, *, retry_s: float = 0.0, late_s: float = LATE_S
    ) -> None:
        self._index = index
        self.vectors = QueryVectors(embedder)
        self._breaker = Breaker("semantic search", retry_s=retry_s, late_s=late_s)

    def search(self, query: Query) -> RankedList:
        """Return the nearest chunks; a query without a single letter or digit has no meaning to look for."""
        if not any(map(str.isalnum, query.meaning)):
            return RankedList(self.name, self.leg, [])

        def nearest() -> Sequence[Scored]:
            vector = self.vectors.vector(query.meaning)
            return self._index.search(vector, query.filter, query.candidates, ef_search=query.ef_search)

        return RankedList(self.name, self.leg, self._breaker.call(nearest))

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        return self._breaker.call(lambda: self._index.fetch(chunk_ids))

    def compare(self, text: str, stored: Mapping[ChunkId, Vector]) -> Comparison:
        """Return a query's vector beside those of chunks; only a query that is not known is embedded."""
        return Comparison(self._breaker.call(lambda: self.vectors.vector(text)), stored)

    def close(self) -> None:
        """Report no failure of calls under way. The index belongs to the store, which closes it."""
        self._breaker.close()


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

    def vector(self, text: str) -> Vector:
        """Return the query's vector, embedding it only if it is not known; of a long one, its beginning's."""
        text = _beginning(text, self._embedder)
        identity = self._embedder.identity
        key = (text, identity.provider, identity.model)
        with self._lock:
            if (kept := self._kept.get(key)) and self._clock() - kept[0] < CACHE_SECONDS:
                self._kept.move_to_end(key)
                return kept[1]
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


def _beginning(text: str, embedder: Embedder) -> str:
    most = int(min(MAX_TOKENS, embedder.max_tokens) * _SHARE)
    if len(text) * _CHARACTER_TOKENS <= most:
        return text
    text = text[: most * _TOKEN_CHARACTERS]  # first, because to count the tokens of a whole file takes long
    starts = embedder.token_starts(text)
    return text if len(starts) <= most else text[: starts[most]]


class Comparison:
    """The vectors of a query and of chunks: comparing them again needs no store and no model."""

    def __init__(self, query: Vector, stored: Mapping[ChunkId, Vector]) -> None:
        import numpy as np  # the runtime that made the query's vector has loaded it already

        self._places = {chunk_id: place for place, chunk_id in enumerate(stored)}
        self._query = np.frombuffer(query, dtype="<f4")
        numbers = np.frombuffer(b"".join(stored.values()), dtype="<f4")
        self._matrix = numbers.reshape(len(stored), len(self._query))

    def cosines(self) -> dict[ChunkId, float]:
        """Return the cosines of the query and of the chunks."""
        return dict(zip(self._places, self._with(self._query).tolist(), strict=True))

    def feedback_cosines(self, hits: Mapping[ChunkId, float], strength: float) -> dict[ChunkId, float]:
        """Return the cosines of the query, mixed with those of the hit that is most like each chunk.

        What a hit is mapped to is taken off its cosines.
        """
        import numpy as np

        known = {self._places[i]: behind for i, behind in hits.items() if i in self._places}
        if not known:
            return self.cosines()
        like = [self._with(self._matrix[place]) - behind for place, behind in known.items()]
        nearest = functools.reduce(np.maximum, like)
        near = (self._with(self._query) + strength * nearest) / (1 + strength)
        return dict(zip(self._places, near.tolist(), strict=True))

    def _with(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np

        # Not `matrix @ vector`: several threads for so little work wait longer for each other than they save.
        cosines: NDArray[np.float32] = np.einsum("ij,j->i", self._matrix, vector)
        return cosines
