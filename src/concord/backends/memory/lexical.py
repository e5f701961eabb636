"""Finding chunks of a memory store by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.backends.columns import WEIGHTS
from concord.backends.memory.contents import Contents, best
from concord.text.nearness import ALIKE, similar, typed
from concord.types import Filter, Match, Scored

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
