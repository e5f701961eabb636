"""One store of every backend that keeps the storage protocols; a further backend is a further row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from concord.core import plugins
from concord.core.config import load_settings
from concord.parts import Parts
from concord.store.contract import Models, Store, VectorIndex
from concord.store.sqlite.in_memory import WORTH_KEEPING
from concord.store.sqlite.store import SQLiteStore
from concord.types import Identity, Scored
from support.postgres_server import fresh_org, server_url

URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory://",
    "sqlite": lambda folder: f"sqlite://{folder}",
    "postgresql": lambda folder: server_url(),
    "json": lambda folder: f"json://{folder}",
}
# Those that are tested for themselves: the one in memory is the one of a JSON file without its file.
STORES = [name for name in URLS if name != "memory"]

# The same suites with vectors kept outside: store, and where its vectors are.
OUTSIDE = {
    "sqlite+qdrant-local": "qdrant-local::memory:",
    "sqlite+qdrant-shim": "shim",
    "sqlite+qdrant-server": os.environ.get("KB_TEST_QDRANT_URL", ""),
}


# And with codes of the vectors in memory, from the first vector on.
INDEXED = "sqlite+codes"


class SearchedVectors:
    """Vectors that are searched so often that they are kept in memory."""

    def __init__(self, inner: VectorIndex) -> None:
        self._inner = inner

    def search(self, *question: Any, **options: Any) -> list[Scored]:
        for _ in range(WORTH_KEEPING):
            self._inner.search(*question, **options)
        return self._inner.search(*question, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class SearchedModels:
    """Models with such vectors."""

    def __init__(self, inner: Models) -> None:
        self._inner = inner

    def index(self, identity: Identity) -> VectorIndex:
        return SearchedVectors(self._inner.index(identity))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture(scope="session")
def shim() -> Iterator[str]:
    """A server on Qdrant's own engine, shared by all tests: each has a collection of its own."""
    from support.qdrant_shim import QdrantShim

    server = QdrantShim()
    yield server.url
    server.close()


def opened(backend: str, folder: Path) -> Store:
    store: Store = plugins.load("backends", backend).open(URLS[backend](folder), fresh_org())
    return store


def opened_outside(name: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    """Open a store with its vectors outside, as `vectors.url` does."""
    outside = OUTSIDE[name]
    if not outside:
        pytest.skip("KB_TEST_QDRANT_URL names no server")
    pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
    settings = {
        "store.url": URLS[name.partition("+")[0]](folder),
        "vectors.url": request.getfixturevalue("shim") if outside == "shim" else outside,
        "vectors.collection": f"test_{token_hex(8)}",
    }
    return Parts(load_settings(settings, {"KB_HOME": str(folder)}), fresh_org()).store


def opened_with_codes(folder: Path) -> Store:
    settings = {"vectors.index_from": 1}
    store = SQLiteStore.open(URLS["sqlite"](folder), fresh_org(), settings)
    store.models = SearchedModels(store.models)
    return store


def opened_as(name: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    if name == INDEXED:
        return opened_with_codes(folder)
    return opened_outside(name, folder, request) if name in OUTSIDE else opened(name, folder)


def opened_for_a_test(request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    made = opened_as(request.param, folder, request)
    yield made
    made.close()


def opened_with_the_reference(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Store, Store]]:
    """The reference implementation, and another one to compare with it."""
    reference = "sqlite" if request.param == "postgresql" else "memory"
    pair = opened(reference, folder), opened_as(request.param, folder, request)
    yield pair
    for made in pair:
        made.close()


store = pytest.fixture(params=STORES, name="store")(opened_for_a_test)
rivals = pytest.fixture(params=STORES, name="rivals")(opened_with_the_reference)
