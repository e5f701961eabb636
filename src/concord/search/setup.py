"""What is a request answered with? Strategies for words and for meaning, a reranker, a calibration.

Each is opened once and kept with the other parts. One that is bound to a model has that model in its name:
after a switch it is opened anew, and the one for the model before is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from concord.core import plugins
from concord.core.errors import Action, BadValue, Hint, KBError
from concord.parts import NONE, Parts
from concord.search.calibration import find_calibration
from concord.search.legs import BUILT_IN, LEXICAL, Tools
from concord.types import ChunkId, Degraded, Identity, Leg, Model, Request

if TYPE_CHECKING:
    from concord.core.protocols import Embedder, Reranker, Strategy
    from concord.search.legs import Semantic
    from concord.search.reader_model import ReaderModel

_SEMANTIC = "semantic"  # how the names of such parts begin
COLD_READER = Degraded("reader", "it is still loading; ask again in a moment")
NO_READER = Degraded(
    "reader", Hint(Action.REINSTALL, "its files are missing: {reinstall} brings them", package="concord-kb")
)
COLD = Degraded("semantic", "the model is still loading; ask again in a moment to search by meaning as well")


class Meaning(Struct, frozen=True):
    """The semantic strategy, and the one model that it is bound to."""

    strategy: Semantic
    identity: Identity
    further: Sequence[Strategy]  # of installed packages


class Searching:
    """Puts together what a search works with, out of the parts that are open."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings

    def tools(self, request: Request, *, wait_for_model: bool) -> Tools:
        """Return the tools to answer a request with."""
        store, settings = self._parts.store, self._settings
        words: list[Strategy] = [
            self._parts.once(name, partial(plugins.load("strategies", name), store.words)) for name in LEXICAL
        ]
        words += self._further("lexical", "words", lambda kind: kind(store.words))
        tools = Tools(store, words, settings, self._parts.org)
        meaning, identity = None, None
        if (request.mode or settings["search.mode"]) != "fts5":
            snapshot = store.catalog.snapshot()
            meaning = self._meaning(snapshot.active, wait_for_model)
            tools = replace(
                tools, snapshot=snapshot, absent=meaning if isinstance(meaning, Degraded) else None
            )
        if meaning and meaning is not COLD:  # which answers at once, and waits for no other model either
            reader, unread = self._reading(wait_for_model) if request.reader else (None, None)
            tools = replace(tools, reader=reader, unread=unread, reranker=self._reranker())
        if isinstance(meaning, Meaning):
            identity = meaning.identity
            strategies = [*words, meaning.strategy, *meaning.further]
            tools = replace(tools, strategies=strategies, similarity=meaning.strategy)
        return replace(tools, calibration=find_calibration(identity, settings.paths))

    @property
    def reader(self) -> ReaderModel | None:
        """What reads passages with the question; None where that is not wanted, or its files are missing."""
        if not self._settings["reader.enabled"]:
            return None
        from concord.search import reader_model  # late, as a search by words needs none

        is_there = reader_model.is_installed()
        return reader_model.shared_model(self._settings["embed.threads"]) if is_there else None

    def _reading(self, wait_for_model: bool) -> tuple[ReaderModel | None, Degraded | None]:
        """Return the reader, or why there is none where there should be; without waiting, a loaded one."""
        model = self.reader
        if model is None:
            return None, NO_READER if self._settings["reader.enabled"] else None
        return (model, None) if wait_for_model or model.is_warm else (None, COLD_READER)

    def _reranker(self) -> Reranker | None:
        provider, settings = self._settings["rerank.provider"], self._settings
        if provider == NONE:
            return None
        kind = partial(plugins.load, "rerankers", provider)
        opened: Reranker = self._parts.once(
            "reranker", lambda: kind()(settings, settings.paths, self._similarity)
        )
        return opened

    def _similarity(self, text: str, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, float]:
        """Return cosines for a reranker, which outlives the search it was opened in; None without meaning."""
        meaning = self._meaning(self._parts.store.catalog.snapshot().active, wait_for_model=True)
        if isinstance(meaning, Degraded):
            return {}
        return meaning.strategy.compare(text, meaning.strategy.fetch(chunk_ids)).cosines()

    def _meaning(self, model: Model | None, wait_for_model: bool) -> Meaning | Degraded:
        if self._settings["embed.provider"] == NONE:
            return Degraded("semantic", "no embedding provider is configured")
        if model is None and not self._parts.store.catalog.count().documents:
            return Degraded("semantic", Hint(Action.ADD, "nothing is indexed yet: {add}"))
        if model is None:
            return Degraded("semantic", Hint(Action.SYNC, "nothing has been embedded yet: {sync}"))
        if not wait_for_model and not self._parts.has_model(model):
            return COLD
        try:
            embedder = self._parts.embedder_of(model)
            mine = embedder.identity
        except KBError as fault:
            if not model.recipe:  # it is the user's own configuration that is wrong
                raise
            return Degraded("semantic", fault.message)
        if model.identity != mine:
            return Degraded("semantic", f"the index was built with {model.identity.name}, not {mine.name}")
        return self._bound_to(model, embedder)

    def _bound_to(self, model: Model, embedder: Embedder) -> Meaning:
        identity, index = model.identity, self._parts.store.models.index
        model_name = f"{self._parts.embedder_name(model)} {identity}"
        name = f"{_SEMANTIC} {model_name}"

        def opened() -> Semantic:
            from concord.search.deadline import LATE_S

            if self._parts.outside:
                self._parts.outside.warm()  # now, so that no search's deadline pays for it
            semantic: Semantic = plugins.load("strategies", "semantic")(
                index(identity),
                embedder,
                retry_s=self._settings["search.retry_s"],
                late_s=max(LATE_S, self._settings["search.deadline_ms"] / 1000),
            )
            return semantic

        semantic: Semantic = self._parts.once(name, opened)
        self._parts.forget_others(_SEMANTIC, name)
        further = self._further("semantic", model_name, lambda kind: kind(index(identity), embedder))
        return Meaning(semantic, identity, further)

    def _further(
        self, leg: Leg, bound_to: str, make: Callable[[Callable[..., Strategy]], Strategy]
    ) -> list[Strategy]:
        """Return those strategies of installed packages that belong to a leg.

        `bound_to` is part of the name under which one is kept: if that changes, it is made anew.
        """
        strategies: list[Strategy] = []
        if not self._settings["search.strategies"]:
            return strategies
        kinds: Mapping[str, Any] = self._parts.once("strategies", self._load_further)
        for name, kind in kinds.items():
            if kind.leg == leg:
                known, bound = f"strategy {name} ", f"strategy {name} {bound_to}"
                strategies.append(self._parts.once(bound, partial(make, kind)))
                self._parts.forget_others(known, bound)
        return strategies

    def _load_further(self) -> Mapping[str, Any]:
        """Return the classes of the strategies of installed packages that the settings name."""
        wanted = [name for name in map(str.strip, self._settings["search.strategies"].split(",")) if name]
        kinds = {name: plugins.load("strategies", name) for name in wanted}
        for name, kind in kinds.items():
            if kind.name in BUILT_IN:
                raise BadValue(
                    f"search.strategies cannot hold {name}: {kind.name!r} is a name of our own strategies",
                    hint="ours are asked by the mode; others have names of their own",
                )
        return kinds
