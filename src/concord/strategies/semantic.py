"""Looking for meaning: the chunks whose vectors are nearest to the query's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from concord.strategies.query_vectors import QueryVectors
from concord.types import Candidate, ChunkId, Family, Query, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from concord.protocols import Embedder
    from concord.vector_storage import VectorIndex


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
        """Return False: a model and an index are asked."""
        return False

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        return self._index.fetch(chunk_ids)

    def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
        """Return vectors before it is known whether they are needed."""
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

    def is_word(self, word: str) -> bool:
        """Whether a word is a token of the model, whole."""
        return self._vectors.is_word(word)

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

    def cosines(self) -> dict[ChunkId, float]:
        """Return the cosines of the query and of the chunks."""
        return self._compared_with(self._query)

    def feedback_cosines(self, like: Mapping[ChunkId, float], strength: float) -> dict[ChunkId, float]:
        """Return the cosines of the query after moving it towards some chunks by weight (Rocchio 1971)."""
        import numpy as np

        known = {self._places[i]: share for i, share in like.items() if i in self._places}
        if not known:
            return self.cosines()
        weights = np.array([*known.values()])
        nearby = (self._matrix[[*known]] * weights[:, None]).sum(axis=0) / weights.sum()  # np.average is slow
        query = self._query + strength * nearby.astype(np.float32)
        return self._compared_with(query / np.linalg.norm(query))

    def likeness(self, chunk_id: ChunkId) -> dict[ChunkId, float]:
        """Return the cosines between one chunk and each of the others; nothing if it has no vector."""
        if chunk_id not in self._places:
            return {}
        found = self._compared_with(self._matrix[self._places[chunk_id]])
        del found[chunk_id]
        return found

    def _compared_with(self, query: NDArray[np.float32]) -> dict[ChunkId, float]:
        import numpy as np

        # Not `matrix @ query`: several threads for so little work wait longer for each other than they save.
        return dict(zip(self._places, np.einsum("ij,j->i", self._matrix, query).tolist(), strict=True))
