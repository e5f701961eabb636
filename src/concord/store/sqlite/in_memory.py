"""What a process keeps in memory of the vectors that it has searched a few times: rows, and codes of many.

Of many vectors, codes propose some hundred. Rows tell which of these are nearest: they are whole, or rounded
to a byte a number, because reading all that codes propose would take longer than asking them. What is nearest
by its row is read from the file and compared exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from concord.core.errors import KBError
from concord.store.models import Model, find_model
from concord.store.sql import Session
from concord.store.sqlite.compare import Codes, Floats, Ids, Mask, Rows, arrays, blocks, largest, sound
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.vectors import read_vectors, table_of
from concord.types import Vector

# Reading all vectors takes as long as this many searches: so many have to come before it pays.
WORTH_KEEPING = 6
THREAD = "making codes"
_PROPOSED = 800  # hold .995 of the nearest 40 (35,083 vectors of texts, questions that people asked)
_PROPOSED_A_HIT = 20
_USUAL_EFFORT = 64
_COMPARED_A_HIT = 2  # of those that are nearest as rounded
_SAMPLE = 200  # vectors, whose mean is the centre of all codes
_TRIED = 40  # of these: whether codes propose their neighbours
_LEAST_RECALL = 0.99
_SEED = 1
_MOST_MASKS = 8
_GROWN = 1.5  # times as many vectors as were read: their centre may have moved, so all is read anew
_VALUES_READ = 64
_LARGEST_BYTE = 127
MOST_WHOLE = 50_000  # vectors: 77 MB of 384 dimensions. A server with its model loaded stays under 300 MB.

_IDS = "SELECT id FROM kb_embeddings WHERE model = :model AND id > :last"
_GENERATION = "SELECT value FROM kb_meta WHERE key = 'generation'"
_LAST = "SELECT seq FROM sqlite_sequence WHERE name = 'kb_embeddings'"

Open = Callable[[], AbstractContextManager[Session]]
Which = tuple[object, int]  # file and model: an id always means the same vector of these


class _Stopped(Exception):
    """The store is being closed."""


class Kept(NamedTuple):
    """The vectors of a model, as far as they are kept. Some may have gone: masks leave them out."""

    ids: Ids
    rows: Rows
    codes: Codes | None  # None: of few, and where codes find too little
    last: int  # id that any vector had when these were read
    read: int  # vectors, when all were read

    def nearest(
        self, query: Floats, mask: Mask, limit: int, effort: int | None, codes_from: int | None
    ) -> dict[int, Vector | None]:
        """Return ids of vectors to compare, among which the nearest are that a mask lets through.

        And the vectors themselves, where they are kept whole.
        """
        places = np.flatnonzero(mask)
        if self.codes and len(places) >= (codes_from or 0):
            share = max(1.0, (effort or 0) / _USUAL_EFFORT)
            count = max(_PROPOSED_A_HIT * limit, int(_PROPOSED * share))
            places = self.codes.propose(query, count, mask)
        rows = self.rows if len(places) == len(mask) else self.rows[places]
        numbers = rows.astype(np.float32, copy=False)
        scores = np.einsum("ij,j->i", numbers, query)
        is_whole = rows.dtype == np.float32
        if not is_whole:
            scores /= np.linalg.norm(numbers, axis=1)
        best = places[largest(scores, _COMPARED_A_HIT * limit)]
        vectors = map(np.ndarray.tobytes, self.rows[best]) if is_whole else repeat(None)
        return dict(zip(self.ids[best].tolist(), vectors, strict=False))

    def grown(self, session: Session, model: Model) -> Kept | None:
        """Return the same with all vectors that came since; None if there are so many that all are read."""
        last = session.value(_LAST) or 0
        if last <= self.last:
            return self
        ids = [id for (id,) in session.rows(_IDS, {"model": model.key, "last": self.last})]
        if len(self.ids) + len(ids) > _GROWN * self.read:
            return None
        vectors = arrays(read_vectors(session, model, ids), model.identity.dimension)
        more = _part(*vectors, self.rows.dtype, self.codes.centre if self.codes else None)
        return _joined([self, more], last, self.read)


class Memory:
    """What is kept of the model that was searched last; from `codes_from` vectors on, with codes if not None.

    To make codes of many vectors takes seconds: they are made in a thread, with a session of its own, and
    searches do without meanwhile.
    """

    def __init__(self, codes_from: int | None, open: Open) -> None:
        self._codes_from = codes_from
        self._open = open
        self._making: threading.Thread | None = None
        self._is_closed = threading.Event()
        self._searched: tuple[Which, int] | None = None  # what was searched last, and how often
        self._kept: tuple[Which, Kept | None] | None = None  # None: codes find too little
        self._masks: dict[tuple[object, ...], Mask] = {}

    def searched(self, session: Session, model: Model) -> Kept | None:
        """Return what is kept of a model as it is now, one search more; None while it is not worth it."""
        which = _which(session, model)
        if self._kept and self._kept[0] == which:
            kept = self._kept[1]
            if kept is None or (kept := kept.grown(session, model)):
                self._kept = which, kept
                return kept
        searches = self._searched[1] + 1 if self._searched and self._searched[0] == which else 1
        self._searched = which, searches
        is_making = self._making is not None and self._making.is_alive()
        if searches % (WORTH_KEEPING + 1) == 0 and not is_making:
            self._making = threading.Thread(target=self._make, args=(model,), name=THREAD, daemon=True)
            self._making.start()
        return None

    def mask(
        self, kept: Kept, session: Session, model: Model, filter: str, allowed: Callable[[], Iterable[int]]
    ) -> Mask:
        """Return which vectors a filter allows; the same is asked for often."""
        seen = session.value(_GENERATION), model.version  # what counts changes
        key = (*_which(session, model), *seen, kept.last, len(kept.ids), filter)
        mask = self._masks.get(key)
        if mask is None:
            mask = np.isin(kept.ids, np.fromiter(allowed(), np.int64))
            if len(self._masks) >= _MOST_MASKS:
                self._masks = {}
            self._masks[key] = mask
        return mask

    def close(self) -> None:
        """Stop making codes, and wait for that."""
        self._is_closed.set()
        if self._making:
            self._making.join()

    def _make(self, model: Model) -> None:
        """Read all vectors of a model as they are now; what fails is left to searches, which report it."""
        with suppress(_Stopped, KBError), self._open() as session:
            if now := find_model(session, model.identity):
                kept = _read_all(session, now, self._codes_from, self._is_closed.is_set)
                self._kept = _which(session, now), kept


def _which(session: Session, model: Model) -> Which:
    assert isinstance(session, Connection)
    return session.file, model.key


def _read_all(
    session: Session, model: Model, codes_from: int | None, is_stopped: Callable[[], bool]
) -> Kept | None:
    """Read all vectors of a model; None where they are too many to be compared without codes.

    Raises:
        _Stopped: nobody needs them any more.
    """
    dimension, last = model.identity.dimension, session.value(_LAST) or 0
    ids = [id for (id,) in session.rows(_IDS, {"model": model.key, "last": 0})]
    dtype = np.dtype(np.float32 if len(ids) <= MOST_WHOLE else np.int8)
    centre, sample = None, np.empty((0, dimension), np.float32)
    if codes_from is not None and len(ids) >= codes_from:
        chosen = np.random.default_rng(_SEED).permutation(ids)[:_SAMPLE].tolist()
        _, sample = sound(*arrays(read_vectors(session, model, chosen), dimension))
        centre = sample.mean(axis=0) if len(sample) else None
    parts = [_part(np.empty(0, np.int64), sample[:0], dtype, centre)]
    for block in blocks(session, table_of(model.key), dimension, _VALUES_READ):
        if is_stopped():
            raise _Stopped
        parts.append(_part(*block, dtype, centre))
    kept = _joined(parts, last, len(ids))
    if kept.codes and kept.codes.recall(kept.rows, sample[:_TRIED], _PROPOSED) < _LEAST_RECALL:
        kept = kept._replace(codes=None)
    return kept if kept.codes or dtype == np.float32 else None


def _part(ids: Ids, vectors: Floats, dtype: np.dtype[Any], centre: Floats | None) -> Kept:
    """Return some vectors as they are kept, without those that are spoiled."""
    ids, vectors = sound(ids, vectors)
    rows: Rows = vectors
    if dtype == np.int8:  # each by its own largest number: cosines do not care for lengths
        rows = np.rint(vectors * (_LARGEST_BYTE / np.abs(vectors).max(axis=1, keepdims=True))).astype(np.int8)
    return Kept(ids, rows, None if centre is None else Codes.of(centre, vectors), 0, 0)


def _joined(parts: list[Kept], last: int, read: int) -> Kept:
    ids, rows = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    codes = [part.codes for part in parts if part.codes]
    return Kept(ids, rows, Codes.joined(codes) if codes else None, last, read)
