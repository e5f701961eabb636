"""Which adapters are open? Each is opened once, when it is first needed, by whichever thread needs it first.

What a search alone works with is opened by `search/setup.py`, which keeps it here. Those two are the only
places that know adapters by name; everything else sees protocols.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from concord.core import plugins
from concord.core.config import Settings
from concord.core.errors import Action, BadValue, Hint, NotFound, Unavailable, UsageError
from concord.core.values import check_org
from concord.types import Home, Model

if TYPE_CHECKING:
    from concord.core.protocols import Embedder, PageReader, PictureReader
    from concord.index.documents import ReadLimits
    from concord.store.contract import OutsideVectors, Salvage, Store

RECIPE = ("embed.provider", "embed.model", "embed.url")  # what says which model is meant; none is a secret
NONE = "none"  # the provider's name where nothing is to be embedded
_EMBEDDER = "embedder"  # begins the names of embedders among the parts


def count_tokens(text: str) -> int:
    """Return how many tokens a text has by the bundled tokenizer, whichever model is used; 0 without it."""
    try:
        counted: int = plugins.load("embedders", "bundled").count_tokens(text)
    except Unavailable:
        return 0
    return counted


def check_places(settings: Settings) -> None:
    """Refuse settings with which no store could ever be opened, without opening any."""
    url, outside, org = settings.store_url, settings["vectors.url"], settings["org"]
    check_org(org)
    scheme = _scheme("store.url", url)
    plugins.find("backends", scheme)
    if scheme in plugins.TABLES["locations"]:
        plugins.load("locations", scheme)(url, org)
    if outside:
        plugins.find("vectors", _scheme("vectors.url", outside))


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
                _close(part)
            self._opened.clear()

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a part, made when it is first asked for, by whichever thread asks first."""
        part = self._opened.get(name)
        if part is None:
            with self._lock:
                if self._is_closed and name not in self._opened:
                    raise UsageError(
                        "this knowledge base has been closed", hint="open another one, or close it later"
                    )
                part = self._opened.get(name) or self._opened.setdefault(name, make())
        return part

    def forget_others(self, kind: str, name: str) -> None:
        """Free all other parts of a kind after a switch; a model that a search still uses loads again."""
        with self._lock:
            for other in [known for known in self._opened if known.startswith(kind) and known != name]:
                _close(self._opened.pop(other))

    @property
    def store(self) -> Store:
        """The store, by the scheme of its URL, with its vectors where `vectors.url` says."""
        opened: Store = self.once("store", self._open_store)
        return opened

    def _open_store(self) -> Store:
        url, outside = self.settings.store_url, self.settings["vectors.url"]
        store: Store = plugins.load("backends", _scheme("store.url", url)).open(url, self.org, self.settings)
        if self._must_exist and not store.place.is_begun:
            self._refuse_likely_slip(store)
        if outside:
            store = self._outside_kind(outside)(store, outside, self.org, self.settings)
        return store

    def salvage(self) -> Salvage:
        """Return what can be read of a damaged store; UnknownName if its kind cannot be read like that."""
        url = self.settings.store_url
        found: Salvage = plugins.load("salvagers", _scheme("store.url", url))(url, self.org)
        return found

    def _outside_kind(self, url: str) -> Any:
        return plugins.load("vectors", _scheme("vectors.url", url))

    def _refuse_likely_slip(self, store: Store) -> None:
        """Refuse an empty store that is probably named by mistake; a new user's default store is not.

        It is if a flag names the store, or a setting the organisation.
        """
        if self.settings.origin("store.url") != "flag" and self.settings.origin("org") == "default":
            return
        from concord.core.values import without_password

        store.close()
        raise NotFound(
            f"the organisation {self.org!r} has nothing in {without_password(self.settings.store_url)}",
            hint=Hint(Action.ADD, "check {store} and {org}; {add} begins a new knowledge base"),
        )

    @property
    def outside(self) -> OutsideVectors | None:
        """The store, if it keeps vectors outside; None where they are in the store itself."""
        opened: Any = self.store
        return opened if self.settings["vectors.url"] else None

    def clear_vectors(self, home: Home) -> None:
        """Delete the vectors of this store in a place where they were kept before."""
        self._outside_kind(home.url).clear(self.store, home, self.org, self.settings)

    @property
    def embedder(self) -> Embedder | None:
        """What makes this store's vectors: the active model, or before the first one the configured one.

        None when the provider is `none`, whatever the store holds.
        """
        if self.settings["embed.provider"] == NONE:
            return None
        return self.embedder_of(self.store.catalog.snapshot().active)

    def recipe(self) -> Mapping[str, Any]:
        """Return the settings that open this store's model."""
        is_none = self.settings["embed.provider"] == NONE
        return self._recipe(None if is_none else self.store.catalog.snapshot().active)

    def tokenizer(self) -> Embedder:
        """Return the embedder whose tokens chunks are measured in; words, if no model is configured."""
        return self.embedder or self._made("hashing", {})

    @property
    def is_warm(self) -> bool:
        """Whether a search needs no model to be loaded first."""
        return self.settings["embed.provider"] == NONE or self.has_model(self.store.catalog.snapshot().active)

    def warm(self) -> None:
        """Load the model, and the client of a vector store outside, where anything has been embedded."""
        if self.store.catalog.snapshot().active is not None and self.embedder is not None:
            self.embedder.warm()
            if self.outside:
                self.outside.warm()

    def after_embedding(self) -> None:
        """Store the recipe that opens the model, and keep the cache within its limit."""
        active = self.store.catalog.snapshot().active
        if active and not active.recipe and (made := self.embedder) and made.identity == active.identity:
            from concord.ops.models import recipe_for

            with suppress(Unavailable):  # a vector store that is down: the recipe is stored the next time
                self.store.models.add(active.identity, recipe_for(*(self.settings[key] for key in RECIPE)))
        self.store.cache.trim(int(self.settings["cache.max_mb"] * 1_000_000))

    def embedder_of(self, model: Model | None) -> Embedder:
        """Return the embedder of a model that is added; without one, that of the settings."""
        recipe, dimension = self._recipe(model), model.identity.dimension if model else 0
        name = self.embedder_name(model)
        embedder: Embedder = self.once(name, lambda: self.new_embedder(recipe, dimension))
        self.forget_others(_EMBEDDER, name)
        return embedder

    def embedder_name(self, model: Model | None) -> str:
        """Return the name under which a model's embedder is kept here; it follows from its recipe."""
        recipe = self._recipe(model)
        return " ".join([_EMBEDDER, *(str(recipe.get(key, "")) for key in RECIPE)])

    def has_model(self, model: Model | None) -> bool:
        """Whether a model is loaded."""
        opened = self._opened.get(self.embedder_name(model))
        return opened is not None and bool(opened.is_warm)  # asking for it would import its runtime

    def new_embedder(self, recipe: Mapping[str, Any], dimension: int = 0) -> Embedder:
        """Open an embedder for one caller, who closes it."""
        options = {key: self.settings[key] for key in self.settings if key.startswith("embed.")}
        options |= {**recipe, "embed.dimension": dimension}
        if recipe.get("embed.url", options["embed.url"]) != self.settings["embed.url"]:
            options["embed.key"] = ""  # it belongs to the server that the settings name, and to no other
        return self._made(options["embed.provider"], options)

    def _made(self, provider: str, options: Mapping[str, Any]) -> Embedder:
        made: Embedder = plugins.load("embedders", provider)(options, self.settings.paths)
        return made

    def _recipe(self, model: Model | None) -> Mapping[str, Any]:
        """Return the settings that open a model: those stored with it, or else the current ones."""
        return (model and model.recipe) or {key: self.settings[key] for key in RECIPE}

    @property
    def reader(self) -> PageReader:
        """What turns files into text."""
        opened: PageReader = self.once("reader", lambda: plugins.load("readers", "files")())
        return opened

    @property
    def pictures(self) -> PictureReader | None:
        """What reads scans and pictures; None where no engine for it is installed, or none is wanted."""
        wish = self.settings["ocr.engine"]
        if wish == NONE or (engine := plugins.load("pictures", "engine")(wish)) is None:
            return None
        folder = self.settings.paths.cache
        opened: PictureReader = self.once(
            "pictures", lambda: plugins.load("pictures", "scans")(self.reader, engine, folder)
        )
        return opened

    def limits(self) -> ReadLimits:
        """Return how files are read and chunked."""
        from concord.index.documents import ReadLimits
        from concord.text.chunk import ChunkSize

        settings = self.settings
        size = ChunkSize.for_target(settings["ingest.chunk_tokens"], settings["ingest.chunk_overlap"])
        return ReadLimits(settings["ingest.max_bytes"], size)


def _close(part: Any) -> None:
    if hasattr(part, "close"):
        part.close()


def _scheme(setting: str, url: str) -> str:
    """Return the scheme of a URL, which says what kind of place it is.

    What is there instead of a URL is not repeated in the error: it may hold a password.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or not scheme.replace("-", "").replace("+", "").isalnum():
        raise BadValue(
            f"{setting} is no URL: nothing says what kind of place it is",
            hint="such as sqlite:///folder, postgresql://user@host/database or http://host:6333",
        )
    return scheme
