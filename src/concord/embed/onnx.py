"""Sentence encoders in ONNX form, among them any model of the user's own.

Such a model is a directory with `model.onnx` and `tokenizer.json`, given as such or by its name in our own
`models`; nothing is ever downloaded. What the directory says about itself is believed: pooling
(`1_Pooling/config.json`), the window (`sentence_bert_config.json`; else 512 tokens), and what is put before
texts (`config_sentence_transformers.json`). A `concord.json` beside them overrides any of it:

    {"pooling": "cls", "window": 512, "dimension": 384, "query_prefix": "query: ", "document_prefix": ""}
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from concord.core.config import Paths
from concord.core.errors import Action, BadValue, EmbedderDown, Hint
from concord.core.overriding import override
from concord.core.protocols import Embedder
from concord.embed.prefixes import Prefixes
from concord.embed.runtime import INPUTS, Session, native_code
from concord.embed.tokenizer import ModelTokenizer
from concord.types import FLOAT_BYTES, Identity, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int64]

Pooling = Literal["cls", "mean"]

# Tokens in a batch, padding included. 2,048 is no faster (16.0 against 16.6 chunks per CPU second) and takes
# 26 MB more.
BATCH_TOKENS = 1024
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")  # in order of preference
_POOLINGS: tuple[Pooling, ...] = ("cls", "mean")
_FINGERPRINT_BYTES = 1 << 16  # of each end of a file: enough to tell models apart without reading all of them
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_DEFAULT_WINDOW = 512  # of nearly every published encoder


class Card(NamedTuple):
    """What must be known of a model to run it."""

    name: str
    window: int  # tokens, special ones included
    pooling: Pooling = "mean"  # for a model that returns a vector for each token
    dimension: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""


class Encoder(Embedder):
    """Texts in, vectors of length 1 out. Loads at first use; closed, it loads again. Threads may share it."""

    def __init__(self, card: Card, tokenizer: ModelTokenizer, load: Callable[[], Session]) -> None:
        self._card = card
        self._tokenizer = tokenizer
        self._load = load
        self._loading = threading.Lock()
        self._session: Session | None = None
        self.overflowed = 0  # texts that were longer than the window, and were embedded in parts

    @override
    def token_starts(self, text: str) -> Sequence[int]:
        return self._tokenizer.starts(text)

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return self._embed([self._card.document_prefix + text for text in texts])

    @override
    def embed_query(self, text: str) -> Vector:
        return self._embed([self._card.query_prefix + text])[0]

    @override
    def warm(self) -> None:
        self._embed([""])

    @property
    @override
    def is_warm(self) -> bool:
        return self._tokenizer.is_loaded and self._session is not None

    @override
    def close(self) -> None:
        with self._loading:
            self._session = None
        self._tokenizer.close()

    def _embed(self, texts: Sequence[str], session: Session | None = None) -> list[Vector]:
        """Embed with the model's session, or with one that is being tried."""
        with native_code():
            windows = [self._tokenizer.windows(text, self._card.window) for text in texts]
        self.overflowed += sum(len(rows) > 1 for rows in windows)
        vectors = iter(self._run([row for rows in windows for row in rows], session))
        return [self._to_vector([next(vectors) for _ in rows]) for rows in windows]

    def _run(self, rows: Sequence[Sequence[int]], session: Session | None) -> list[Floats]:
        vectors: dict[int, Floats] = {}
        for batch in batches([len(row) for row in rows], BATCH_TOKENS):
            feed = padded([rows[index] for index in batch], self._tokenizer.padding)
            with native_code():
                states = (session or self._opened_session()).run(feed, _OUTPUTS)
            if states.ndim > 2:
                states = pooled(states, feed["attention_mask"], self._card.pooling)
            vectors.update(zip(batch, states, strict=True))
        return [vectors[index] for index in range(len(rows))]

    def _opened_session(self) -> Session:
        with self._loading:
            if self._session is None:
                self._session = self._load()
            return self._session

    def _to_vector(self, parts: Sequence[Floats]) -> Vector:
        import numpy as np  # late, as everywhere here: counting tokens must not pay for it

        mean = np.sum([part / np.linalg.norm(part) for part in parts], axis=0) if len(parts) > 1 else parts[0]
        length = float(np.linalg.norm(mean))
        if not 0 < length < np.inf:  # also refuses a length that is not a number
            raise EmbedderDown(
                f"the model {self._card.name} returned a vector without a direction",
                hint=Hint(Action.DOCTOR, "the model file may be damaged: {doctor} checks it"),
            )
        return (mean / length).astype("<f4").tobytes()


