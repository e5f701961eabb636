"""What benchmarks on Qdrant share: a server, a real one or the tests' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def server() -> Iterator[str]:
    """Lend a server: that of KB_TEST_QDRANT_URL, or Qdrant's engine in this process behind HTTP."""
    if given := os.environ.get("KB_TEST_QDRANT_URL"):
        yield given
        return
    from support.qdrant_shim import QdrantShim

    shim = QdrantShim()
    yield shim.url
    shim.close()
