"""What a store knows of vectors that are kept outside it: which are there, and what waits to be sent there.

A row of kb_chunk_vectors without an embedding says that a chunk's vector is there. kb_outbox is filled by
triggers, in the transaction that changes a chunk or its document, so that a crash forgets nothing. The
triggers exist only while vectors are kept outside: nobody else pays for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import astuple, replace

from concord.store.contract import Outbox
from concord.store.files import COPY, is_copied
from concord.store.models import find_model
from concord.store.rows import list_of, stored_list
from concord.store.sql import Database, Dialect, Session, override
from concord.store.store_errors import kept_elsewhere
from concord.types import ChunkId, Home, Identity

TEXTS = "SELECT key, value FROM kb_vec_meta"
_REMEMBER = """
INSERT INTO kb_vec_meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM kb_chunk_vectors)"
_IS_SETTLED = "SELECT NOT EXISTS (SELECT 1 FROM kb_outbox)"
_CHANGES = "SELECT turn, chunk FROM kb_outbox ORDER BY turn LIMIT :limit"
_ALIVE = "SELECT id FROM kb_chunks WHERE id IN (:chunks...)"
_ACKNOWLEDGE = """
INSERT INTO kb_chunk_vectors (chunk, model, embedding) VALUES (:chunk, :model, NULL)
ON CONFLICT (chunk, model) DO NOTHING"""
_RETRACT = """
DELETE FROM kb_chunk_vectors WHERE model = :model AND chunk IN (
    SELECT c.id FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key
    WHERE d.source = (SELECT key FROM kb_sources WHERE id = :source))
RETURNING chunk"""


class SqlOutbox(Outbox):
    """The outbox of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    def home(self) -> Home:
        return home_of(dict(self._database.rows(TEXTS)), self._database.origin)

    @override
    def own(self) -> Home:
        texts = dict(self._database.rows(TEXTS))
        home = home_of(texts, self._database.origin)
        if not home.url or (texts.get("birthplace") and not home.is_anothers):
            return home
        with self._database.transaction() as session:
            if home_of(_texts(session), self._database.origin).is_anothers:
                self._move(session, home.url)
            _remember(session, "birthplace", self._database.origin())
        return self.home()

    @override
    def is_empty(self) -> bool:
        return bool(self._database.value(_IS_EMPTY))

    @override
    def move(self, url: str) -> None:
        with self._database.transaction() as session:
            self._move(session, url)

    @override
    def acknowledge(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        with self._database.transaction() as session:
            if model := find_model(session, identity):
                alive = session.rows(_ALIVE, {"chunks": list(chunk_ids)})
                session.run_many(_ACKNOWLEDGE, ({"chunk": id, "model": model.key} for (id,) in alive))

    @override
    def retract(self, identity: Identity, source_id: str) -> int:
        with self._database.transaction() as session:
            model = find_model(session, identity)
            values = {"model": model.key if model else 0, "source": source_id}
            return len(session.rows(_RETRACT, values))

    @override
    def changes(self, limit: int) -> list[tuple[int, ChunkId]]:
        return self._database.rows(_CHANGES, {"limit": limit})

    @override
    def settle(self, turns: Sequence[int]) -> None:
        with self._database.transaction() as session:
            session.run("DELETE FROM kb_outbox WHERE turn IN (:turns...)", {"turns": list(turns)})

    @override
    def left(self) -> list[Home]:
        return _left(dict(self._database.rows(TEXTS)))

    @override
    def forget(self, home: Home) -> None:
        with self._database.transaction() as session:
            _remember_left(session, [other for other in _left(_texts(session)) if other != home])

    def _move(self, session: Session, url: str) -> None:
        move_home(session, url, self._database.origin(), self._database.dialect)


def home_of(texts: Mapping[str, str], origin: Callable[[], str]) -> Home:
    """Return where vectors are kept, by the rows of TEXTS; an empty URL is the store itself."""
    url = texts.get("home", "")
    is_anothers = bool(url) and is_copied(texts.get("birthplace", ""), origin())
    return Home(url, texts.get("key", ""), is_anothers)


def check_here(home: str) -> None:
    """Refuse to use vectors of this store when they are kept outside."""
    if home:
        raise kept_elsewhere(home, "")


def claim(session: Session, database: Database) -> None:
    """Keep vectors in this store, unless there are some elsewhere."""
    if home := _texts(session).get("home"):
        if not session.value(_IS_EMPTY):
            check_here(home)
        move_home(session, "", database.origin(), database.dialect)


def part_from_original(session: Session, origin: str, dialect: Dialect) -> None:
    """Give a copy of a store a key of its own; the vectors outside are the original's, so all are pending."""
    if url := _texts(session).get("home"):
        _remember(session, "birthplace", COPY)
        move_home(session, url, origin, dialect)
        _remember(session, "birthplace", COPY)


def move_home(session: Session, url: str, origin: str, dialect: Dialect) -> None:
    """Make all chunks pending for all models, and keep vectors that come at `url`; empty is this store."""
    old = home_of(_texts(session), lambda: origin)
    is_left = old.url and (old.url != url or old.is_anothers)
    if is_left and not (session.value(_IS_EMPTY) and session.value(_IS_SETTLED)):
        _remember_left(session, [*_left(_texts(session)), old])
    if old.is_anothers:
        _remember_left(session, [replace(home, is_anothers=True) for home in _left(_texts(session))])
    session.run(dialect.unwatch)
    for statement in ("kb_chunk_vectors", "kb_outbox", "kb_vec_meta WHERE key = 'home'"):
        session.run(f"DELETE FROM {statement}")
    if url:
        import secrets  # late: a search by words needs no random key

        key = old.key if old.url == url and not old.is_anothers else secrets.token_hex(8)
        for name, value in (("home", url), ("key", key), ("birthplace", origin)):
            _remember(session, name, value)
        session.run(dialect.watch)


def _texts(session: Session) -> dict[str, str]:
    return dict(session.rows(TEXTS))


def _remember(session: Session, key: str, value: str) -> None:
    session.run(_REMEMBER, {"key": key, "value": value})


def _left(texts: Mapping[str, str]) -> list[Home]:
    return [Home(*home) for home in list_of(texts.get("left", "[]"))]


def _remember_left(session: Session, homes: Sequence[Home]) -> None:
    # A flag only where it is set: older versions read two values.
    written = [astuple(home) if home.is_anothers else (home.url, home.key) for home in homes]
    _remember(session, "left", stored_list(written))
