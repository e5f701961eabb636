"""What benchmarks on Qdrant share: a server, a real one or the tests' own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server() -> Iterator[str]:
    """Lend a server: that of KB_TEST_QDRANT_URL, or Qdrant's engine in this process behind HTTP."""
    if given := os.environ.get("KB_TEST_QDRANT_URL"):
        yield given
        return
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from support.qdrant_shim import QdrantShim

    shim = QdrantShim()
    yield shim.url
    shim.close()
