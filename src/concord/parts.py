"""Which adapters are open? Each is opened once, when it is first needed, by whichever thread needs it first.

With `knowledge`, this is the only place that knows adapters by name; everything else sees protocols.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concord import plugins
from concord.config import Settings
from concord.errors import Unavailable
from concord.types import ChunkId, Degraded, Finding, Request

if TYPE_CHECKING:
    from concord import ingest
    from concord import search as searching
    from concord.protocols import (
        Embedder,
        FileReader,
        OutsideVectors,
        Reranker,
        Semantic,
        Store,
        Strategy,
        VectorIndex,
    )
    from concord.ranking.calibrate import Calibration

COLD = Degraded("semantic", "the model is still loading; ask again in a moment to search by meaning as well")


class Apart:
    """A store whose vectors are kept outside it."""

    def __init__(self, store: Store, vectors: OutsideVectors) -> None:
        self.catalog, self.lexical, self.cache = store.catalog, store.lexical, store.cache
        self.ledger, self.journal = store.ledger, store.journal
        self.vectors: VectorIndex = vectors
        self.outside = vectors
        self.path = getattr(store, "path", None)
        self._store = store

    def check(self) -> list[Finding]:
        """Look into both."""
        return [*self._store.check(), *self.outside.check()]

    def repair(self, findings: Sequence[Finding]) -> None:
        """Put right what the store can; what is amiss outside has its own cure."""
        self._store.repair(findings)

    def close(self) -> None:
        """Close both."""
        self.outside.close()
        self._store.close()


class Parts:
    """The store, the model and whatever else a knowledge base works with."""

    def __init__(self, settings: Settings, org: str) -> None:
        self.settings = settings
        self.org = org
        self._lock = threading.RLock()
        self._opened: dict[str, Any] = {}

    def close(self) -> None:
        """Free the store, the models and the worker process."""
        with self._lock:
            for name in ("store", "embedder", "reader", "reranker"):
                if name in self._opened:
                    self._opened[name].close()
            self._opened.clear()

    @property
    def is_warm(self) -> bool:
        """Whether a search needs no model to be loaded first."""
        opened = self._opened.get("embedder")  # asking for it would import its runtime
        return bool(opened.is_warm) if opened is not None else self.settings["embed.provider"] == "none"

    def warm(self) -> None:
        """Load the model and the client of a vector store outside, where there are vectors to compare with."""
        if self.store.vectors.identity() is not None and self.embedder is not None:
            self.embedder.warm()
            if self.outside:
                self.outside.warm()

    @property
    def store(self) -> Store:
        """The store, by the scheme of its URL, with its vectors where `vectors.url` says."""
        opened: Store = self._once("store", self._open_store)
        return opened

    def _open_store(self) -> Store:
        url, outside = self.settings.store_url, self.settings["vectors.url"]
        store: Store = plugins.load("backends", url.partition(":")[0]).open(url, self.org)
        if not outside:
            return store
        kind = plugins.load("vectors", outside.partition(":")[0])
        return Apart(store, kind(store, outside, self.org, self.settings))

    @property
    def outside(self) -> OutsideVectors | None:
        """The vector index that is no part of the store; None where the store keeps its own vectors."""
        store = self.store
        return store.outside if isinstance(store, Apart) else None

    @property
    def embedder(self) -> Embedder | None:
        """The embedder; None when the provider is `none`."""
        provider = self.settings["embed.provider"]
        if provider == "none":
            return None
        options = {key: self.settings[key] for key in self.settings if key.startswith("embed.")}
        cache = self.settings.paths.cache
        opened: Embedder = self._once("embedder", lambda: plugins.load("embedders", provider)(options, cache))
        return opened

    @property
    def reader(self) -> FileReader:
        """What turns files into text."""
        opened: FileReader = self._once("reader", lambda: plugins.load("readers", "files")())
        return opened

    @property
    def words(self) -> list[Strategy]:
        """The strategies that look for words."""
        index = self.store.lexical
        exact: Strategy = self._once("exact", lambda: plugins.load("strategies", "fts_exact")(index))
        relaxed: Strategy = self._once("relaxed", lambda: plugins.load("strategies", "fts_relaxed")(index))
        return [exact, relaxed]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a part, made when it is first asked for, by whichever thread asks first."""
        part = self._opened.get(name)
        if part is None:
            with self._lock:
                part = self._opened.get(name) or self._opened.setdefault(name, make())
        return part

    def limits(self) -> ingest.Limits:
        """Return how files are read and cut."""
        from concord.ingest import Limits
        from concord.text.chunk import ChunkSize

        target = self.settings["ingest.chunk_tokens"]
        size = ChunkSize(
            target=target, maximum=target * 7 // 5, overlap=self.settings["ingest.chunk_overlap"]
        )
        return Limits(self.settings["ingest.max_bytes"], size)

    def measure(self) -> Embedder:
        """Return whose tokens chunks are measured in; words stand in where no model is configured."""
        embedder = self.embedder
        if embedder is not None:
            return embedder
        stand_in: Embedder = plugins.load("embedders", "hashing")({}, self.settings.paths.cache)
        return stand_in

    def search_tools(self, request: Request, wait_for_model: bool) -> tuple[searching.Tools, Degraded | None]:
        """Return what a request is answered with, and why meaning is no part of it when it should be."""
        from concord.search import Tools

        tools = Tools(self.store, self.words, self.settings, self.org)
        if (request.mode or self.settings["search.mode"]) == "fts5":
            return tools, None
        absent = self.why_no_meaning(wait_for_model)
        if absent is COLD:
            return tools, absent  # an answer at once: it does not wait for a reranker's model either
        tools = tools if absent else self.with_meaning(tools)
        return tools._replace(reranker=self.reranker), absent

    def with_meaning(self, tools: searching.Tools) -> searching.Tools:
        """Return the tools with the semantic strategy and what was fitted for its model."""
        semantic = self.semantic
        return tools._replace(
            strategies=[*tools.strategies, semantic],
            similarity=semantic.similarities,
            calibration=self.calibration(),
        )

    @property
    def semantic(self) -> Semantic:
        """The strategy that looks for meaning."""
        semantic: Semantic = self._once("semantic", self._guarded_semantic)
        return semantic

    def _guarded_semantic(self) -> Semantic:
        from concord.breaker import Breaker, Guarded

        if self.outside:
            self.outside.warm()  # now, so that no search's deadline pays for it
        inner = plugins.load("strategies", "semantic")(self.store.vectors, self.embedder)
        late_s = self.settings["search.deadline_ms"] / 1000
        return Guarded(
            inner, Breaker("semantic search", retry_s=self.settings["search.retry_s"], late_s=late_s)
        )

    @property
    def reranker(self) -> Reranker | None:
        """Who takes a second look; None when the provider is `none`."""
        provider = self.settings["rerank.provider"]
        if provider == "none":
            return None
        opened: Reranker = self._once(
            "reranker", lambda: plugins.load("rerankers", provider)(self.settings, self._similarity)
        )
        return opened

    def _similarity(self, text: str, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, float]:
        """Return cosines for a reranker, which outlives the search it was opened in; none without meaning."""
        absent = self.why_no_meaning(wait_for_model=True)
        return {} if absent else self.semantic.similarities(text, chunk_ids)

    def why_no_meaning(self, wait_for_model: bool) -> Degraded | None:
        """Return why the semantic strategy cannot vote; None when it can."""
        try:
            theirs = self.store.vectors.identity()
        except Unavailable as fault:
            return Degraded("semantic", fault.message)
        if theirs is not None and not wait_for_model and not self.is_warm:
            return COLD
        embedder = self.embedder
        if embedder is None:
            return Degraded("semantic", "no embedding provider is configured")
        if theirs is None:
            return Degraded("semantic", "nothing has been embedded yet: `kb sync`")
        mine = embedder.identity
        if theirs != mine:
            built, asked = f"{theirs.provider}/{theirs.model}", f"{mine.provider}/{mine.model}"
            return Degraded("semantic", f"the index was built with {built}, not {asked}")
        return None

    def calibration(self) -> Calibration | None:
        """Return what was fitted for the embedding model; None for a model that nobody fitted."""
        from concord.calibration import find_calibration

        embedder = self.embedder
        return None if embedder is None else find_calibration(embedder.identity, self.settings.paths)
