"""The models that vectors are kept of, which of them searches use, and what is known of vectors outside.

A row of kb_chunk_vectors without an embedding says that a chunk's vector is outside the store. kb_outbox has
what waits to be sent there. Triggers fill it, in the transaction that changes a chunk or its document, so
that a crash forgets nothing; they exist only while vectors are kept outside: nobody else pays for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from concord import types
from concord.core.errors import Action, BadValue, Hint, NotFound, VectorsElsewhere
from concord.store.indexes import Models, VectorIndex
from concord.store.rows import (
    OF_SOURCE,
    details_column,
    details_of,
    identity_column,
    identity_of,
)
from concord.store.sql import Database, Dialect, Session, VectorTables, override
from concord.types import ChunkId, Home, Identity, Json

_MODELS = """
SELECT key, identity, version, is_added, (SELECT value FROM kb_vec_meta WHERE key = 'home') FROM kb_models"""
ADDED = """
SELECT identity, recipe, key = (SELECT value FROM kb_meta WHERE key = 'active_model')
FROM kb_models WHERE is_added = 1 ORDER BY key"""
_NEW = "INSERT INTO kb_models (identity, is_added) VALUES (:identity, :is_added) RETURNING key"
_DESCRIBE = "UPDATE kb_models SET is_added = 1, recipe = :recipe WHERE key = :model"
_DROP = "UPDATE kb_models SET is_added = 0, recipe = '{}' WHERE key = :model"
_USE = """
INSERT INTO kb_meta (key, value) VALUES ('active_model', :model)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""

TEXTS = "SELECT key, value FROM kb_vec_meta"
_REMEMBER = """
INSERT INTO kb_vec_meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM kb_chunk_vectors)"
_CHANGES = "SELECT turn, chunk FROM kb_outbox ORDER BY turn LIMIT :limit"
_ACKNOWLEDGE = """
INSERT INTO kb_chunk_vectors (chunk, model, embedding)
SELECT id, :model, NULL FROM kb_chunks WHERE id IN (:chunks...)
ON CONFLICT (chunk, model) DO NOTHING"""
_RETRACT = f"""
DELETE FROM kb_chunk_vectors WHERE model = :model AND chunk IN (
    SELECT c.id FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key WHERE {OF_SOURCE})
RETURNING chunk"""


class Model(Struct, frozen=True):
    """A model as the tables know it. Its version changes whenever its vectors do."""

    key: int
    identity: Identity
    version: int
    is_added: bool  # False where only cached vectors are left of it
    home: str = ""  # where the store keeps its vectors, if not here


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
            session.run(_DESCRIBE, {"recipe": details_column(recipe), "model": model.key})
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
    rows = session.rows(f"{_MODELS} ORDER BY key")
    return [
        Model(key, identity_of(identity), version, bool(is_added), home or "")
        for key, identity, version, is_added, home in rows
    ]


def find_model(session: Session, identity: Identity) -> Model | None:
    """Return a model; None before anything was kept of it."""
    return next((model for model in all_models(session) if model.identity == identity), None)


def active_model(session: Session) -> Model | None:
    """Return the model that searches use; None before the first."""
    key = session.value("SELECT value FROM kb_meta WHERE key = 'active_model'")
    return next((model for model in all_models(session) if model.key == key), None)


def model_of(identity: str, recipe: str, is_active: int | None) -> types.Model:
    """Return a model in a row of ADDED."""
    return types.Model(identity_of(identity), details_of(recipe), bool(is_active))


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
    session.run(_USE, {"model": model.key})


def _added(session: Session, identity: Identity) -> Model:
    model = find_model(session, identity)
    if model is None or not model.is_added:
        raise NotFound(
            f"there are no vectors of {identity.name}",
            hint=Hint(Action.MODELS_LIST, "{models_list} shows what there is"),
        )
    return model


class Outbox:
    """What a store knows of vectors that are kept outside it, so that none is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def home(self) -> Home:
        """Return where the vectors are kept."""
        return home_of(dict(self._database.rows(TEXTS)))

    def is_empty(self) -> bool:
        """Whether no chunk has a vector of any model, wherever they are kept."""
        return bool(self._database.value(_IS_EMPTY))

    def move(self, url: str) -> None:
        """Keep vectors at this URL from now on: all chunks are pending for all models, no change waits."""
        with self._database.transaction() as session:
            move_home(session, url, self._database.dialect)

    def acknowledge(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Note that the vectors of chunks are stored outside; chunks that are gone are skipped."""
        with self._database.transaction() as session:
            if model := find_model(session, identity):
                session.run(_ACKNOWLEDGE, {"chunks": list(chunk_ids), "model": model.key})

    def retract(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again for one model; return how many were not."""
        with self._database.transaction() as session:
            model = find_model(session, identity)
            return len(session.rows(_RETRACT, {"model": model.key if model else 0, "source": source_id}))

    def changes(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes that the vector store outside does not know of, each with its number.

        They are chunks that were deleted, or whose position or document has changed.
        """
        return self._database.rows(_CHANGES, {"limit": limit})

    def settle(self, turns: Sequence[int]) -> None:
        """Note that the changes with these numbers are known there."""
        with self._database.transaction() as session:
            session.run("DELETE FROM kb_outbox WHERE turn IN (:turns...)", {"turns": list(turns)})


def home_of(texts: Mapping[str, str]) -> Home:
    """Return where vectors are kept, by the rows of TEXTS; an empty URL is the store itself."""
    return Home(texts.get("home", ""), texts.get("key", ""))


def kept_elsewhere(home: str, asked: str) -> VectorsElsewhere:
    """Return the error that a store's vectors are in one place, and looked for in another."""
    kept, wanted = (url or "the store itself" for url in (home, asked))
    message = f"the vectors are kept in {kept}, not in {wanted}: {{migrate}} brings them there"
    return VectorsElsewhere(Hint(Action.MIGRATE, message), hint="or set vectors.url to where they are")


def check_here(home: str) -> None:
    """Refuse to use vectors of this store when they are kept outside."""
    if home:
        raise kept_elsewhere(home, "")


def claim(session: Session, dialect: Dialect) -> None:
    """Keep vectors in this store, unless there are some elsewhere."""
    if home := _texts(session).get("home"):
        if not session.value(_IS_EMPTY):
            check_here(home)
        move_home(session, "", dialect)


def part_from_original(session: Session, dialect: Dialect) -> None:
    """Give a copy of a store a key of its own; the vectors outside are the original's, so all are pending."""
    if url := _texts(session).get("home"):
        session.run("DELETE FROM kb_vec_meta WHERE key = 'home'")
        move_home(session, url, dialect)


def move_home(session: Session, url: str, dialect: Dialect) -> None:
    """Make all chunks pending for all models, and keep vectors that come at `url`; empty is this store."""
    old = home_of(_texts(session))
    session.run(dialect.unwatch)
    for rows in ("kb_chunk_vectors", "kb_outbox", "kb_vec_meta WHERE key = 'home'"):
        session.run(f"DELETE FROM {rows}")
    if url:
        import secrets  # late: a search by words needs no random key

        _remember(session, "home", url)
        _remember(session, "key", old.key if old.url == url else secrets.token_hex(8))
        session.run(dialect.watch)


def _texts(session: Session) -> dict[str, str]:
    return dict(session.rows(TEXTS))


def _remember(session: Session, key: str, value: str) -> None:
    session.run(_REMEMBER, {"key": key, "value": value})
