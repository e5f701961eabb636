"""A store in dictionaries: the reference that other stores are compared with, and a test double that ships.

It keeps nothing when it is closed, scans every vector, and one lock guards it all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concord.backends.memory.cache import MemoryCache
from concord.backends.memory.catalog import MemoryCatalog
from concord.backends.memory.contents import Contents
from concord.backends.memory.journal import MemoryJournal
from concord.backends.memory.ledger import MemoryLedger
from concord.backends.memory.lexical import MemoryLexical
from concord.backends.memory.spaces import MemorySpaces
from concord.backends.memory.vectors import MemoryVectors
from concord.core.protocols import Progress
from concord.core.reports import Finding
from concord.types import Glance


class MemoryStore:
    """The storage of one organisation, until it is closed. Each one that is opened is new and empty."""

    def __init__(self, contents: Contents | None = None) -> None:
        contents = contents or Contents()
        self.path: str | None = None
        self.catalog = MemoryCatalog(contents)
        self.lexical = MemoryLexical(contents)
        self.vectors = MemoryVectors(contents)
        self.spaces = MemorySpaces(contents)
        self.cache = MemoryCache(contents)
        self.ledger = MemoryLedger(contents)
        self.journal = MemoryJournal(contents)

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> MemoryStore:
        """Return a new store; `memory://` says all there is to say."""
        return cls()

    @property
    def is_begun(self) -> bool:
        """Return True: there is no older one that could have been meant."""
        return True

    def others(self) -> list[str]:
        """Return nobody: each is alone."""
        return []

    def unique_id(self) -> str:
        """Return a place in memory: nobody else gets to it."""
        return f"memory {id(self)}"

    def glance(self) -> Glance:
        """Return the generation, the sources by name, the active space and whether anything is superseded."""
        is_any = any(document.superseded_by is not None for document in self.catalog.documents())
        catalog, space = self.catalog, self.spaces.active()
        return Glance(catalog.generation(), catalog.sources(), space, has_superseded=is_any)

    def check(self) -> list[Finding]:
        """Find nothing: one lock keeps all of it in step, and no disk can damage it."""
        return []

    def repair(self, findings: Sequence[Finding]) -> None:
        """Do nothing: there is never a finding."""

    def tend(self, progress: Progress) -> None:
        """Do nothing: nothing is derived."""

    def index_state(self) -> None:
        """Return nothing: every vector is compared."""

    def close(self) -> None:
        """Forget nothing: the store goes with its last reference."""
