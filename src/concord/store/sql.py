"""How the shared statements reach an engine: the few things in which SQL dialects differ, and sessions.

Statements are written once, with `:name` for a value and two forms that no engine knows:

    IN (:ids...)            the values of a list; `IN (:keys as bytes...)` if they are bytes
    json_list(tag, position)    an aggregate: the values of a column, ordered by another, as JSON text
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from concord.core.errors import BadValue, KBError
from concord.core.overriding import override as override

if TYPE_CHECKING:
    from concord.store.models import Model
    from concord.types import Filter, Scored, Vector

Values = Mapping[str, Any]
NOTHING: Values = {}
Row = Sequence[Any]  # columns are typed by the schema; mypy cannot see it


class Duplicate(Exception):
    """A row was refused because another has a value that must be unique."""


class Dialect(Protocol):
    """What an engine's SQL has of its own, beside the form of statements."""

    types: Mapping[str, str]  # of columns, by the names in `schema`
    glob: str  # whether the column `path` matches :glob
    number_after: str  # lets a {table} number its rows after :last
    watch: str  # makes triggers that record changes of chunks and documents in kb_outbox
    unwatch: str  # takes these triggers away, if they are there

    def glob_value(self, glob: str) -> str: ...  # what :glob is for a glob of ours


class Session(Protocol):
    """A connection within `Database.read` or `Database.transaction`. Whatever inserts may raise Duplicate."""

    def rows(self, statement: str, values: Values = NOTHING) -> list[Any]: ...  # all, as tuples
    def several(self, *statements: str) -> list[list[Any]]: ...  # which a server is asked for at once
    def iterate(self, statement: str, values: Values = NOTHING) -> Iterable[Any]: ...  # not all held at once

    # Returns the first column of the first row; None if there is no row.
    def value(self, statement: str, values: Values = NOTHING) -> Any: ...
    def run(self, statement: str, values: Values = NOTHING) -> None: ...
    def run_many(self, statement: str, values: Iterable[Values]) -> None: ...
    def insert_many(self, statement: str, values: Sequence[Values]) -> list[Any]: ...  # what each returns


class Database(Protocol):
    """The tables of one organisation."""

    dialect: Dialect

    # Lends a session for reading. Each statement sees one moment, which may be later than the one before: to
    # hold on to one would cost a server two trips more. So what one lists, another may no longer find.
    def read(self) -> AbstractContextManager[Session]: ...

    def rows(self, statement: str, values: Values = NOTHING) -> list[Any]:
        with self.read() as session:
            return session.rows(statement, values)

    def value(self, statement: str, values: Values = NOTHING) -> Any:
        with self.read() as session:
            return session.value(statement, values)

    def transaction(self) -> AbstractContextManager[Session]: ...  # alone among those that write

    # Holds a lock across processes, as `Store.lock` does.
    def lock(self, name: str, doing: str, wait_s: float) -> AbstractContextManager[None]: ...


class WordTables(Protocol):
    """How an engine keeps the words of chunks in step with their rows."""

    def delete_chunks(self, session: Session, chunk_ids: Sequence[int]) -> None: ...  # and their words
    def index(self, session: Session, chunk_ids: Sequence[int]) -> None: ...  # what was written or changed


class VectorTables(Protocol):
    """Where an engine keeps the vectors themselves, by the ids of kb_embeddings, and how it searches them."""

    def create(self, session: Session, model: Model) -> None: ...
    def drop(self, session: Session, model: Model) -> None: ...
    def write(self, session: Session, model: Model, vectors: Mapping[int, Vector]) -> None: ...  # new ids
    def read(self, session: Session, model: Model, ids: list[int]) -> dict[int, Vector]: ...  # those there
    def stored(self, session: Session, model: Model) -> str: ...  # the statement that lists the ids there
    def remove(self, session: Session, model: Model, ids: list[int]) -> None: ...

    # Returns the nearest chunks, nearest first, ties by id; SQLite skips vectors that are not intact.
    def nearest(
        self, session: Session, model: Model, vector: Vector, filter: Filter, limit: int, ef: int | None
    ) -> list[Scored]: ...


Place = TypeVar("Place")
Kinds = type[Exception] | tuple[type[Exception], ...]
# What is raised, and what to tell the user of it; None of a fault of ours. The first row that fits decides.
Explanations = Iterable[tuple[Kinds, Callable[[Exception, Place], KBError | None]]]


def says(kind: type[KBError], message: str, hint: str) -> Callable[[object, str], KBError]:
    """Return what makes an error of ours; the message may name the {place} and say the {fault}."""

    def explain(fault: object, place: str) -> KBError:
        said = getattr(fault, "strerror", None) or str(fault).strip().partition("\n")[0]
        return kind(message.format(place=place, fault=said), hint=hint)

    return explain


@contextmanager
def explained(raised: Kinds, explanations: Explanations[Place], place: Place) -> Iterator[None]:
    """Turn what an engine raises in the block into a KBError; what only a fault of ours can cause passes."""
    try:
        yield
    except raised as fault:
        explain = next((explain for kinds, explain in explanations if isinstance(fault, kinds)), None)
        error = explain(fault, place) if explain else None
        if error is None:
            raise
        raise error from fault
    except UnicodeEncodeError as fault:  # a lone surrogate, as in a file name that is not UTF-8
        raise BadValue(
            "text that is not valid Unicode cannot be stored", hint="rename or convert it"
        ) from fault
