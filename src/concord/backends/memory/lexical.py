"""Finding chunks of a memory store by words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from concord.backends.memory.contents import Contents, best
from concord.store.columns import LEAST_IDF, WEIGHTS, owner_and_name
from concord.text.similar import ALIKE, similar, typed
from concord.types import ChunkId, Filter, Match, Scored

# So many tokens are all looked at, which alone finds words by their middle or two slips early on: 6 ms, and
# who asks may wait for no more than 50 (`search.partial_ms`), of four words on a machine that has other work.
SMALL = 5000


class MemoryLexical:
    """Chunks by words."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def search(
        self, match: Match, filter: Filter, limit: int, known: Mapping[str, int] | None = None
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""
        with self._contents.reading():
            scores = self._contents.words.scores(match, WEIGHTS)
            found = (Scored(*item) for item in scores.items() if self._contents.allows(filter, item[0]))
            return best(found, limit)

    def is_at_hand(self, match: Match, filter: Filter, known: Mapping[str, int]) -> bool:
        """Return that nothing is: only numbers were read."""
        return False

    def frequencies(
        self, words: Sequence[str], sought_share: float | None = None
    ) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""
        with self._contents.reading():
            index = self._contents.words
            return len(index), {word: index.frequency(word) for word in words}

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks that have most of some name tokens, best first; ties by chunk id."""
        with self._contents.reading() as contents:
            scores: Counter[ChunkId] = Counter()
            for token in dict.fromkeys(tokens):
                holders = self._called(token)
                idf = math.log((len(contents.chunks) - len(holders) + 0.5) / (len(holders) + 0.5))
                scores.update(dict.fromkeys(holders, max(LEAST_IDF, idf)))
            found = (Scored(*item) for item in scores.items() if contents.allows(filter, item[0]))
            return best(found, limit)

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each of some name tokens."""
        with self._contents.reading():
            return {token: len(self._called(token)) for token in tokens}

    def _called(self, token: str) -> set[ChunkId]:
        """Return the chunks that have a name and, if it is asked for with an owner, the owner too."""
        owner, name = owner_and_name(token)
        holders = self._contents.named.get(name, set())
        return holders & self._contents.named.get(f"@{owner}", set()) if owner else holders

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""
        asked = typed(word)
        if asked is None or limit < 1:
            return []
        with self._contents.reading():
            index, columns = self._contents.words, self._contents.indexed
            start = asked.word[:ALIKE] if asked.allowed else asked.word
            is_small = index.tokens <= SMALL
            tokens = index.vocabulary() if is_small else index.promising(start, asked.one_off)
            return similar(asked, tokens, lambda token: index.spellings(token, columns), limit)