class OnnxEmbedder(Encoder):
    """Reads `embed.model` (directory or name) and `embed.threads` (0: one for each core)."""

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        given = str(options.get("embed.model") or "")
        self._home, self._file = find_model(given, paths)
        name = Path(os.path.expanduser(given)).name  # not that of the directory, which may be a version's
        card, threads = read_card(self._home, name), int(options.get("embed.threads") or 0)
        super().__init__(
            card,
            ModelTokenizer((self._home / "tokenizer.json").read_bytes),
            lambda: Session(name, self._file, threads, does_not_run(name)),
        )

    @cached_property
    def identity(self) -> Identity:
        """Who made the vectors; a model whose directory does not say its dimension is asked for a vector."""
        dimension = self._card.dimension or len(self._embed([""])[0]) // FLOAT_BYTES
        version = Prefixes(self._card.query_prefix, self._card.document_prefix).version
        return Identity("onnx", f"{self._card.name}-{self._fingerprint()}", dimension, version)

    @property
    @override
    def max_tokens(self) -> int:
        return self._card.window - self._tokenizer.special()

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


def padded(rows: Sequence[Sequence[int]], padding: int) -> dict[str, Ids]:
    """Return a model's inputs: the rows as one matrix, filled up on the right, and a mask of what is text."""
    import numpy as np

    ids = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    mask = np.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))


def pooled(states: Floats, mask: Ids, pooling: Pooling) -> Floats:
    """Make one vector of the vectors of a text's tokens."""
    if pooling == "cls":
        return states[:, 0]
    weights = mask[:, :, None].astype("float32")
    means: Floats = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means


def does_not_run(name: str) -> Callable[[str], EmbedderDown]:
    """Return what makes an error of onnxruntime's reason."""
    return lambda reason: EmbedderDown(
        f"the model {name} does not run: {reason}", hint=Hint(Action.DOCTOR, "{doctor} checks the model")
    )


def find_model(name: str, paths: Paths) -> tuple[Path, Path]:
    """Return the directory of a model, and the network in it."""
    given = Path(os.path.expanduser(name))  # pathlib's own raises for a stranger's ~
    homes = [home for home in (given.absolute(), Path(paths.models, name)) if name and home.is_dir()]
    if not homes:
        raise BadValue(
            f"embed.model names no model on this machine, {name!r}: looked in {given} and {paths.models}",
            hint="set it to a directory with model.onnx and tokenizer.json; none is downloaded",
        )
    home = homes[0]
    places = [home / name for name in _MODEL_FILES]
    model = next((place for place in places if place.is_file()), places[0])
    for needed in (model, home / "tokenizer.json"):
        if not needed.is_file():
            raise BadValue(
                f"the model directory {home} has no {needed.name}",
                hint="export the model to ONNX (as with optimum-cli) together with its fast tokenizer",
            )
    return home, model


def _read_json(path: Path) -> dict[str, Any]:
    """Return what one of a model's files says; a file that is not there says nothing."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise BadValue(f"{path} cannot be read: {fault}", hint="mend or remove the file") from fault
    return content if isinstance(content, dict) else {}


def read_card(home: Path, name: str) -> Card:
    """Gather what a model directory says about itself."""
    ours = _read_json(home / "concord.json")
    prompts = _read_json(home / "config_sentence_transformers.json").get("prompts") or {}
    theirs = _read_json(home / "1_Pooling/config.json")
    window = ours.get("window") or _read_json(home / "sentence_bert_config.json").get("max_seq_length")
    dimension = ours.get("dimension") or theirs.get("word_embedding_dimension")
    return Card(
        name,
        window=int(window or _DEFAULT_WINDOW),
        pooling=_pooling(home, ours, theirs),
        dimension=dimension and int(dimension),
        query_prefix=ours.get("query_prefix", prompts.get("query", "")),
        document_prefix=ours.get("document_prefix", prompts.get("document", prompts.get("passage", ""))),
    )


def _pooling(home: Path, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Pooling:
    mode, names = "pooling_mode_", {"": "mean", "cls_token": "cls", "mean_tokens": "mean"}
    modes = "+".join(
        key.removeprefix(mode) for key, is_on in theirs.items() if is_on and key.startswith(mode)
    )
    wanted = ours.get("pooling") or names.get(modes, modes)
    for known in _POOLINGS:
        if wanted == known:
            return known
    raise BadValue(
        f"the model {home.name} wants the pooling {wanted}", hint=f"supported: {', '.join(_POOLINGS)}"
    )
