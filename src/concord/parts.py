"""Which adapters are open? Each is opened once, when it is first needed, by whichever thread needs it first.

This is the only place that knows adapters by name; everything else sees protocols.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from concord import plugins
from concord.config import Settings
from concord.errors import BadValue, KBError, NotFound, Unavailable, UsageError
from concord.text.organisations import check_org
from concord.types import ChunkId, Degraded, Family, Identity, Request, Space

if TYPE_CHECKING:
    from concord import ingest
    from concord.answering.tools import SearchTools
    from concord.protocols import Embedder, FileReader, Reranker, Semantic, Strategy
    from concord.ranking.calibrate import Calibration
    from concord.storage import OutsideVectors, Store

RECIPE = ("embed.provider", "embed.model", "embed.url")  # what says which model is meant; none is a secret
NONE = "none"  # the provider that is nobody
_EMBEDDER, _SEMANTIC = "embedder", "semantic"  # how the names of such parts begin
_FLEETING = ("memory:", "qdrant-local::memory:")  # how URLs begin of what is gone with this process
COLD = Degraded("semantic", "the model is still loading; ask again in a moment to search by meaning as well")


def check_lasting(*urls: str) -> None:
    """Refuse to bring anything to where it would be gone with this process.

    Raises:
        BadValue: one of the URLs leads there.
    """
    for url in urls:
        if url.startswith(_FLEETING):
            raise BadValue(
                f"nothing is kept in {url}: it would be gone when this command ends",
                hint="name a store that lasts, such as sqlite:///folder or postgresql://user@host/database",
            )


def check_places(settings: Settings) -> None:
    """Refuse settings with which no store could ever be opened; nothing is opened to find out.

    Raises:
        BadValue: the organisation's name or a URL is not of the form it must have.
        UnknownName: there is no such kind of store, or of place for vectors.
        MissingExtra: the package that such a store needs is not installed.
    """
    url, outside, org = settings.store_url, settings["vectors.url"], settings["org"]
    check_org(org)
    scheme = _scheme("store.url", url)
    plugins.find("backends", scheme)
    if scheme in plugins.TABLES["locations"]:
        plugins.load("locations", scheme)(url, org)
    if outside:
        plugins.find("vectors", _scheme("vectors.url", outside))


class Meaning(Struct, frozen=True):
    """What looks for meaning, and the one model whose vectors it ever meets."""

    strategy: Semantic
    identity: Identity
    further: Sequence[Strategy]  # of installed packages


class Parts:
    """The store, the model and whatever else a knowledge base works with."""

    def __init__(self, settings: Settings, org: str, *, must_exist: bool = False) -> None:
        self.settings = settings
        self.org = org
        self._must_exist = must_exist
        self._lock = threading.RLock()
        self._opened: dict[str, Any] = {}
        self._is_closed = False

    def close(self) -> None:
        """Free the store, the models and the worker process, for good."""
        with self._lock:
            self._is_closed = True  # first: what is being closed may use the others, and opens none
            for part in reversed(self._opened.values()):  # whoever uses another was opened after it
                if hasattr(part, "close"):
                    part.close()
            self._opened.clear()

    @property
    def is_warm(self) -> bool:
        """Whether a search needs no model to be loaded first."""
        return self.settings["embed.provider"] == NONE or self._has_model(self._active_space())

    def warm(self) -> None:
        """Load the model, and the client of a vector store outside, where anything has been embedded."""
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
        store: Store = plugins.load("backends", _scheme("store.url", url)).open(url, self.org, self.settings)
        if self._must_exist and not store.is_begun:
            self._refuse_likely_slip(store)
        if not outside:
            return store
        from concord.outside_vectors import StoreWithOutsideVectors  # late: most stores keep their own

        kind = plugins.load("vectors", _scheme("vectors.url", outside))
        return StoreWithOutsideVectors(store, kind(store, outside, self.org, self.settings))

    def _refuse_likely_slip(self, store: Store) -> None:
        """Refuse a store in which nothing was ever kept, unless it is what somebody has who begins.

        Raises:
            NotFound: it was named by a flag, or there are other organisations in its place.
        """
        others = store.others()
        if not others and "flag" not in map(self.settings.origin, ("org", "store.url")):
            return
        from concord.text.urls import without_password

        store.close()
        there = f"there are: {', '.join(others)}" if others else "check --store and --org"
        raise NotFound(
            f"the organisation {self.org!r} has nothing in {without_password(self.settings.store_url)}",
            hint=f"{there}; `kb add PATH` begins a new knowledge base",
        )

    @property
    def outside(self) -> OutsideVectors | None:
        """The vectors that are kept outside; None where the store keeps its own."""
        from concord.outside_vectors import StoreWithOutsideVectors

        store = self.store
        return store.outside if isinstance(store, StoreWithOutsideVectors) else None

    def outside_at(self, home: str) -> OutsideVectors:
        """Open a home where vectors of this store were kept once; whoever asked closes it."""
        from concord.outside_vectors import StoreWithOutsideVectors

        store = self.store
        inner = store.inner if isinstance(store, StoreWithOutsideVectors) else store
        kind = plugins.load("vectors", _scheme("vectors.url", home))
        outside: OutsideVectors = kind.at_home(inner, home, self.org, self.settings)
        return outside

    @property
    def embedder(self) -> Embedder | None:
        """What makes this store's vectors: the active model, or before the first one the configured one.

        None when the provider is `none`, whatever the store holds.
        """
        if self.settings["embed.provider"] == NONE:
            return None
        return self._embedder_of(self._active_space())

    def recipe(self) -> Mapping[str, Any]:
        """Return the settings that open this store's model."""
        is_none = self.settings["embed.provider"] == NONE
        return self._recipe(None if is_none else self._active_space())

    def _active_space(self) -> Space | None:
        """Return the space that searches use; a vector store that is down is no reason to stop."""
        try:
            return self.store.spaces.active()
        except Unavailable:
            return None

    def _has_model(self, space: Space | None) -> bool:
        """Whether the model of a space is loaded."""
        opened = self._opened.get(_embedder_name(self._recipe(space)))
        return opened is not None and bool(opened.is_warm)  # asking for it would import its runtime

    def new_embedder(self, recipe: Mapping[str, Any], dimension: int = 0) -> Embedder:
        """Open an embedder that nobody else uses; whoever asked closes it."""
        options = {key: self.settings[key] for key in self.settings if key.startswith("embed.")}
        options |= {**recipe, "embed.dimension": dimension, "paths": self.settings.paths}
        if recipe.get("embed.url", options["embed.url"]) != self.settings["embed.url"]:
            options["embed.key"] = ""  # it belongs to the server that the settings name, and to no other
        return self._made(options["embed.provider"], options)

    def _embedder_of(self, space: Space | None) -> Embedder:
        recipe, dimension = self._recipe(space), space.identity.dimension if space else 0
        name = _embedder_name(recipe)
        embedder: Embedder = self._once(name, lambda: self.new_embedder(recipe, dimension))
        self._forget_others(_EMBEDDER, name)
        return embedder

    def _recipe(self, space: Space | None) -> Mapping[str, Any]:
        """Return the settings that open a space's model: its own, or where none were written down, ours."""
        return (space and space.recipe) or {key: self.settings[key] for key in RECIPE}

    def _forget_others(self, kind: str, name: str) -> None:
        """Free what was there before a switch; a model that a search still uses loads again."""
        with self._lock:
            for other in [known for known in self._opened if known.startswith(kind) and known != name]:
                part = self._opened.pop(other)
                if hasattr(part, "close"):
                    part.close()

    def after_embedding(self) -> None:
        """Write down how the model is opened, and keep the cache within its limit."""
        space = self._active_space()
        if space and not space.recipe and (made := self.embedder) and made.identity == space.identity:
            from concord.models import recipe_for

            self.store.spaces.add(space.identity, recipe_for(*(self.settings[key] for key in RECIPE)))
        self.store.cache.trim(int(self.settings["cache.max_mb"] * 1_000_000))

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
        return [exact, relaxed, *self._further("lexical", "words", lambda kind: kind(index))]

    def _further(
        self, family: Family, bound_to: str, make: Callable[[Callable[..., Strategy]], Strategy]
    ) -> list[Strategy]:
        """Return those strategies of installed packages that belong to a family.

        What one is bound to is a part of its name here: when that is another, it is made anew.
        """
        strategies: list[Strategy] = []
        kinds: Mapping[str, Any] = self._once("strategies", self._load_further)
        for name, kind in kinds.items():
            if kind.family == family:
                known, bound = f"strategy {name} ", f"strategy {name} {bound_to}"
                strategies.append(self._once(bound, partial(make, kind)))
                self._forget_others(known, bound)
        return strategies

    def _load_further(self) -> Mapping[str, Any]:
        """Return by name what makes the strategies of installed packages that the settings want.

        Raises:
            UnknownName: nobody brings one.
            BadValue: it has a name that ours have.
        """
        from concord.ranking.plan import is_ours  # late: of all commands only a search needs it, and has it

        wanted = [name for name in map(str.strip, self.settings["search.strategies"].split(",")) if name]
        kinds = {name: plugins.load("strategies", name) for name in wanted}
        for name, kind in kinds.items():
            if is_ours(kind.name):
                raise BadValue(
                    f"search.strategies cannot hold {name}: {kind.name!r} is a name of our own strategies",
                    hint="ours are asked by the mode; others have names that do not begin with fts_",
                )
        return kinds

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a part, made when it is first asked for, by whichever thread asks first.

        Raises:
            UsageError: all of them have been closed, and nobody would close this one.
        """
        part = self._opened.get(name)
        if part is None:
            with self._lock:
                if self._is_closed and name not in self._opened:
                    raise UsageError(
                        "this knowledge base has been closed", hint="open another one, or close it later"
                    )
                part = self._opened.get(name) or self._opened.setdefault(name, make())
        return part

    def limits(self) -> ingest.ReadLimits:
        """Return how files are read and cut."""
        from concord.ingest import ReadLimits
        from concord.text.chunk import ChunkSize

        settings = self.settings
        size = ChunkSize.for_target(settings["ingest.chunk_tokens"], settings["ingest.chunk_overlap"])
        return ReadLimits(settings["ingest.max_bytes"], size)

    def tokenizer(self) -> Embedder:
        """Return whose tokens chunks are measured in; words stand in where no model is configured."""
        embedder = self.embedder
        if embedder is not None:
            return embedder
        return self._made("hashing", {})

    @property
    def model_identity(self) -> Identity:
        """Of the model that is configured, or of what stands in for it."""
        return self.tokenizer().identity

    def _made(self, provider: str, options: Mapping[str, Any]) -> Embedder:
        from pathlib import Path  # late: 5 ms, which a search by words need not pay

        made: Embedder = plugins.load("embedders", provider)(options, Path(self.settings.paths.cache))
        return made

    def search_tools(self, request: Request, wait_for_model: bool) -> SearchTools:
        """Return what a request is answered with."""
        from concord.answering.tools import SearchTools

        tools = SearchTools(self.store, self.words, self.settings, self.org)
        if (request.mode or self.settings["search.mode"]) == "fts5":
            return tools
        try:
            glance = self.store.glance()
        except Unavailable as fault:
            return replace(tools, reranker=self.reranker, absent=Degraded("semantic", fault.message))
        tools = replace(tools, glance=glance)
        meaning = self._meaning(glance.space, wait_for_model)
        if meaning is COLD:
            return replace(tools, absent=COLD)  # an answer at once: it waits for no reranker's model either
        if isinstance(meaning, Degraded):
            return replace(tools, reranker=self.reranker, absent=meaning)
        return replace(self._with_meaning(tools, meaning), reranker=self.reranker)

    def with_meaning(self, tools: SearchTools) -> SearchTools:
        """Return the tools with the semantic strategy, if it can vote, and what was fitted for its model."""
        meaning = self._asked_meaning()
        return tools if isinstance(meaning, Degraded) else self._with_meaning(tools, meaning)

    def _with_meaning(self, tools: SearchTools, meaning: Meaning) -> SearchTools:
        return replace(
            tools,
            strategies=[*tools.strategies, meaning.strategy, *meaning.further],
            similarity=meaning.strategy,
            calibration=self._calibration(meaning.identity),
        )

    def _guarded_semantic(self, identity: Identity, embedder: Embedder) -> Semantic:
        from concord.breaker import LATE_S, Breaker, Guarded

        if self.outside:
            self.outside.warm()  # now, so that no search's deadline pays for it
        inner = plugins.load("strategies", "semantic")(self.store.spaces.of(identity), embedder)
        late_s = max(LATE_S, self.settings["search.deadline_ms"] / 1000)
        return Guarded(
            inner, Breaker("semantic search", retry_s=self.settings["search.retry_s"], late_s=late_s)
        )

    @property
    def reranker(self) -> Reranker | None:
        """Who takes a second look; None when the provider is `none`."""
        provider = self.settings["rerank.provider"]
        if provider == "none":
            return None
        opened: Reranker = self._once("reranker", lambda: self._new_reranker(provider))
        return opened

    def _new_reranker(self, provider: str) -> Reranker:
        options = {**self.settings, "paths": self.settings.paths}
        made: Reranker = plugins.load("rerankers", provider)(options, self._similarity)
        return made

    def _similarity(self, text: str, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, float]:
        """Return cosines for a reranker, which outlives the search it was opened in; none without meaning."""
        meaning = self._asked_meaning()
        if isinstance(meaning, Degraded):
            return {}
        return meaning.strategy.compare(text, meaning.strategy.fetch(chunk_ids)).cosines()

    def _asked_meaning(self) -> Meaning | Degraded:
        """Return what looks for meaning now, or why nothing can."""
        try:
            space = self.store.spaces.active()
        except Unavailable as fault:
            return Degraded("semantic", fault.message)
        return self._meaning(space, wait_for_model=True)

    def _meaning(self, space: Space | None, wait_for_model: bool) -> Meaning | Degraded:
        """Return what looks for meaning in the active space, or why nothing can."""
        if self.settings["embed.provider"] == NONE:
            return Degraded("semantic", "no embedding provider is configured")
        if space is not None and not wait_for_model and not self._has_model(space):
            return COLD
        if space is None:
            return Degraded("semantic", "nothing has been embedded yet: `kb sync`")
        return self._meaning_of(space)

    def _meaning_of(self, space: Space) -> Meaning | Degraded:
        try:
            embedder = self._embedder_of(space)
            mine = embedder.identity
        except KBError as fault:
            if not space.recipe:  # it is the user's own configuration that is wrong
                raise
            return Degraded("semantic", fault.message)
        if space.identity != mine:
            return Degraded("semantic", f"the index was built with {space.identity.name}, not {mine.name}")
        further = self._further(
            "semantic",
            self._model_name(space),
            lambda kind: kind(self.store.spaces.of(space.identity), embedder),
        )
        return Meaning(self._semantic(space, embedder), space.identity, further)

    def _model_name(self, space: Space) -> str:
        return f"{_embedder_name(self._recipe(space))} {space.identity}"

    def _semantic(self, space: Space, embedder: Embedder) -> Semantic:
        """Return the strategy that is bound to one model: to its embedder and to its vectors."""
        name = f"{_SEMANTIC} {self._model_name(space)}"
        semantic: Semantic = self._once(name, lambda: self._guarded_semantic(space.identity, embedder))
        self._forget_others(_SEMANTIC, name)
        return semantic

    def _calibration(self, identity: Identity) -> Calibration | None:
        """Return what was fitted for a model; None for one that nobody fitted."""
        from concord.quality.calibration import find_calibration

        return find_calibration(identity, self.settings.paths)


def _scheme(setting: str, url: str) -> str:
    """Return the part of a URL that says what it leads to.

    Raises:
        BadValue: there is none. What is there instead is not repeated: it may hold a password.
    """
    scheme, colon, rest = url.partition(":")
    if setting == "vectors.url" and rest.partition("/")[0].isdigit():  # a host and a port
        raise BadValue(f"{setting} does not begin with http://: {url}", hint=f"write http://{url}")
    if not colon or not scheme.replace("-", "").replace("+", "").isalnum():
        raise BadValue(
            f"{setting} is no URL: nothing says what kind of place it is",
            hint="such as sqlite:///folder, postgresql://user@host/database or http://host:6333",
        )
    return scheme


def _embedder_name(recipe: Mapping[str, Any]) -> str:
    return " ".join([_EMBEDDER, *(str(recipe.get(key, "")) for key in RECIPE)])
