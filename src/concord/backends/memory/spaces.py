"""The spaces of a memory store: vectors of each model, one of which searches use."""

from __future__ import annotations

from collections.abc import Mapping

from concord.backends.memory.contents import Contents, Held
from concord.backends.memory.vectors import MemoryVectors
from concord.store.store_errors import space_in_use, unknown_space
from concord.types import Identity, Json, Space


class MemorySpaces:
    """The spaces of one store."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        with self._contents.reading():
            active, spaces = self._contents.active, self._contents.spaces
            return [
                Space(who, dict(held.recipe), who == active, held.was_active) for who, held in spaces.items()
            ]

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder."""
        return next((space for space in self.all() if space.is_active), None)

    def of(self, identity: Identity) -> MemoryVectors:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        return MemoryVectors(self._contents, identity)

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; if it is there already, only its recipe is replaced."""
        with self._contents.changing():
            self._contents.spaces.setdefault(identity, Held()).recipe = dict(recipe)
            self._contents.activate(self._contents.active or identity)

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on.

        Raises:
            NotFound: there is no such space.
        """
        with self._contents.changing():
            self._known(identity)
            self._contents.activate(identity)

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
        """
        with self._contents.changing():
            held = self._known(identity)
            if identity == self._contents.active:
                raise space_in_use(identity)
            del self._contents.spaces[identity]
            return len(held.vectors)

    def _known(self, identity: Identity) -> Held:
        if identity not in self._contents.spaces:
            raise unknown_space(identity)
        return self._contents.spaces[identity]
