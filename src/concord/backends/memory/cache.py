"""Vectors of texts that a memory store has seen before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.backends.memory.contents import Contents
from concord.core.reports import CacheUsage
from concord.types import Identity, Vector


class MemoryCache:
    """Vectors by text, the least recently used first."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity."""
        with self._contents.reading() as contents:
            known = contents.cached
            found = {key: known[identity, key] for key in keys if (identity, key) in known}
        if found:
            with self._contents.changing() as contents:
                contents.cache_hits += len(found)
                self._use(identity, found)
        return found

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors; each counts as a look-up that found nothing."""
        if not vectors:
            return
        with self._contents.changing() as contents:
            contents.cache_misses += len(vectors)
            self._use(identity, vectors)

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, the least recently used first."""
        with self._contents.reading() as contents:
            known = list(contents.cached.items())
        yield from ((identity, key, vector) for (identity, key), vector in known)

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""
        with self._contents.reading() as contents:
            size = sum(map(len, contents.cached.values()))
            return CacheUsage(len(contents.cached), size, contents.cache_hits, contents.cache_misses)

    def trim(self, max_bytes: int) -> int:
        """Forget the least recently used until the vectors fit; return how many were forgotten."""
        if self.usage().size_bytes <= max_bytes:
            return 0
        with self._contents.changing() as contents:
            before, size = len(contents.cached), sum(map(len, contents.cached.values()))
            while size > max_bytes:
                size -= len(contents.cached.pop(next(iter(contents.cached))))
            return before - len(contents.cached)

    def _use(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        known = self._contents.cached
        for key, vector in vectors.items():
            known.pop((identity, key), None)
            known[identity, key] = vector
