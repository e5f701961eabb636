"""Codes of one bit a number propose the nearest vectors, whatever their dimension, order and neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from concord.store.sqlite.compare import Codes, Floats, Trial


def unit(rows: NDArray[np.float64]) -> Floats:
    made: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


def clustered(number: int, dimension: int, seed: int = 0) -> Floats:
    """Some forty vectors a subject, as chunks of texts have."""
    chance = np.random.default_rng([seed, dimension])
    subjects = np.random.default_rng(dimension).standard_normal((max(1, number // 40), dimension))
    around = chance.standard_normal((number, dimension))
    return unit(subjects[chance.integers(len(subjects), size=number)] + 0.8 * around)


def scattered(number: int, dimension: int) -> Floats:
    return unit(np.random.default_rng(7).standard_normal((number, dimension)))


def encoded(vectors: Floats) -> Codes:
    return Codes.of(vectors[:200].mean(axis=0), vectors)


def recall(codes: Codes, vectors: Floats, queries: Floats, count: int) -> float:
    best = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]
    parts = (
        np.isin(nearest, codes.propose(query, count)) for nearest, query in zip(best, queries, strict=True)
    )
    return float(np.mean([part.mean() for part in parts]))


@pytest.mark.parametrize("dimension", [8, 100, 384, 768])
def test_a_tenth_of_all_holds_nearly_all_of_the_nearest(dimension: int):
    vectors, queries = clustered(4000, dimension), clustered(4000, dimension, seed=1)[:50]
    assert recall(encoded(vectors), vectors, queries, 400) >= 0.99


def test_codes_of_parts_propose_as_those_made_at_once():
    vectors = clustered(2000, 96)
    centre = vectors.mean(axis=0)
    at_once = Codes.of(centre, vectors)
    joined = Codes.joined(
        [Codes.of(centre, part) for part in (vectors[:500], vectors[500:900], vectors[900:])]
    )
    for query in vectors[::100]:
        assert joined.propose(query, 50).tolist() == at_once.propose(query, 50).tolist()


def test_what_a_mask_leaves_out_is_not_proposed_and_all_else_can_be():
    vectors = clustered(1000, 64)
    codes, mask = encoded(vectors), np.arange(1000) % 3 == 0
    few = codes.propose(vectors[0], 100, mask)
    assert len(few) == 100
    assert mask[few].all()
    everything = codes.propose(vectors[0], 5000, mask)
    assert everything.tolist() == np.flatnonzero(mask).tolist()
    assert codes.propose(vectors[0], 10, np.zeros(1000, np.bool_)).tolist() == []


def test_of_equals_the_first_are_proposed():
    vectors = np.repeat(clustered(2, 64), [5, 995], axis=0)
    assert encoded(vectors).propose(vectors[-1], 20).tolist() == list(range(5, 25))


def test_codes_that_were_left_out_are_gone():
    vectors = clustered(500, 64)
    codes = encoded(vectors).at(np.arange(400, 500))
    assert codes.propose(vectors[450], 1).tolist() == [50]


def test_a_vector_in_the_centre_has_a_code():
    vectors = np.repeat(clustered(1, 64), 3, axis=0)
    assert Codes.of(vectors[0], vectors).propose(vectors[0], 3).tolist() == [0, 1, 2]


@pytest.mark.promise("scale.derived-vector-index")
@pytest.mark.parametrize(
    ("vectors", "is_passed"), [(clustered(4000, 384), True), (scattered(4000, 384), False)]
)
def test_a_trial_tells_vectors_in_clusters_from_vectors_without_structure(vectors: Floats, is_passed: bool):
    trial = Trial(vectors[::20])
    for start in range(0, len(vectors), 1000):
        trial.watch(vectors[start : start + 1000])
    assert trial.is_passed(Codes.of(vectors.mean(axis=0), vectors), 200) is is_passed
