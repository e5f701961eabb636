"""What every store refuses, in the same words: each function returns the error to raise."""

from __future__ import annotations

import math

from concord.core.errors import (
    Action,
    BadValue,
    Hint,
    ModelMismatch,
    ReadOnlyStore,
    StoreBusy,
    VectorsElsewhere,
)
from concord.types import FLOAT_BYTES, Identity, Vector


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
    """Refuse a vector that is not finite, not of length 1 or not of this dimension."""
    if len(vector) != dimension * FLOAT_BYTES:
        found = len(vector) / FLOAT_BYTES
        raise BadValue(f"a vector has {found:g} dimensions where the index has {dimension}", hint=_HINT)
    from array import array  # late: a search by words checks no vector

    length = math.hypot(*array("f", vector))
    if not abs(length - 1) <= _LENGTH_TOLERANCE:  # so written, it refuses NaN as well
        raise BadValue(f"a vector has the length {length:g} where 1 is needed", hint=_HINT)


_HINT = "the embedder is broken or is not the one that the index was built with"
