"""What every store refuses, in the same words: each function returns the error to raise."""

from __future__ import annotations

import math
from collections.abc import Collection

from concord.core.errors import (
    Action,
    BadValue,
    Hint,
    ModelMismatch,
    NotFound,
    ReadOnlyStore,
    StoreBusy,
    VectorsElsewhere,
)
from concord.types import FLOAT_BYTES, Identity, Source, Vector

_GONE = "it may have been removed meanwhile"


def name_taken(source: Source) -> BadValue:
    """Say that another source has this name or prefix."""
    return BadValue(
        f"another source is called {source.name!r} or has the prefix {source.prefix!r}",
        hint=Hint(Action.NAME, "give {name}"),
    )


def path_taken(*paths: str) -> BadValue:
    """Say that another document has one of these paths."""
    which = repr(paths[0]) if len(paths) == 1 else "one of the paths"
    return BadValue(
        f"another document is stored under {which}", hint="delete it first, or give this one another path"
    )


def no_document(document_id: str) -> NotFound:
    """Say that a document that is to be changed is not there."""
    return NotFound(f"there is no document {document_id!r}", hint=_GONE)


def no_source(source_id: str) -> NotFound:
    """Say that a document's source is not there."""
    return NotFound(f"there is no source {source_id!r}", hint=_GONE)


def read_only(path: str) -> ReadOnlyStore:
    """Say that a store on disk can only be read."""
    return ReadOnlyStore(
        f"{path} is read-only",
        hint=Hint(Action.STORE, "change its permissions or its folder's, or use another {store}"),
    )


def locked(doing: str) -> StoreBusy:
    """Say that another process still holds a lock."""
    return StoreBusy(f"another process is {doing}", hint="wait for it to finish, then try again")


def unprepared() -> BadValue:
    """Say that vectors cannot be stored before `prepare` has named their embedder."""
    return BadValue(
        "nobody has told which embedder makes the vectors", hint="call prepare() with its identity first"
    )


def vectors_gone(identity: Identity | None) -> ModelMismatch:
    """Say that there are no vectors of the model to search with, or no longer."""
    name = identity.name if identity else "the model"
    return ModelMismatch(f"the index holds no vectors of {name}, or no longer", hint=Hint(Action.MODELS_LIST))


def unknown_space(identity: Identity) -> NotFound:
    """Say that a model has no vectors."""
    return NotFound(
        f"there are no vectors of {identity.name}",
        hint=Hint(Action.MODELS_LIST, "{models_list} shows what there is"),
    )


def space_in_use(identity: Identity) -> BadValue:
    """Say that the vectors to be removed are those that searches use."""
    return BadValue(
        f"searches use {identity.name}, so it cannot be removed",
        hint=Hint(Action.MODELS_USE, "{models_use} another one first"),
    )


def none_anywhere(asked: str) -> VectorsElsewhere:
    """Say that vectors are looked for in one place and meant to be in another, and that neither has any."""
    return VectorsElsewhere(
        Hint(Action.SYNC, f"no vector has been sent to {asked or 'the store itself'} yet: {{sync}}"),
        hint="or set vectors.url to where they are",
    )


def kept_by_another(home: str) -> VectorsElsewhere:
    """Say that the vectors outside belong to the store that this one was copied from."""
    return VectorsElsewhere(
        Hint(
            Action.SYNC,
            f"the vectors in {home} are those of the store that this one was copied from:"
            " {sync} sends its own",
        ),
        hint="nothing is embedded anew for that",
    )


def kept_elsewhere(home: str, asked: str) -> VectorsElsewhere:
    """Say that a store's vectors are in one place, and looked for in another."""
    kept, wanted = (url or "the store itself" for url in (home, asked))
    return VectorsElsewhere(
        Hint(
            Action.MIGRATE, f"the vectors are kept in {kept}, not in {wanted}: {{migrate}} brings them there"
        ),
        hint="or set vectors.url to where they are",
    )


_LENGTH_TOLERANCE = 1e-3  # a unit vector rounded to float32 is off by 1e-7; to float16, by 5e-4


def check_vector(vector: Vector, dimension: int) -> None:
    """Refuse a vector that is not finite, not of length 1 or not of this dimension.

    Raises:
        BadValue: it is one of these.
    """
    if len(vector) != dimension * FLOAT_BYTES:
        found = len(vector) / FLOAT_BYTES
        raise BadValue(f"a vector has {found:g} dimensions where the index has {dimension}", hint=_HINT)
    from array import array  # late: a search by words checks no vector

    length = math.hypot(*array("f", vector))
    if not abs(length - 1) <= _LENGTH_TOLERANCE:  # so written, it refuses NaN as well
        raise BadValue(f"a vector has the length {length:g} where 1 is needed", hint=_HINT)


def check_vectors(vectors: Collection[Vector], dimension: int) -> None:
    """Refuse all of these vectors if `check_vector` refuses one of them.

    Raises:
        BadValue: it refuses one.
    """
    if not is_sound(vectors, dimension):
        for vector in vectors:
            check_vector(vector, dimension)


def is_sound(vectors: Collection[Vector], dimension: int | None) -> bool:
    """Whether `check_vector` would refuse none of these: for many at once, this takes a tenth of the time."""
    import numpy as np  # late: a search checks one vector, and some stores have no use for it at all

    if not dimension or any(len(vector) != dimension * FLOAT_BYTES for vector in vectors):
        return False
    rows = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dimension)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return bool((np.abs(lengths - 1) <= _LENGTH_TOLERANCE).all())


_HINT = "the embedder is broken or is not the one that the index was built with"
