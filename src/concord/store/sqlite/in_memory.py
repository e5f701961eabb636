"""The vectors that a process keeps in memory, once it has searched them a few times.

Few vectors are kept whole, so that they need no reading; more are kept rounded to a byte a number, and of
very many there are only codes. Codes propose whom to compare: see `codes`.
What is kept is never stale: it grows, or is read anew, when its model has another version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from concord.core.errors import KBError
from concord.store.models import Model, find_model
from concord.store.sql import Session
from concord.store.sqlite.compare import (
    Codes,
    Floats,
    Ids,
    Mask,
    Places,
    ScoredIds,
    Trial,
    arrays,
    blocks,
    cosines,
    largest,
    sound,
)
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.vectors import read_vectors, table_of
from concord.types import Vector

# Reading all vectors takes as long as this many searches: so many have to come before it pays.
WORTH_KEEPING = 6
MOST_WHOLE = 50_000  # vectors: 77 MB of 384 dimensions. A server with its model loaded stays under 300 MB.
MOST_ROUNDED = 250_000  # 96 MB; beyond, reading 800 from the file takes less time than asking the codes
_PROPOSED = 800  # hold .995 of the nearest 40 (35,083 vectors of texts, questions that people asked)
_PROPOSED_A_HIT = 20
_USUAL_EFFORT = 64
_COMPARED_A_HIT = 2  # of those that are nearest as rounded to bytes
_SAMPLE = 200  # vectors, whose mean is the centre of all codes; on them codes are tried
_SEED = 1
_MOST_MASKS = 8
THREAD = "making codes"
_GROWN = 1.5  # times as many vectors as were read: their centre may have moved, so all is read anew

_VALUES_KEPT = 64
_LARGEST_BYTE = 127
_CRC_BITS = 32
_CRC_MASK = (1 << _CRC_BITS) - 1

_COUNT = "SELECT count(*) FROM kb_embeddings WHERE model = :model"
_STAMPS = f"SELECT (id << {_CRC_BITS}) | crc FROM kb_embeddings WHERE model = :model ORDER BY id"

Open = Callable[[], AbstractContextManager[Session]]
State = tuple[object, int, int]  # file, model and its version: what changes when vectors do


class _Stopped(Exception):
    """The store is being closed."""


class Memory:
    """What is kept of the model that was searched last.

    From `codes_from` vectors on there are codes of them; with None there never are. To make codes of many
    takes seconds: they are made in a thread with a session of its own, and searches do without meanwhile.
    """

    def __init__(self, codes_from: int | None, open: Open | None) -> None:
        self._codes_from = codes_from
        self._open = open  # None: a search that makes them has to wait
        self._reading = threading.Lock()
        self._searched: State | None = None  # what was searched last
        self._searches = 0  # of that
        self._kept: tuple[State, Kept] | None = None
        self._masks: dict[tuple[object, ...], Mask] = {}
        self._making: threading.Thread | None = None
        self._is_closed = threading.Event()

    def at(self, session: Session, model: Model) -> Kept | None:
        """Return what is kept of a model, if that is as the session sees it."""
        kept = self._kept
        return kept[1] if kept and kept[0] == state_of(session, model) else None

    def searched(self, session: Session, model: Model) -> Kept | None:
        """Return what is kept of a model as it is now, one search more; None while it is not worth it."""
        if (kept := self.at(session, model)) or not self._reading.acquire(blocking=False):
            return kept
        is_made_elsewhere = False
        try:
            state = state_of(session, model)
            kept = self._grown(session, model, state)
            if kept is None and self._is_worth_it(state):
                is_made_elsewhere = self._open is not None and self._is_coded(session, model)
                kept = None if is_made_elsewhere else read_kept(session, model, self._codes_from)
            self._kept = (state, kept) if kept else None
        finally:
            if not is_made_elsewhere:
                self._reading.release()
        if is_made_elsewhere:
            self._making = threading.Thread(target=self._make, args=(model,), name=THREAD, daemon=True)
            self._making.start()
        return kept

    def mask(self, kept: Kept, key: tuple[object, ...], allowed: Callable[[], Iterable[int]]) -> Mask:
        """Return which vectors are allowed; the same is asked for often, and the key tells what is."""
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
        assert self._open is not None
        try:
            with suppress(_Stopped, KBError), self._open() as session:
                if now := find_model(session, model.identity):
                    kept = read_kept(session, now, self._codes_from, self._is_closed.is_set)
                    self._kept = state_of(session, now), kept
        finally:
            self._reading.release()

    def _is_coded(self, session: Session, model: Model) -> bool:
        return Form.of(session.value(_COUNT, {"model": model.key}), self._codes_from).has_codes

    def _grown(self, session: Session, model: Model, state: State) -> Kept | None:
        if self._kept is None or self._kept[0][:2] != state[:2]:
            return None
        return self._kept[1].grown(session, model, self._codes_from)

    def _is_worth_it(self, state: State) -> bool:
        """Whether it pays to read all vectors now: once at most for as long as they stay as they are."""
        if state != self._searched:
            self._searched, self._searches = state, 0
        self._searches += 1
        return self._searches == WORTH_KEEPING + 1


def state_of(session: Session, model: Model) -> State:
    """Return what changes when the vectors of a model do."""
    assert isinstance(session, Connection)
    return session.file, model.key, model.version


class Form(NamedTuple):
    """In which form vectors are kept."""

    rows: type[np.float32] | type[np.int8] | None
    has_codes: bool

    @classmethod
    def of(cls, size: int, codes_from: int | None) -> Form:
        """Return the form for so many vectors; with None there are no codes."""
        has_codes = codes_from is not None and size >= codes_from
        if size <= MOST_WHOLE:
            return cls(np.float32, has_codes)
        return cls(np.int8 if has_codes and size <= MOST_ROUNDED else None, has_codes)


class Kept(NamedTuple):
    """The vectors of a model at one moment, as far as they are kept; by id, ascending."""

    form: Form  # that they were to have: codes may have failed their trial
    stamps: Ids  # the id and the checksum of each vector in one number
    lengths: Floats
    rows: NDArray[Any] | None  # of numbers, or of bytes
    codes: Codes | None
    read: int  # vectors, when all were read

    @property
    def is_whole(self) -> bool:
        """Whether the vectors themselves are kept."""
        return self.rows is not None and self.rows.dtype == np.float32

    @property
    def ids(self) -> Ids:
        """The ids of the vectors."""
        return self.stamps >> _CRC_BITS

    def scores(self, query: Floats, places: Places | None = None) -> ScoredIds:
        """Return the cosine of each vector, or of some, with another of length 1."""
        assert self.rows is not None
        if places is None:
            return self.ids, cosines(self.rows, self.lengths, query)
        ids = self.stamps[places] >> _CRC_BITS
        return ids, cosines(self.rows[places], self.lengths[places], query)

    def places(
        self, query: Floats, mask: Mask, limit: int, effort: int | None, codes_from: int | None
    ) -> Places | None:
        """Return the places of vectors to compare, among which the nearest are that a mask lets through.

        None where they are so few that codes are not asked, and not kept whole.
        """
        if self.codes is None or np.count_nonzero(mask) < (codes_from or 0):
            return np.flatnonzero(mask) if self.is_whole else None
        share = max(1.0, (effort or 0) / _USUAL_EFFORT)
        places = self.codes.propose(query, max(_PROPOSED_A_HIT * limit, int(_PROPOSED * share)), mask)
        return places if self.rows is None or self.is_whole else self._nearest_rounded(query, places, limit)

    def _nearest_rounded(self, query: Floats, places: Places, limit: int) -> Places:
        """Return fewer places, because they have to be read from the file: those nearest as rounded."""
        assert self.rows is not None
        rows = self.rows[places].astype(np.float32)
        cosines = np.einsum("ij,j->i", rows, query) / np.linalg.norm(rows, axis=1)
        return places[largest(cosines, _COMPARED_A_HIT * limit)]

    def fetch(self, ids: Sequence[int]) -> dict[int, Vector]:
        """Return those of the vectors that are here."""
        assert self.rows is not None
        wanted = np.unique(np.fromiter(ids, dtype=np.int64))
        _, places, there = np.intersect1d(self.ids, wanted, assume_unique=True, return_indices=True)
        return dict(zip(wanted[there].tolist(), map(np.ndarray.tobytes, self.rows[places]), strict=True))

    def grown(self, session: Session, model: Model, codes_from: int | None) -> Kept | None:
        """Return the vectors of the same model as they are now; None if they are to be read anew."""
        if self.rows is None and self.codes is None:
            return self
        stamps = _stamps(session, model)
        if Form.of(len(stamps), codes_from) != self.form or len(stamps) > _GROWN * self.read:
            return None
        fresh = np.setdiff1d(stamps, self.stamps, assume_unique=True)
        centre = self.codes.centre if self.codes else None
        more = _part(self.form, fresh, *_read(session, model, fresh), centre)
        kept = _joined([self, more], self.read)
        return kept.at(np.flatnonzero(np.isin(kept.stamps, stamps)))

    def at(self, places: Places) -> Kept:
        """Return the vectors at some places, by id."""
        places = places[np.argsort(self.stamps[places])]
        rows = None if self.rows is None else self.rows[places]
        codes = self.codes.at(places) if self.codes else None
        return Kept(self.form, self.stamps[places], self.lengths[places], rows, codes, self.read)


def read_kept(
    session: Session, model: Model, codes_from: int | None, is_stopped: Callable[[], bool] = lambda: False
) -> Kept:
    """Read all vectors of a model; codes that find too few of the nearest are not kept.

    Raises:
        _Stopped: nobody needs them any more.
    """
    dimension, stamps = model.identity.dimension, _stamps(session, model)
    form = Form.of(len(stamps), codes_from)
    chosen = np.random.default_rng(_SEED).permutation(stamps)[: _SAMPLE * form.has_codes]
    _, sample, _ = sound(*_read(session, model, chosen))
    centre, trial = sample.mean(axis=0) if len(sample) else None, Trial(sample)
    parts = [_part(form, stamps, stamps[:0], np.empty((0, dimension), np.float32), centre)]
    if form != Form(None, has_codes=False):
        for ids, vectors in blocks(session, table_of(model.key), dimension, _VALUES_KEPT):
            if is_stopped():
                raise _Stopped
            parts.append(_part(form, stamps, ids, vectors, centre, trial))
    kept = _joined(parts, len(stamps))
    if kept.codes and not trial.is_passed(kept.codes, _PROPOSED):
        kept = kept._replace(rows=kept.rows if kept.is_whole else None, codes=None)
    return kept.at(np.arange(len(kept.stamps)))


def _part(
    form: Form, known: Ids, ids: Ids, vectors: Floats, centre: Floats | None, trial: Trial | None = None
) -> Kept:
    """Return some vectors in the form in which all are kept, without those that are spoiled or unknown."""
    ids, vectors, lengths = sound(ids, vectors)
    places = np.searchsorted(known, ids << _CRC_BITS)
    there = places < len(known)
    there[there] = known[places[there]] >> _CRC_BITS == ids[there]
    if form.rows is np.float32:  # what is kept whole is not read again: now is the time to look
        crcs = (known[places[there]] & _CRC_MASK).tolist()
        there[there] = [crc32(row) == crc for row, crc in zip(vectors[there], crcs, strict=True)]
    if not there.all():
        vectors, lengths = vectors[there], lengths[there]
    if trial is not None and centre is not None:
        trial.watch(vectors)
    rows = None if form.rows is None else vectors if form.rows is np.float32 else _rounded(vectors)
    codes = None if centre is None else Codes.of(centre, vectors)
    return Kept(form, known[places[there]], lengths, rows, codes, len(vectors))


def _joined(parts: Sequence[Kept], read: int) -> Kept:
    """Return vectors one after the other, in any order."""
    form, _, _, rows, codes, _ = parts[0]
    return Kept(
        form,
        np.concatenate([part.stamps for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        None if rows is None else np.concatenate([part.rows for part in parts if part.rows is not None]),
        Codes.joined([part.codes for part in parts if part.codes]) if codes else None,
        read,
    )


def _rounded(vectors: Floats) -> NDArray[np.int8]:
    """Return vectors rounded, each by its own largest number: cosines do not care for lengths."""
    scale = _LARGEST_BYTE / np.abs(vectors).max(axis=1, keepdims=True)
    rounded: NDArray[np.int8] = np.rint(vectors * scale).astype(np.int8)
    return rounded


def _read(session: Session, model: Model, stamps: Ids) -> tuple[Ids, Floats]:
    return arrays(read_vectors(session, model, (stamps >> _CRC_BITS).tolist()), model.identity.dimension)


def _stamps(session: Session, model: Model) -> Ids:
    rows = session.iterate(_STAMPS, {"model": model.key})
    return np.fromiter((stamp for (stamp,) in rows), dtype=np.int64)
