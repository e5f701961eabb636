"""The spaces of a store whose vectors are in Qdrant: the store knows them, their points lie there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from concord.backends.qdrant.vectors import QdrantVectors
from concord.types import Identity, Json, Space

if TYPE_CHECKING:
    from concord.backends.qdrant.outside import QdrantOutsideVectors


class QdrantSpaces:
    """One space for each model whose vectors are kept."""

    def __init__(self, outside: QdrantOutsideVectors) -> None:
        self._outside = outside
        self._known = outside.store.spaces

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        return self._known.all()

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder."""
        return self._known.active()

    def of(self, identity: Identity) -> QdrantVectors:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        return QdrantVectors(self._outside, self._known.of(identity))

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; if it is there already, only its recipe is replaced."""
        self._known.add(identity, recipe)

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on, in every process.

        Raises:
            NotFound: there is no such space.
        """
        self._known.activate(identity)

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
            BackendDown: Qdrant does not answer; nothing has been deleted.
        """
        spaces = {space.identity: space for space in self.all()}
        if identity in spaces and not spaces[identity].is_active:  # else the store says what is wrong
            self.of(identity).delete_everything()
        return self._known.drop(identity)
