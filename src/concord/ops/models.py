"""Models and their vectors: building a new model's beside the old, switching, going back.

Searches go on with the active model throughout, in this process and in others. A switch is one row of the
store; the vectors of the model before stay until they are removed, so that going back is as quick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from concord.core.errors import Action, BadValue, EmbedderDown, Hint, NotFound, joined
from concord.core.protocols import Embedder, Progress
from concord.index.embedding import EmbeddingReport, embed_by_model
from concord.store.contract import Store
from concord.types import Identity, Model, silent

OpenEmbedder = Callable[[Mapping[str, Any], int], Embedder]  # recipe, dimension or 0 → an embedder to close
_LOCK = "models"  # no source has this id: theirs are random


class ModelState(NamedTuple):
    """A model whose vectors are kept."""

    model: Model
    vectors: int
    pending: int  # chunks without a vector of it


class Built(NamedTuple):
    """The result of building a model's vectors."""

    identity: Identity
    is_active: bool
    embedding: EmbeddingReport
    took_s: float


class Switch(NamedTuple):
    """Whether searches use another model now."""

    outcome: Literal["switched", "already"]
    identity: Identity
    before: Identity | None
    embedding: EmbeddingReport
    took_s: float


class Models:
    """The models of one store."""

    def __init__(self, store: Store, opener: OpenEmbedder, lock_wait_s: float) -> None:
        self._store = store
        self._opener = opener
        self._lock_wait_s = lock_wait_s

    def list(self) -> list[ModelState]:
        """Return every model whose vectors are kept, in the order in which they were added."""
        chunks = self._store.catalog.count().chunks
        states = []
        for model in self._store.catalog.snapshot().models:
            pending = self._store.models.index(model.identity).count_pending()
            states.append(ModelState(model, chunks - pending, pending))
        return states

    def add(self, provider: str, model: str = "", url: str = "", progress: Progress = silent) -> Built:
        """Build the vectors of a further model; an interrupted build is continued."""
        recipe = recipe_for(provider, model, url)
        started = time.monotonic()
        with self._locked(), closing(self._opener(recipe, 0)) as embedder:
            identity = embedder.identity
            self._store.models.add(identity, recipe)
            embedding = embed_by_model(self._store, embedder, progress)
        self._store.maintain(progress)
        active = self._store.catalog.snapshot().active
        is_active = active is not None and active.identity == identity
        return Built(identity, is_active, embedding, time.monotonic() - started)

    def use(self, name: str, *, force: bool = False, progress: Progress = silent) -> Switch:
        """Search with another model from now on; chunks that it has no vector for are embedded first."""
        started, target, before = time.monotonic(), self.find(name), self._store.catalog.snapshot().active
        old = before.identity if before else None
        outcome: Literal["switched", "already"] = "already"
        embedding = EmbeddingReport()
        if before and not target.is_active:
            with self._locked():
                embedding = self._completed(target, force, progress)
                self._store.models.activate(target.identity)
                self._completed(target, True, progress)  # what was stored while the others were embedded
            outcome = "switched"
        return Switch(outcome, target.identity, old, embedding, time.monotonic() - started)

    def remove(self, name: str) -> tuple[Identity, int]:
        """Delete a model's vectors, by its whole name or its number; return whose and how many."""
        identity = self.find(name, by_part=False).identity
        return identity, self._store.models.drop(identity)

    def find(self, name: str, *, by_part: bool = True) -> Model:
        """Return a model by its name, with or without the provider, its number, or a part of its name."""
        models = self._store.catalog.snapshot().models
        if name.isdecimal():
            fitting = [model for number, model in enumerate(models, 1) if number == int(name)]
        else:
            fitting = [model for model in models if name in (model.identity.name, model.identity.model)]
            if by_part and name and not fitting:
                fitting = [model for model in models if name in model.identity.name]
        if len(fitting) > 1:
            several = ", ".join(model.identity.name for model in fitting)
            raise BadValue(
                f"{name!r} fits several models: {several}",
                hint=Hint(Action.MODELS_LIST, "{models_list} numbers them"),
            )
        if not fitting:
            known = ", ".join(f"{model.identity.name} ({number})" for number, model in enumerate(models, 1))
            hint = f"there are: {known or 'none yet'}"
            raise NotFound(f"there are no vectors of a model {name!r}", hint=hint)
        return fitting[0]

    def _completed(self, target: Model, force: bool, progress: Progress) -> EmbeddingReport:
        wanted = target.identity
        if not self._store.models.index(wanted).count_pending():
            return EmbeddingReport()
        with closing(self._opener(target.recipe, wanted.dimension)) as embedder:
            if embedder.identity != wanted:
                raise BadValue(
                    f"the model is {embedder.identity.name} now, its vectors are of {wanted.name}",
                    hint=Hint(Action.MODELS_ADD, "{models_add} builds vectors of the new one"),
                )
            done = embed_by_model(self._store, embedder, progress)
        self._store.maintain(progress)
        if done.pending > done.refused and not force:
            lacking = f"{done.pending:,} chunks have no vector of {wanted.name} yet"
            raise EmbedderDown(
                joined(": ", lacking, done.degraded or ""),
                hint=Hint(Action.FORCE, "try again when it answers, or {force}: the next {sync} embeds them"),
            )
        return done

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._store.lock(_LOCK, "building the vectors of a model", wait_s=self._lock_wait_s):
            yield


def recipe_for(provider: str, model: str, url: str) -> dict[str, str]:
    """Return the settings that open a model; a folder becomes an absolute path, valid from anywhere."""
    folder = Path(model).expanduser()
    named = str(folder.absolute()) if model and folder.is_dir() else model
    return {"embed.provider": provider, "embed.model": named, "embed.url": url}
