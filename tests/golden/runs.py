"""Ask a store of each kind the queries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from concord import KnowledgeBase
from golden import corpora
from golden.answers import Record, ask
from golden.queries import GoldenQuery
from support.postgres_server import fresh_org, server_url

STORES = ("sqlite", "json", "postgresql", "qdrant")


@contextmanager
def filled(store: str) -> Iterator[KnowledgeBase]:
    """Lend a knowledge base that holds the corpora, in a store of a kind."""
    with tempfile.TemporaryDirectory(prefix="golden-") as name, _settings(store, Path(name)) as settings:
        url = settings.pop("store__url")
        with corpora.filled(Path(name), url, reader__enabled="false", **settings) as knowledge:
            yield knowledge


@contextmanager
def _settings(store: str, home: Path) -> Iterator[dict[str, str]]:
    if store == "postgresql":
        yield {"store__url": server_url(), "org": fresh_org()}
    elif store == "qdrant":
        from support.qdrant_shim import QdrantShim  # its engine comes with the dev extra

        server = QdrantShim()
        yield {"store__url": f"sqlite://{home}/store", "vectors__url": server.url}
        server.close()
    else:
        yield {"store__url": f"{store}://{home}/store"}


def answers(knowledge: KnowledgeBase, queries: Sequence[GoldenQuery]) -> Mapping[str, Record]:
    """Return what the queries are answered, by their id."""
    return {query.id: ask(knowledge, query) for query in queries}
