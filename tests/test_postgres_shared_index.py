"""One graph of vectors for all topics of an organisation: what else is in it takes nothing from an answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from concord.store.contract import Store
from concord.types import ChunkId, Filter, silent
from contract.stored import IDENTITY, keyed, put, vectors_of
from support.postgres_server import walks

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import words  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

Points = NDArray[np.float32]
EACH = 1200  # enough that they are indexed, and that neither topic is compared one by one
DIMENSION = 384  # a model's, or the server would rather read all of an organisation
LATENT = 24  # in which they differ
QUERIES, CANDIDATES = 30, 40
OWN, OTHER = np.eye(LATENT)[:2]  # where two topics lie, far apart


def unit_rows(rows: NDArray[np.float64]) -> Points:
    made = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.pad(made, ((0, 0), (0, DIMENSION - rows.shape[1]))).astype("<f4")


def topic(centre: NDArray[np.float64], spread: float, size: int = EACH) -> Points:
    noise = np.random.default_rng(7).standard_normal((size, LATENT))
    return unit_rows(centre + spread * noise)


def asked_between(points: Points) -> Points:
    """Return queries about some of these, which lie half way to the other topic, as few words do."""
    chance = np.random.default_rng(8)
    meant = points[chance.choice(len(points), QUERIES), :LATENT]
    return unit_rows(meant + 0.5 * OTHER + 0.1 * chance.standard_normal((QUERIES, LATENT)))


def fill(store: Store, path: str, points: Points) -> list[ChunkId]:
    ids = put(store, path, *(f"text {n}" for n in range(len(points))))
    store.models.add(replace(IDENTITY, dimension=DIMENSION), {})
    vectors_of(store).put(keyed(zip(ids, (point.tobytes() for point in points), strict=True)))
    return ids


def recall(
    store: Store, ids: Sequence[ChunkId], points: Points, filter: Filter, queries: Points | None = None
) -> float:
    """Return which share of the ten that are nearest is among the candidates of a search."""
    hits = 0
    for query in asked_between(points) if queries is None else queries:
        nearest = {ids[place] for place in np.argsort(-(points @ query))[:10]}
        found = vectors_of(store).search(query.tobytes(), filter, CANDIDATES)
        hits += len(nearest & {one.chunk_id for one in found})
    return hits / (10 * QUERIES)


def cloud(axis: int, size: int, seed: int) -> Points:
    """Return points of a topic that are about as far from each other as from another topic's."""
    return unit_rows(np.eye(64)[axis] + 0.12 * np.random.default_rng(seed).standard_normal((size, 64)))


SOME, OTHERS, ELSEWHERE = cloud(0, 1800, 1), cloud(1, 3000, 2), cloud(1, QUERIES, 3)


def test_who_asks_about_what_a_filter_leaves_out_is_shown_the_nearest_of_the_rest(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    docs = Filter(source_id="docs")
    with closing(PostgresStore.open(database, "default")) as store:
        ids = fill(store, "docs/a.md", SOME)
        fill(store, "code/a.py", OTHERS)
        store.maintain(silent)
        assert recall(store, ids, SOME, docs, ELSEWHERE) == 1
        assert walks(store) == 0  # as few are compared
        monkeypatch.setattr(words, "MOST_LISTED", 0)
        with closing(PostgresStore.open(database, "default")) as other:
            assert recall(other, ids, SOME, docs, ELSEWHERE) >= 0.95
            assert walks(other) > 0


@pytest.mark.promise("design.filters-inside-engines")
def test_what_a_filter_leaves_out_on_the_way_takes_nothing_from_the_nearest(database: str):
    with closing(PostgresStore.open(database, "default")) as store:
        points = topic(OWN, 0.4)
        ids = fill(store, "docs/a.md", points)
        fill(store, "code/a.py", topic(OTHER, 0.1))
        store.maintain(silent)
        assert recall(store, ids, points, Filter(source_id="docs")) >= 0.95
