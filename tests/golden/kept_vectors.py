"""The bundled model as a table: the vector of each text is looked up, so no processor matters.

A text that is not in the table is embedded by the bundled model itself, and counted.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concord.core.config import Paths
from concord.embed.bundled import BundledEmbedder
from concord.types import Vector

FILE = Path(__file__).parent / "vectors.xz"
DIGEST_BYTES = 12
ROW_BYTES = DIGEST_BYTES + 2 * BundledEmbedder.identity.dimension  # a number is kept as float16

ASKED: dict[bytes, bytes] = {}  # text's digest → row of what was embedded since this process began
EMBEDDED: set[bytes] = set()  # those of them that the table lacked


class KeptEmbedder:
    """An embedder that presents itself as the bundled model, so that the shipped calibration applies."""

    identity = BundledEmbedder.identity
    max_tokens = BundledEmbedder.max_tokens
    overflowed = 0
    is_warm = True

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        self._model = BundledEmbedder({**options, "embed.precision": "exact"}, paths)

    def token_starts(self, text: str) -> Sequence[int]:
        return self._model.token_starts(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        digests = {text: _digest(text) for text in texts}
        for digest in digests.values():
            if digest in table():
                ASKED[digest] = table()[digest]
        unknown = [text for text, digest in digests.items() if digest not in ASKED]
        made = self._model.embed_documents(unknown) if unknown else []
        for text, vector in zip(unknown, made, strict=True):
            EMBEDDED.add(digests[text])
            ASKED[digests[text]] = np.frombuffer(vector, "<f4").astype("<f2").tobytes()
        return [_of_length_one(ASKED[digests[text]]) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self.embed_documents([text])[0]

    def warm(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._model.close()


@cache
def table() -> Mapping[bytes, bytes]:
    """Return the kept numbers by digest of their text; none before they have been made."""
    data = lzma.decompress(FILE.read_bytes()) if FILE.exists() else b""
    rows = (data[start : start + ROW_BYTES] for start in range(0, len(data), ROW_BYTES))
    return {row[:DIGEST_BYTES]: row[DIGEST_BYTES:] for row in rows}


def keep(*, only_add: bool) -> int:
    """Write the numbers of what was embedded in this process, or add them; return how many are kept."""
    rows = {**(table() if only_add else {}), **ASKED}
    FILE.write_bytes(lzma.compress(b"".join(digest + rows[digest] for digest in sorted(rows))))
    return len(rows)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:DIGEST_BYTES]


def _of_length_one(kept: bytes) -> Vector:
    numbers = np.frombuffer(kept, "<f2").astype(np.float64)
    unit: NDArray[np.float32] = (numbers / np.sqrt((numbers * numbers).sum())).astype("<f4")
    return unit.tobytes()
