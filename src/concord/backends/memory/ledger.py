"""What a memory store knows of vectors that are kept outside: an empty one stands for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice

from concord.backends.memory.contents import Contents, allows
from concord.types import ChunkId, Filter, Home, Identity

_OUTSIDE = b""


class MemoryLedger:
    """The ledger of one memory store."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def home(self) -> Home:
        """Return where the vectors are kept."""
        with self._contents.reading() as contents:
            return contents.kept_at()

    def own(self) -> Home:
        """Return where the vectors are kept, under a key of this store: in a copy, all is sent again."""
        with self._contents.reading() as contents:
            home, is_known = contents.kept_at(), contents.birthplace == contents.here()
        if not home.url or is_known:
            return home
        with self._contents.changing() as contents:
            if contents.kept_at().is_anothers:
                contents.move_home(home.url)
            contents.birthplace = contents.here()
            return contents.kept_at()

    def is_empty(self) -> bool:
        """Whether no chunk has a vector in any space, wherever they are kept."""
        with self._contents.reading() as contents:
            return not any(held.vectors for held in contents.spaces.values())

    def move(self, url: str) -> None:
        """Keep vectors there from now on: every chunk is pending in every space, and nothing is unsettled."""
        with self._contents.changing() as contents:
            contents.move_home(url)

    def left(self) -> list[Home]:
        """Return the homes that vectors were moved away from and still lie in, the oldest first."""
        with self._contents.reading() as contents:
            return list(contents.left)

    def forget(self, home: Home) -> None:
        """Take note that nothing of this store is left there."""
        with self._contents.changing() as contents:
            contents.left = [one for one in contents.left if one != home]

    def mark(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Take note that these chunks' vectors have been acknowledged outside."""
        with self._contents.changing() as contents:
            alive = contents.chunks.keys() & set(chunk_ids)
            if identity in contents.spaces:
                contents.spaces[identity].vectors.update(dict.fromkeys(alive, _OUTSIDE))

    def unmark(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again in one space; return how many were not."""
        with self._contents.changing() as contents:
            marked = contents.spaces[identity].vectors if identity in contents.spaces else {}
            doomed = marked.keys() & set(contents.chunk_ids(source_id))
            for chunk_id in doomed:
                del marked[chunk_id]
            return len(doomed)

    def unsettled(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes that were not told to the vector store outside, each with its turn."""
        with self._contents.reading() as contents:
            return list(islice(contents.unsettled.items(), limit))

    def settle(self, turns: Sequence[int]) -> None:
        """Take note that the vector store outside knows of the changes that had these turns."""
        with self._contents.changing() as contents:
            for turn in turns:
                contents.unsettled.pop(turn, None)

    def allowed(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> set[ChunkId]:
        """Return those of the chunks that exist and that a filter lets through."""
        with self._contents.reading() as contents:
            return {i for i in chunk_ids if i in contents.chunks and contents.allows(filter, i)}

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the ids of the documents that a filter lets through; None when they are more than `most`."""
        with self._contents.reading() as contents:
            found = [document.id for document in contents.documents.values() if allows(filter, document)]
        return found if len(found) <= most else None

    def exclusive(self, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to change what is kept outside.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        return self._contents.exclusive("vectors kept elsewhere", "changing the vectors", wait_s)
