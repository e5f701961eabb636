"""An embedder with gates: it loads and works when a test says so, and tells when it has begun."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from concord.core.config import Paths
from concord.embed.hashing import HashingEmbedder
from concord.types import Vector

BOUND_S = 30.0  # a gate that nobody opens is a failed test, not a hung one


class Gate:
    """Something that waits at the gate can be seen, and let through."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.open.wait(BOUND_S)


class GatedEmbedder(HashingEmbedder):
    """The hashing embedder behind two gates."""

    loading = Gate()
    working = Gate()

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        super().__init__(options, paths)
        self.is_warm = False

    @classmethod
    def close_gates(cls, *, loading: bool = False, working: bool = False) -> None:
        """Make new gates, closed where that is said."""
        cls.loading, cls.working = Gate(), Gate()
        for gate, shut in ((cls.loading, loading), (cls.working, working)):
            if not shut:
                gate.open.set()

    def warm(self) -> None:
        self.loading.pass_through()
        self.is_warm = True

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.working.pass_through()
        return super().embed_documents(texts)
