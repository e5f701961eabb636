"""The bundled model run by hand: `tokenizers` and `onnxruntime`, with the file and options that we use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from concord.core.config import load_settings
from concord.embed import pack
from concord.embed.bundled import WINDOW, BundledEmbedder
from concord.embed.onnx import BATCH_TOKENS, batches

Ids = NDArray[np.int64]


class BareModel:
    """A session and a tokenizer, and nothing around them."""

    def __init__(self) -> None:
        embedder = BundledEmbedder({}, load_settings().paths)
        embedder.warm()
        session: Any = embedder._session
        self._session: Any = session._session  # onnxruntime's own
        self._tokenizer = Tokenizer.from_buffer(pack.read_tokenizer(pack.pack_path()))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(WINDOW)

    def embed(self, text: str) -> bytes:
        """Return the vector of one text."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        return bytes(self.run(ids, np.ones_like(ids))[0].tobytes())

    def tokenised(self, texts: Sequence[str]) -> list[tuple[Ids, Ids]]:
        """Return the model's inputs for texts: of like length together, padded, ready to be run."""
        rows = [self._tokenizer.encode(text).ids for text in texts]
        return [_padded([rows[at] for at in batch]) for batch in batches(list(map(len, rows)), BATCH_TOKENS)]

    def run(self, ids: Ids, mask: Ids) -> NDArray[np.float32]:
        """Run the model."""
        (vectors,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        found: NDArray[np.float32] = vectors
        return found


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    ids = np.ones((len(rows), max(map(len, rows))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
        mask[at, : len(row)] = 1
    return ids, mask
