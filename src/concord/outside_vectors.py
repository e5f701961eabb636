"""A store whose vectors are kept outside it, on a server of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.types import Glance

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding
    from concord.core.storage import Store
    from concord.core.vector_storage import OutsideVectors


class StoreWithOutsideVectors:
    """A store and its vectors outside, as one store."""

    def __init__(self, store: Store, outside: OutsideVectors) -> None:
        self.catalog, self.lexical, self.cache = store.catalog, store.lexical, store.cache
        self.ledger, self.journal = store.ledger, store.journal
        self.vectors, self.spaces = outside.vectors, outside.spaces
        self.outside = outside
        self.path = store.path
        self.inner = store

    @property
    def is_begun(self) -> bool:
        """Ask the store."""
        return self.inner.is_begun

    def others(self) -> list[str]:
        """Ask the store."""
        return self.inner.others()

    def unique_id(self) -> str:
        """Ask the store: it decides what is kept outside."""
        return self.inner.unique_id()

    def glance(self) -> Glance:
        """Ask both."""
        return replace(self.inner.glance(), space=self.spaces.active())

    def check(self) -> list[Finding]:
        """Look into both."""
        return [*self.inner.check(), *self.outside.check()]

    def repair(self, findings: Sequence[Finding]) -> None:
        """Put right what the store can; what is amiss outside has its own cure."""
        self.inner.repair(findings)

    def tend(self, progress: Progress) -> None:
        """Let the store tidy up, and tell the vector store outside what changed: it keeps its own index."""
        self.inner.tend(progress)
        self.outside.tend()

    def index_state(self) -> None:
        """Return nothing: the vector store outside has an index of its own."""

    def close(self) -> None:
        """Close both."""
        self.outside.close()
        self.inner.close()
