"""The bundled model run by hand: `tokenizers` and `onnxruntime`, with the file and options that we use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.synthetic import cache_folder
from concord.config import load_settings
from concord.embed import pack_file
from concord.embed.bundled import MODEL, WINDOW, pack_path
from concord.embed.bundled_network import Network
from concord.embed.runtime import BATCH_TOKENS, Blueprint, batches, open_session
from concord.embed.tokenizer import ModelTokenizer
from concord.onnx_models import physical_cores

Ids = NDArray[np.int64]


class BareModel:
    """A session and a tokenizer, and nothing around them."""

    def __init__(self) -> None:
        path = _model_file()
        self._session: Any = open_session(
            Blueprint(MODEL, lambda: path, WINDOW, is_optimised=True), physical_cores()
        )
        self._tokenizer = Tokenizer.from_buffer(pack_file.read_tokenizer(pack_path()))
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


def _model_file() -> Path:
    """Return the model's file as the library keeps it, making it when there is none."""
    cache = Path(load_settings().paths.cache)
    tokenizer = ModelTokenizer(lambda: pack_file.read_tokenizer(pack_path()))
    chosen = Network({}, cache, tokenizer, pack_path).chosen_model()
    if isinstance(chosen, bytes):
        raise RuntimeError(f"{cache_folder()} cannot be written, so the model has no file to compare with")
    return chosen
