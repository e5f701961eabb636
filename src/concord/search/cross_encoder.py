"""A second look by a model that reads query and chunk together, from a directory of the user's own.

It is given as such, or by the name of a model that is on this machine. It holds `model.onnx` (or
`onnx/model.onnx`) and `tokenizer.json`, as cross-encoders are published. Nothing is read before the first
search, and nothing is ever fetched from anywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.core.batches import batched
from concord.core.config import Paths
from concord.core.errors import BadValue, Unavailable
from concord.embed.native import native_code
from concord.embed.runtime import INPUTS, Session, find_model, padding_id, read_window
from concord.search.rerank import weighed
from concord.text.clean import encodable
from concord.types import ChunkId, Ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

_SINGLE, _TWO_CLASSES = 1, 2  # logits for a pair: that of "relevant", or those of "irrelevant" and "relevant"
_QUERY_SHARE = 2  # a query may fill this part of the window (a half): a longer one would leave no passage
_BATCH_PAIRS = 4  # about 1,300 tokens: an encoder of this kind is fastest with one to two thousand
_HINT = (
    "rerank.model is a directory with model.onnx and tokenizer.json, or the name of a model that is on this"
    " machine: none is downloaded; rerank.provider none does without"
)


class _Model(NamedTuple):
    """A loaded model: its tokenizer and its network."""

    tokenizer: Tokenizer
    session: Session
    window: int


class CrossEncoder:
    """Reads `rerank.model`, `rerank.weight` and `embed.threads`. May be used by several threads."""

    name = "cross_encoder"

    def __init__(self, options: Mapping[str, Any], paths: Paths, similarity: object = None) -> None:
        self._weight = float(options["rerank.weight"])
        self._home = str(options.get("rerank.model") or "")
        self._paths = paths
        self._threads = int(options.get("embed.threads") or 0)
        self._loading = threading.Lock()
        self._loaded: _Model | None = None

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the chunks in the order of the model's and the fused score together.

        Raises:
            BadValue: `rerank.model` is no cross-encoder.
            Unavailable: the model cannot be loaded or run.
        """
        known = {row.chunk_id: texts[row.chunk_id] for row in ranked if row.chunk_id in texts}
        if not known:
            return list(ranked)
        return weighed(ranked, self._scores(query, known), self._weight)

    def close(self) -> None:
        """Free the model; the next use loads it again."""
        with self._loading:
            self._loaded = None

    def _scores(self, query: str, texts: Mapping[ChunkId, str]) -> dict[ChunkId, float]:
        with native_code():
            model = self._model()
            asked = _cut(encodable(query), model)
        by_length = sorted(texts, key=lambda chunk_id: len(texts[chunk_id]))  # so that little is padding
        scores: dict[ChunkId, float] = {}
        for batch in batched(by_length, _BATCH_PAIRS):
            pairs = [(asked, encodable(texts[chunk_id])) for chunk_id in batch]
            with native_code():
                scores.update(zip(batch, self._probabilities(model, pairs), strict=True))
        return scores

    def _probabilities(self, model: _Model, pairs: Sequence[tuple[str, str]]) -> list[float]:
        feed = _feed(model.tokenizer.encode_batch(list(pairs)))
        logits = model.session.run(feed, ["logits"])
        return _to_probabilities(logits, len(pairs), self._home)

    def _model(self) -> _Model:
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._home, self._paths, self._threads)
            return self._loaded


def _load(home: str, paths: Paths, threads: int) -> _Model:
    if not home:
        raise BadValue("rerank.model does not say where the cross-encoder is", hint=_HINT)
    directory, model = find_model(home, paths, "rerank.model")
    window = read_window(directory)
    session = Session(str(model), model, threads, partial(_unavailable, str(model)))
    return _Model(_tokenizer(directory / "tokenizer.json", window), session, window)


def _tokenizer(path: Path, window: int) -> Tokenizer:
    """Load a tokenizer that cuts passages, never the query, and reads what spells a special token as text."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise Unavailable(f"{path} cannot be read: {fault}", hint=_HINT) from fault
    kind = (tokenizer.padding or {}).get("pad_type_id", 0)
    tokenizer.enable_padding(pad_id=padding_id(tokenizer), pad_type_id=kind)
    tokenizer.enable_truncation(window, strategy="only_second")
    tokenizer.encode_special_tokens = True
    return tokenizer


def _cut(query: str, model: _Model) -> str:
    """Shorten a query that would leave the passage no room."""
    most = max(1, model.window // _QUERY_SHARE - model.tokenizer.num_special_tokens_to_add(True))
    encoding = model.tokenizer.encode("", query)  # as the second of a pair: the first may not be too long
    ends = [end for (_, end), part in zip(encoding.offsets, encoding.sequence_ids, strict=True) if part == 1]
    return query if len(ends) <= most else query[: ends[most - 1]]


def _feed(encodings: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
    import numpy as np

    rows = (
        [encoding.ids for encoding in encodings],
        [encoding.attention_mask for encoding in encodings],
        [encoding.type_ids for encoding in encodings],
    )
    return {name: np.array(row, np.int64) for name, row in zip(INPUTS, rows, strict=True)}


def _to_probabilities(logits: NDArray[np.float32], pairs: int, home: str) -> list[float]:
    """Return the probability that each pair belongs together: a sigmoid of one logit, a softmax of two."""
    import numpy as np

    shape = logits.shape if logits.ndim > 1 else (*logits.shape, _SINGLE)
    if shape not in {(pairs, _SINGLE), (pairs, _TWO_CLASSES)}:
        raise BadValue(f"the model {home} returns {list(logits.shape)}, not one score a pair", hint=_HINT)
    rows = logits.reshape(shape).astype(np.float64)
    if not np.isfinite(rows).all():
        raise Unavailable(f"the model {home} returns what is no number", hint="its file may be damaged")
    # The softmax of two logits is the sigmoid of their difference; tanh does not overflow, exp would.
    margins = rows[:, 0] if shape[1] == _SINGLE else rows[:, 1] - rows[:, 0]
    return [float(p) for p in 0.5 * (1 + np.tanh(0.5 * margins))]


def _unavailable(name: str, reason: str) -> Unavailable:
    return Unavailable(f"the cross-encoder {name} does not run: {reason}", hint=_HINT)
