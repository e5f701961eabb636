"""Looking for meaning: the chunks whose vectors are nearest to the query's."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from concord.errors import EmbedderDown
from concord.protocols import Embedder, VectorIndex
from concord.text.pattern import pattern
from concord.types import FLOAT_BYTES, Candidate, ChunkId, Family, Query, Vector

CACHE_ENTRIES = 50
CACHE_SECONDS = 60.0
# Of a query. What is asked for is said in that much, and a pasted file would keep the model busy for half a
# minute: everybody's model, at the cost of everybody's searches.
MOST_TOKENS = 512
_SHARE = 7 / 8  # of a window: the rest is for what a model wants before a query, and for estimated tokens
_TOKEN_CHARACTERS = 8  # more than a token has in any language, but for runs of one letter or of blanks
_CHARACTER_TOKENS = 4  # at most: one for each byte
LANGUAGE_WORDS = 4  # by which a language can be told; fewer may be names
TELLING_LETTERS = 4  # of a word: "en" or "la" is a word of many languages, and a token of most models
_WORD = pattern(r"\w+")
FEEDBACK = 0.6  # how strongly the first hits draw the query: better on four of five collections of prose


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
        if len(vector) != identity.dimension * FLOAT_BYTES:  # kept, it would outlive the fault that made it
            raise EmbedderDown(
                f"{identity.model} answers with {len(vector) // FLOAT_BYTES} dimensions,"
                f" not with {identity.dimension}",
                hint="see which model the provider has loaded",
            )
        with self._lock:
            self._kept[key] = (self._clock(), vector)
            self._kept.move_to_end(key)
            while len(self._kept) > CACHE_ENTRIES:
                self._kept.popitem(last=False)
        return vector

    def known_words(self, text: str) -> float:
        """Return the share of longer words that are one token each: most, in the language of the model."""
        text = _beginning(text, self._embedder)
        words = [range(word.start() + 1, word.end()) for word in _WORD.finditer(text)]
        telling = [inside for inside in words if len(inside) + 1 >= TELLING_LETTERS]
        if len(words) < LANGUAGE_WORDS or not telling:
            return 1.0
        starts = set(self._embedder.token_starts(text))
        return sum(map(starts.isdisjoint, telling)) / len(telling)

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


class Semantic:
    """The nearest chunks by cosine similarity."""

    name = "semantic"
    family: Family = "semantic"

    def __init__(self, index: VectorIndex, embedder: Embedder) -> None:
        self._index = index
        self._vectors = QueryVectors(embedder)

    def candidates(self, query: Query) -> list[Candidate]:
        """Return the nearest chunks; a query without a single letter or digit has no meaning to look for."""
        if not any(map(str.isalnum, query.meaning)):
            return []
        vector = self._vectors.vector(query.meaning)
        found = self._index.search(
            vector, query.filter, query.candidates, ef_search=query.ef_search, with_vectors=True
        )
        return [
            Candidate(hit.chunk_id, self.name, self.family, rank, hit.score, hit.vector)
            for rank, hit in enumerate(found, 1)
        ]

    def is_at_hand(self, query: Query) -> bool:
        """Return that it is not: a model and an index are asked."""
        return False

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        return self._index.fetch(chunk_ids)

    def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
        """Return the same before it is known whether they are needed."""
        return self._index.fetch(chunk_ids)

    def remembered(self, text: str) -> Vector | None:
        """Return the query's vector, if it is known."""
        return self._vectors.remembered(text)

    def forget(self) -> None:
        """Forget the vectors of recent queries."""
        self._vectors.forget()

    def known_words(self, text: str) -> float:
        """Return the share of a query's words that are tokens of the model, whole."""
        return self._vectors.known_words(text)

    def compare(self, text: str, stored: Mapping[ChunkId, Vector], query: Vector | None = None) -> Fetched:
        """Return the query's vector beside those of chunks."""
        return Fetched(query or self._vectors.vector(text), stored)


class Fetched:
    """The vectors of a query and of chunks."""

    def __init__(self, query: Vector, stored: Mapping[ChunkId, Vector]) -> None:
        import numpy as np  # the runtime that made the query's vector has loaded it already

        self._places = {chunk_id: place for place, chunk_id in enumerate(stored)}
        self._query = np.frombuffer(query, dtype="<f4")
        numbers = np.frombuffer(b"".join(stored.values()), dtype="<f4")
        self._matrix = numbers.reshape(len(stored), len(self._query))

    def cosines(self, like: Mapping[ChunkId, float] | None = None) -> dict[ChunkId, float]:
        """Return the cosines of the query and of the chunks.

        With `like`, the query is first drawn towards these chunks by their weights: Rocchio's feedback, among
        vectors.
        """
        import numpy as np

        query = self._query
        drawn = {self._places[i]: share for i, share in (like or {}).items() if i in self._places}
        if drawn:
            nearby = np.average(self._matrix[[*drawn]], axis=0, weights=[*drawn.values()])
            query = query + FEEDBACK * nearby.astype(np.float32)
            query = query / np.linalg.norm(query)
        # Not `matrix @ query`: several threads for so little work wait longer for each other than they save.
        return dict(zip(self._places, np.einsum("ij,j->i", self._matrix, query).tolist(), strict=True))
