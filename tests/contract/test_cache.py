"""What every embedding cache does."""

from __future__ import annotations

import hashlib

import pytest
from msgspec.structs import replace

from concord.core.reports import CacheUsage
from concord.store.contract import Store
from contract.stored import IDENTITY, unit


def key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@pytest.mark.promise("004.cache")
def test_a_vector_is_known_by_its_text_and_by_who_made_it(store: Store):
    store.models.index(IDENTITY).remember({key("a"): unit(1, 0, 0, 0), key("b"): unit(0, 1, 0, 0)})
    asked = [key("a"), key("b"), key("c"), key("a")]
    assert store.models.index(IDENTITY).cached(asked) == {
        key("a"): unit(1, 0, 0, 0),
        key("b"): unit(0, 1, 0, 0),
    }
    for field in ("provider", "model", "prefix_version", "metric"):
        assert store.models.index(replace(IDENTITY, **{field: "other"})).cached(asked) == {}
    assert store.models.index(replace(IDENTITY, dimension=8)).cached(asked) == {}


@pytest.mark.promise("E.cache.hit-rate")
def test_what_was_known_and_what_had_to_be_made_is_counted(store: Store):
    assert store.cache.usage() == CacheUsage(0, 0, 0, 0)
    assert store.cache.usage().hit_rate is None
    assert store.models.index(IDENTITY).cached([key("a")]) == {}
    store.models.index(IDENTITY).remember({key("a"): unit(1, 0, 0, 0), key("b"): unit(0, 1, 0, 0)})
    store.models.index(IDENTITY).cached([key("a"), key("c")])
    assert store.cache.usage() == CacheUsage(entries=2, size_bytes=32, hits=1, misses=2)
    assert store.cache.usage().hit_rate == pytest.approx(1 / 3)
    store.models.index(IDENTITY).remember({key("a"): unit(0, 1, 0, 0)})
    assert store.cache.usage().entries == 2


@pytest.mark.promise("E.cache.eviction")
def test_the_least_recently_used_are_forgotten_first(store: Store):
    for name in "abcd":
        store.models.index(IDENTITY).remember({key(name): unit(1, 0, 0, 0)})
    store.models.index(IDENTITY).cached([key("a")])
    assert store.cache.trim(4 * 16) == 0
    assert store.cache.trim(2 * 16 + 15) == 2
    assert set(store.models.index(IDENTITY).cached(list(map(key, "abcd")))) == {key("a"), key("d")}
    assert store.cache.usage().size_bytes == 32
    assert store.cache.trim(0) == 2
    assert store.cache.usage().entries == 0


def test_all_that_is_remembered_can_be_listed_the_least_recently_used_first(store: Store):
    other = replace(IDENTITY, model="other")
    assert list(store.cache.entries()) == []
    store.models.index(IDENTITY).remember({key("a"): unit(1, 0, 0, 0)})
    store.models.index(other).remember({key("a"): unit(0, 0, 1, 0)})
    store.models.index(IDENTITY).remember({key("b"): unit(0, 1, 0, 0)})
    store.models.index(IDENTITY).cached([key("a")])
    assert list(store.cache.entries()) == [
        (other, key("a"), unit(0, 0, 1, 0)),
        (IDENTITY, key("b"), unit(0, 1, 0, 0)),
        (IDENTITY, key("a"), unit(1, 0, 0, 0)),
    ]
