"""One store of every backend that keeps the storage protocols; a further backend is a further row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from concord import plugins
from concord.protocols import Store
from postgres_server import fresh_org, server_url

RAM = Path("/dev/shm")
URLS: dict[str, Callable[[Path], str]] = {
    "memory": lambda folder: "memory://",
    "sqlite": lambda folder: f"sqlite://{folder}",
    "postgresql": lambda folder: server_url(),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: waiting for a disk to write is no part of these promises."""
    with TemporaryDirectory(dir=RAM if RAM.is_dir() else None) as made:
        yield Path(made)


def opened(backend: str, folder: Path) -> Store:
    store: Store = plugins.load("backends", backend).open(URLS[backend](folder), fresh_org())
    return store


@pytest.fixture(params=URLS)
def store(request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    made = opened(request.param, folder)
    yield made
    made.close()


@pytest.fixture(params=[backend for backend in URLS if backend != "memory"])
def rivals(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[Store, Store]]:
    """The reference implementation, and another one to compare with it."""
    pair = opened("memory", folder), opened(request.param, folder)
    yield pair
    for made in pair:
        made.close()
