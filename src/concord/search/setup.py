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
from concord.search.legs import is_built_in
from concord.search.tools import Tools
from concord.types import ChunkId, Degraded, Identity, Leg, Model, Request

if TYPE_CHECKING:
    from concord.core.protocols import Embedder, Reranker, Semantic, Strategy
    from concord.search.calibration import Calibration
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
        tools = self.for_words()
        if (request.mode or self._settings["search.mode"]) == "fts5":
            return tools
        snapshot = self._parts.store.catalog.snapshot()
        tools = replace(tools, snapshot=snapshot)
        meaning = self._meaning(snapshot.active, wait_for_model)
        if meaning is COLD:
            return replace(tools, absent=COLD)  # an answer at once: it waits for no other model either
        tools = self.with_reader(tools, wait_for_model=wait_for_model)
        if isinstance(meaning, Degraded):
            return replace(tools, reranker=self.reranker, absent=meaning)
        return replace(self._with_meaning(tools, meaning), reranker=self.reranker)

    def for_words(self) -> Tools:
        """Return the tools of a search by words alone."""
        calibration = self._calibration(None)
        return Tools(
            self._parts.store, self._words(), self._settings, self._parts.org, calibration=calibration
        )

    def with_meaning(self, tools: Tools) -> Tools:
        """Add the semantic strategy, if it can vote, and the calibration of its model to the tools."""
        meaning = self._asked_meaning()
        return tools if isinstance(meaning, Degraded) else self._with_meaning(tools, meaning)

    def with_reader(self, tools: Tools, *, wait_for_model: bool = True) -> Tools:
        """Add the reader, or why there is none; without waiting only one that is loaded."""
        model = self.reader
        if isinstance(model, Degraded):
            return replace(tools, unread=model)
        if model and not wait_for_model and not model.is_warm:
            return replace(tools, unread=COLD_READER)
        return replace(tools, reader=model)

    @property
    def reader(self) -> ReaderModel | Degraded | None:
        """What reads passages with the question, or why nothing does; None where that is not wanted."""
        if not self._settings["reader.enabled"]:
            return None
        from concord.search import reader_model  # late, as a search by words needs none

        if not reader_model.is_installed():
            return NO_READER
        return reader_model.shared_model(self._settings["embed.threads"])

    @property
    def has_reader(self) -> bool:
        """Whether no reader has to be loaded before the next search: it is, or there is none."""
        model = self.reader
        return model is None or isinstance(model, Degraded) or model.is_warm

    def warm_reader(self) -> None:
        """Load the reader, if there is one."""
        model = self.reader
        if model is not None and not isinstance(model, Degraded):
            model.warm()

    @property
    def reranker(self) -> Reranker | None:
        """Who takes a second look; None when the provider is `none`."""
        provider = self._settings["rerank.provider"]
        if provider == NONE:
            return None
        opened: Reranker = self._parts.once("reranker", lambda: self._new_reranker(provider))
        return opened

    def _new_reranker(self, provider: str) -> Reranker:
        made: Reranker = plugins.load("rerankers", provider)(
            self._settings, self._settings.paths, self._similarity
        )
        return made

    def _similarity(self, text: str, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, float]:
        """Return cosines for a reranker, which outlives the search it was opened in; None without meaning."""
        meaning = self._asked_meaning()
        if isinstance(meaning, Degraded):
            return {}
        return meaning.strategy.compare(text, meaning.strategy.fetch(chunk_ids)).cosines()

    def _words(self) -> list[Strategy]:
        """Return the strategies that look for words."""
        index, once = self._parts.store.words, self._parts.once
        exact: Strategy = once("exact", lambda: plugins.load("strategies", "fts_exact")(index))
        relaxed: Strategy = once("relaxed", lambda: plugins.load("strategies", "fts_relaxed")(index))
        return [exact, relaxed, *self._further("lexical", "words", lambda kind: kind(index))]

    def _with_meaning(self, tools: Tools, meaning: Meaning) -> Tools:
        return replace(
            tools,
            strategies=[*tools.strategies, meaning.strategy, *meaning.further],
            similarity=meaning.strategy,
            calibration=self._calibration(meaning.identity),
        )

    def _calibration(self, identity: Identity | None) -> Calibration:
        """Return the calibration of a model; without one, that of words alone."""
        from concord.search.calibration import find_calibration

        return find_calibration(identity, self._settings.paths)

    def _asked_meaning(self) -> Meaning | Degraded:
        """Return the semantic strategy as of now, or why there is none."""
        return self._meaning(self._parts.store.catalog.snapshot().active, wait_for_model=True)

    def _meaning(self, model: Model | None, wait_for_model: bool) -> Meaning | Degraded:
        """Return the semantic strategy for the active model, or why there is none."""
        if self._settings["embed.provider"] == NONE:
            return Degraded("semantic", "no embedding provider is configured")
        if model is not None and not wait_for_model and not self._parts.has_model(model):
            return COLD
        if model is None and not self._parts.store.catalog.count().documents:
            return Degraded("semantic", Hint(Action.ADD, "nothing is indexed yet: {add}"))
        if model is None:
            return Degraded("semantic", Hint(Action.SYNC, "nothing has been embedded yet: {sync}"))
        return self._meaning_of(model)

    def _meaning_of(self, model: Model) -> Meaning | Degraded:
        try:
            embedder = self._parts.embedder_of(model)
            mine = embedder.identity
        except KBError as fault:
            if not model.recipe:  # it is the user's own configuration that is wrong
                raise
            return Degraded("semantic", fault.message)
        if model.identity != mine:
            return Degraded("semantic", f"the index was built with {model.identity.name}, not {mine.name}")
        further = self._further(
            "semantic",
            self._model_name(model),
            lambda kind: kind(self._parts.store.models.index(model.identity), embedder),
        )
        return Meaning(self._semantic(model, embedder), model.identity, further)

    def _semantic(self, model: Model, embedder: Embedder) -> Semantic:
        """Return the strategy that is bound to one model: to its embedder and to its vectors."""
        name = f"{_SEMANTIC} {self._model_name(model)}"
        semantic: Semantic = self._parts.once(name, lambda: self._new_semantic(model.identity, embedder))
        self._parts.forget_others(_SEMANTIC, name)
        return semantic

    def _new_semantic(self, identity: Identity, embedder: Embedder) -> Semantic:
        from concord.search.deadline import LATE_S

        if self._parts.outside:
            self._parts.outside.warm()  # now, so that no search's deadline pays for it
        semantic: Semantic = plugins.load("strategies", "semantic")(
            self._parts.store.models.index(identity),
            embedder,
            retry_s=self._settings["search.retry_s"],
            late_s=max(LATE_S, self._settings["search.deadline_ms"] / 1000),
        )
        return semantic

    def _model_name(self, model: Model) -> str:
        return f"{self._parts.embedder_name(model)} {model.identity}"

    def _further(
        self, leg: Leg, bound_to: str, make: Callable[[Callable[..., Strategy]], Strategy]
    ) -> list[Strategy]:
        """Return those strategies of installed packages that belong to a leg.

        `bound_to` is part of the name under which one is kept: if that changes, it is made anew.
        """
        strategies: list[Strategy] = []
        kinds: Mapping[str, Any] = self._parts.once("strategies", self._load_further)
        for name, kind in kinds.items():
            if kind.leg == leg:
                known, bound = f"strategy {name} ", f"strategy {name} {bound_to}"
                strategies.append(self._parts.once(bound, partial(make, kind)))
                self._parts.forget_others(known, bound)
        return strategies

    def _load_further(self) -> Mapping[str, Any]:
        """Return the classes of the strategies of installed packages that the settings name.

        Raises:
            UnknownName: nobody brings one.
            BadValue: it has a name that ours have.
        """
        wanted = [name for name in map(str.strip, self._settings["search.strategies"].split(",")) if name]
        kinds = {name: plugins.load("strategies", name) for name in wanted}
        for name, kind in kinds.items():
            if is_built_in(kind.name):
                raise BadValue(
                    f"search.strategies cannot hold {name}: {kind.name!r} is a name of our own strategies",
                    hint="ours are asked by the mode; others have names that do not begin with fts_",
                )
        return kinds
