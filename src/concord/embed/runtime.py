"""Any ONNX sentence encoder: texts in, vectors of length 1 out. May be used by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from concord import onnx_models
from concord.embed.tokenizer import ModelTokenizer
from concord.errors import BadValue, EmbedderDown
from concord.native import native_code
from concord.onnx_models import INPUTS, faults_as, physical_cores, session_options, strange_inputs
from concord.types import Vector

Pooling = Literal["cls", "mean"]
Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

# Tokens in a batch, padding included. 2,048 is no faster (16.0 against 16.6 chunks per CPU second) and takes
# 26 MB more.
BATCH_TOKENS = 1024
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")  # in order of preference
# How long a thread of onnxruntime spins for more work, in microseconds. On a busy machine its own default
# cost a third of the throughput and made a query 1.5 times as slow; without any, an idle machine was a fifth
# slower.
_SPIN_US = "20"


class Blueprint(Struct, frozen=True):
    """What must be known of a model to run it. Nothing is read until it is needed."""

    name: str
    model: Callable[[], Path | bytes]  # the ONNX file, or its contents
    window: int  # tokens, special ones included
    pooling: Pooling = "mean"  # for a model that returns a vector for each token
    is_optimised: bool = False  # then onnxruntime need not look for operators that it could fuse


class TextEncoder:
    """A model that turns texts into vectors. Loads at first use; closed, it loads again."""

    def __init__(self, blueprint: Blueprint, tokenizer: ModelTokenizer, threads: int) -> None:
        self._blueprint = blueprint
        self._tokenizer = tokenizer
        self._threads = threads or physical_cores()
        self._loading = threading.Lock()
        self._session: Any = None
        self.overflowed = 0  # texts that were longer than the window

    @property
    def is_warm(self) -> bool:
        """Whether the next text will not have to wait for a load."""
        return self._tokenizer.is_loaded and self._session is not None

    def close(self) -> None:
        """Free the session; the tokenizer belongs to the caller."""
        with self._loading:
            self._session = None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text. A text longer than the window becomes the mean of its parts.

        Raises:
            EmbedderDown: the model cannot be loaded or run, or what it returns is no vector.
        """
        with native_code():
            windows = [self._tokenizer.windows(text, self._blueprint.window) for text in texts]
        self.overflowed += sum(len(rows) > 1 for rows in windows)
        vectors = iter(self._encode([row for rows in windows for row in rows]))
        return [self._to_vector([next(vectors) for _ in rows]) for rows in windows]

    def _encode(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        vectors: dict[int, Floats] = {}
        for batch in batches([len(row) for row in rows], BATCH_TOKENS):
            ids, mask = padded([rows[index] for index in batch], self._tokenizer.padding)
            with native_code():
                states = self._run(ids, mask)
            vectors.update(zip(batch, states, strict=True))
        return [vectors[index] for index in range(len(rows))]

    def _run(self, ids: Ids, mask: Ids) -> Floats:
        session = self._opened_session()
        feed = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        with faults_as(partial(_down, self._blueprint.name)):
            states: Floats = onnx_models.run_session(session, feed, _OUTPUTS)
        return states if states.ndim == 2 else pooled(states, mask, self._blueprint.pooling)

    def _opened_session(self) -> Any:
        with self._loading:
            if self._session is None:
                self._session = open_session(self._blueprint, self._threads)
            return self._session

    def _to_vector(self, parts: Sequence[Floats]) -> Vector:
        mean = np.sum([part / np.linalg.norm(part) for part in parts], axis=0) if len(parts) > 1 else parts[0]
        length = float(np.linalg.norm(mean))
        if not 0 < length < np.inf:  # also refuses a length that is not a number
            raise EmbedderDown(
                f"the model {self._blueprint.name} returned a vector without a direction",
                hint="the model file may be damaged: kb doctor checks it",
            )
        return (mean / length).astype("<f4").tobytes()


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group rows of like length, so that little is padding, into batches of at most `budget` tokens.

    The longest come first: a batch that needs too much memory fails at once, not after an hour.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Ids, Ids]:
    """Return the rows as one matrix, filled up on the right, and a mask of what is text."""
    width = max(map(len, rows))
    ids = np.full((len(rows), width), padding, np.int64)
    mask = np.zeros((len(rows), width), np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def pooled(states: Floats, mask: Ids, pooling: Pooling) -> Floats:
    """Make one vector of the vectors of a text's tokens."""
    if pooling == "cls":
        return states[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    means: Floats = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means


def open_session(blueprint: Blueprint, threads: int) -> Any:
    """Load a model.

    Raises:
        EmbedderDown: onnxruntime cannot load it.
        BadValue: it wants an input that is not made from text alone.
    """
    model = blueprint.model()
    with faults_as(partial(_down, blueprint.name)):
        session = onnx_models.open_session(model, _session_options(blueprint, threads))
    if strange := strange_inputs(session):
        raise BadValue(
            f"the model {blueprint.name} wants the input {', '.join(strange)}",
            hint=f"use a sentence encoder whose inputs are among {', '.join(INPUTS)}",
        )
    return session


def _session_options(blueprint: Blueprint, threads: int) -> Any:
    options = session_options(threads)
    options.add_session_config_entry("session.intra_op.spin_duration_us", _SPIN_US)
    if blueprint.is_optimised:
        options.graph_optimization_level = onnx_models.runtime().GraphOptimizationLevel.ORT_ENABLE_BASIC
    return options


def _down(name: str, reason: str) -> EmbedderDown:
    return EmbedderDown(f"the model {name} does not run: {reason}", hint="kb doctor checks the model")
