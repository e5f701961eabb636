"""The models that vectors are kept of, and which of them searches use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from concord import types
from concord.core.errors import Action, BadValue, Hint, NotFound
from concord.store.contract import Models, VectorIndex
from concord.store.rows import details_column, details_of, identity_column, identity_of
from concord.store.sql import Database, Session, override
from concord.types import Filter, Identity, Json, Scored, Vector

_MODELS = """
SELECT key, identity, version, is_added, (SELECT value FROM kb_vec_meta WHERE key = 'home') FROM kb_models"""
_ACTIVE = f"{_MODELS} WHERE key = (SELECT value FROM kb_meta WHERE key = 'active_model')"
SPACES = """
SELECT identity, recipe, key = (SELECT value FROM kb_meta WHERE key = 'active_model'), was_active
FROM kb_models WHERE is_added = 1 ORDER BY key"""
_NEW = "INSERT INTO kb_models (identity, is_added) VALUES (:identity, :is_added) RETURNING key"
_REMEMBER = "UPDATE kb_models SET is_added = 1, recipe = :recipe WHERE key = :model"
_DROP = "UPDATE kb_models SET is_added = 0, was_active = 0, recipe = '{}' WHERE key = :model"
_USE = """
INSERT INTO kb_meta (key, value) VALUES ('active_model', :model)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""


class Model(Struct, frozen=True):
    """A model as the tables know it. Its version changes whenever its vectors do."""

    key: int
    identity: Identity
    version: int
    is_added: bool  # False where only cached vectors are left of it
    home: str = ""  # where the store keeps its vectors, if not here


class VectorTables(Protocol):
    """Where an engine keeps the vectors themselves, by the ids of kb_embeddings, and how it searches them."""

    def create(self, session: Session, model: Model) -> None:
        """Make room for the vectors of a model."""

    def drop(self, session: Session, model: Model) -> None:
        """Delete all vectors of a model."""

    def write(self, session: Session, model: Model, vectors: Mapping[int, Vector]) -> None:
        """Store vectors under ids that have none."""

    def read(self, session: Session, model: Model, ids: list[int]) -> dict[int, Vector]:
        """Return those of the vectors that are there."""

    def stored(self, session: Session, model: Model) -> str:
        """Return the statement that lists the ids of the vectors that are there."""

    def remove(self, session: Session, model: Model, ids: list[int]) -> None:
        """Delete vectors."""

    def nearest(
        self, session: Session, model: Model, vector: Vector, filter: Filter, limit: int, ef: int | None
    ) -> list[Scored]:
        """Return the nearest chunks, nearest first, ties by id; vectors that are not intact are skipped."""


class SqlModels(Models):
    """The models of one store."""

    def __init__(self, database: Database, tables: VectorTables) -> None:
        self._database = database
        self._tables = tables

    @override
    def index(self, identity: Identity) -> VectorIndex:
        from concord.store.embeddings import SqlVectors  # late: it is not needed to know what is active

        return SqlVectors(self._database, self._tables, identity)

    @override
    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        with self._database.transaction() as session:
            model = find_model(session, identity) or new_model(session, self._tables, identity)
            session.run(_REMEMBER, {"recipe": details_column(recipe), "model": model.key})
            if active_model(session) is None:
                use(session, model)

    @override
    def activate(self, identity: Identity) -> None:
        with self._database.transaction() as session:
            use(session, _added(session, identity))

    @override
    def drop(self, identity: Identity) -> int:
        with self._database.transaction() as session:
            model = _added(session, identity)
            if model == active_model(session):
                raise BadValue(
                    f"searches use {identity.name}, so it cannot be removed",
                    hint=Hint(Action.MODELS_USE, "{models_use} another one first"),
                )
            values = {"model": model.key}
            dropped = session.value("SELECT count(*) FROM kb_chunk_vectors WHERE model = :model", values)
            session.run("DELETE FROM kb_chunk_vectors WHERE model = :model", values)
            session.run(_DROP, values)
            forget_if_empty(session, self._tables, model)
            return int(dropped)


def all_models(session: Session) -> list[Model]:
    """Return all models, also those of which only cached vectors are left."""
    return [_model(row) for row in session.rows(f"{_MODELS} ORDER BY key")]


def find_model(session: Session, identity: Identity) -> Model | None:
    """Return a model; None before anything was kept of it."""
    rows = session.rows(f"{_MODELS} WHERE identity = :identity", {"identity": identity_column(identity)})
    return _model(rows[0]) if rows else None


def active_model(session: Session) -> Model | None:
    """Return the model that searches use; None before the first."""
    rows = session.rows(_ACTIVE)
    return _model(rows[0]) if rows else None


def space_of(identity: str, recipe: str, is_active: int | None, was_active: int) -> types.Model:
    """Return a model in a row of SPACES."""
    return types.Model(identity_of(identity), details_of(recipe), bool(is_active), bool(was_active))


def new_model(session: Session, tables: VectorTables, identity: Identity, *, is_added: bool = True) -> Model:
    """Make room for the vectors of a model that is not known."""
    values = {"identity": identity_column(identity), "is_added": int(is_added)}
    model = Model(session.value(_NEW, values), identity, 0, is_added)
    tables.create(session, model)
    return model


def forget_if_empty(session: Session, tables: VectorTables, model: Model) -> None:
    """Forget a model that has been dropped and of which no vector is left."""
    values = {"model": model.key}
    is_used = "SELECT 1 FROM kb_embeddings WHERE model = :model"
    gone = f"SELECT 1 FROM kb_models WHERE key = :model AND is_added = 0 AND NOT EXISTS ({is_used})"
    if session.value(gone, values):
        tables.drop(session, model)
        session.run("DELETE FROM kb_models WHERE key = :model", values)


def use(session: Session, model: Model) -> None:
    """Let searches use a model."""
    session.run("UPDATE kb_models SET was_active = 1 WHERE key = :model", {"model": model.key})
    session.run(_USE, {"model": model.key})


def _added(session: Session, identity: Identity) -> Model:
    model = find_model(session, identity)
    if model is None or not model.is_added:
        raise NotFound(
            f"there are no vectors of {identity.name}",
            hint=Hint(Action.MODELS_LIST, "{models_list} shows what there is"),
        )
    return model


def _model(row: tuple[int, str, int, int, str | None]) -> Model:
    key, identity, version, is_added, home = row
    return Model(key, identity_of(identity), version, bool(is_added), home or "")
