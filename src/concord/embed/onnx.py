"""A model of the user's own: any directory with `model.onnx` and `tokenizer.json`, or its name.

What the directory says about itself is believed: pooling (`1_Pooling/config.json`), the window
(`sentence_bert_config.json`, `tokenizer_config.json`, `config.json`) and the text put before queries and
documents (`config_sentence_transformers.json`). A `concord.json` beside them overrides any of it:

    {"pooling": "cls", "window": 512, "dimension": 384, "query_prefix": "query: ", "document_prefix": ""}
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from concord.config import Paths
from concord.embed.prefixes import prefix_version
from concord.embed.runtime import Blueprint, Pooling, TextEncoder
from concord.embed.tokenizer import ModelTokenizer
from concord.errors import BadValue, EmbedderDown
from concord.onnx_models import find_model, model_file, read_json, read_window
from concord.types import Identity, Vector

_POOLINGS: tuple[Pooling, ...] = ("cls", "mean")
_FINGERPRINT_BYTES = 1 << 16  # of each end of a file: enough to tell models apart without reading all of them
_FLOAT_BYTES = 4


class Card(Struct, frozen=True):
    """What a model directory says about itself."""

    pooling: Pooling
    window: int
    dimension: int | None
    query_prefix: str
    document_prefix: str


class OnnxEmbedder:
    """Reads `embed.model` (directory or name) and `embed.threads` (0: one for each core)."""

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        given = str(options.get("embed.model") or "")
        self._home = _directory(given, paths)
        self._name = Path(
            os.path.expanduser(given)
        ).name  # not that of the directory, which may be a version's
        self._file = _model_file(self._home)
        self._card = read_card(self._home)
        self._tokenizer = ModelTokenizer((self._home / "tokenizer.json").read_bytes)
        blueprint = Blueprint(self._name, lambda: self._file, self._card.window, self._card.pooling)
        self._encoder = TextEncoder(blueprint, self._tokenizer, int(options.get("embed.threads") or 0))

    @cached_property
    def identity(self) -> Identity:
        """Who made the vectors; a model whose directory does not say its dimension is asked for a vector."""
        dimension = self._card.dimension or len(self._encoder.embed([""])[0]) // _FLOAT_BYTES
        version = prefix_version(self._card.query_prefix, self._card.document_prefix)
        return Identity("onnx", f"{self._name}-{self._fingerprint()}", dimension, version)

    @property
    def max_tokens(self) -> int:
        """How many tokens of text fit beside the special ones."""
        return self._card.window - self._tokenizer.special()

    @property
    def overflowed(self) -> int:
        """How many texts were longer than the window, and were embedded in parts."""
        return self._encoder.overflowed

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the offset at which each of the model's tokens begins."""
        return self._tokenizer.starts(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order."""
        return self._embed([self._card.document_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        return self._embed([self._card.query_prefix + text])[0]

    def warm(self) -> None:
        """Load the model now."""
        self._encoder.embed([""])

    @property
    def is_warm(self) -> bool:
        """Whether the model is loaded."""
        return self._encoder.is_warm

    def close(self) -> None:
        """Free the model."""
        self._encoder.close()
        self._tokenizer.close()

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = self._encoder.embed(texts)
        for found in {len(vector) // _FLOAT_BYTES for vector in vectors} - {self.identity.dimension}:
            raise EmbedderDown(
                f"the model {self._name} returns {found} dimensions, not {self.identity.dimension}",
                hint=f'say so in {self._home / "concord.json"}: {{"dimension": {found}}}',
            )
        return vectors

    def _fingerprint(self) -> str:
        """Tell apart two models in directories of the same name."""
        digest = hashlib.sha256()
        for path in (self._file, self._home / "tokenizer.json"):
            with path.open("rb") as file:
                digest.update(file.read(_FINGERPRINT_BYTES))
                size = path.stat().st_size
                file.seek(max(0, size - _FINGERPRINT_BYTES))
                digest.update(file.read() + size.to_bytes(8, "little"))
        return digest.hexdigest()[:8]


def read_card(home: Path) -> Card:
    """Gather what a model directory says about itself.

    Raises:
        BadValue: one of its files is not JSON, or asks for what is not supported.
    """
    ours = read_json(home / "concord.json")
    prompts = read_json(home / "config_sentence_transformers.json").get("prompts") or {}
    theirs = read_json(home / "1_Pooling/config.json")
    dimension = ours.get("dimension") or theirs.get("word_embedding_dimension")
    return Card(
        pooling=_pooling(home, ours, theirs),
        window=int(ours.get("window") or read_window(home)),
        dimension=dimension and int(dimension),
        query_prefix=ours.get("query_prefix", prompts.get("query", "")),
        document_prefix=ours.get("document_prefix", prompts.get("document", prompts.get("passage", ""))),
    )


def _directory(name: str, paths: Paths) -> Path:
    sought = find_model(name, paths)
    if sought.directory is None:
        looked = f": looked in {sought.told}" if sought.places else ""
        raise BadValue(
            f"embed.model names no model on this machine, {name!r}{looked}",
            hint="set embed.model to a directory with model.onnx and tokenizer.json; none is downloaded",
        )
    return sought.directory


def _model_file(home: Path) -> Path:
    found, missing = model_file(home)
    if missing:
        raise BadValue(
            f"the model directory {home} has no {missing}",
            hint="export the model to ONNX (for example with optimum-cli) together with its fast tokenizer",
        )
    return found


def _pooling(home: Path, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Pooling:
    modes = [
        key.removeprefix("pooling_mode_")
        for key, on in theirs.items()
        if key.startswith("pooling_mode_") and on
    ]
    names = {"cls_token": "cls", "mean_tokens": "mean"}
    wanted = ours.get("pooling") or "+".join(names.get(mode, mode) for mode in modes) or "mean"
    for known in _POOLINGS:
        if wanted == known:
            return known
    raise BadValue(
        f"the model {home.name} wants the pooling {wanted}", hint=f"supported: {', '.join(_POOLINGS)}"
    )
