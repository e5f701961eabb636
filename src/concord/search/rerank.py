"""Which of these few is best, on a second look? The order after a reranker, or as it was if that fails."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import BadValue, Unavailable, reason_of
from concord.search.deadline import run_within
from concord.search.fuse import stretched
from concord.text.clean import encodable
from concord.types import ChunkId, Degraded, Passage, Query, Ranked

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from concord.core.config import Paths
    from concord.core.protocols import Reranker
    from concord.embed.runtime import Session

_BATCH_PAIRS = 4  # about 1,300 tokens: an encoder of this kind is fastest with one to two thousand
_HINT = (
    "rerank.model is a directory with model.onnx and tokenizer.json, or the name of a model that is on this"
    " machine: none is downloaded; rerank.provider none does without"
)
Similarity = Callable[[str, Sequence[ChunkId]], Mapping[ChunkId, float]]


def rerank(
    passages: Sequence[Passage], query: Query, reranker: Reranker | None, budget_ms: float
) -> tuple[list[Passage], list[Degraded]]:
    """Return the passages in a reranker's order; one that fails, is late or errs is named instead."""
    if reranker is None or not passages:
        return [*passages], []
    ranked = [passage.ranked for passage in passages]
    texts = {passage.chunk.id: passage.chunk.text for passage in passages}
    try:
        better = run_within(lambda: reranker.rerank(query.meaning, ranked, texts), budget_ms)
    except Exception as error:  # whatever a model's runtime raises is reported in the answer
        return [*passages], [Degraded("rerank", reason_of(error))]
    if better is None:
        return [*passages], [Degraded("rerank", f"no answer within {budget_ms:.0f} ms")]
    same = sorted(row.chunk_id for row in better) == sorted(row.chunk_id for row in ranked)
    if not same or not all(math.isfinite(row.score) for row in better):  # it may be anybody's
        reason = f"{reranker.name} returned other chunks than it was given"
        return [*passages], [Degraded("rerank", reason)]
    by_id = {passage.chunk.id: passage for passage in passages}
    return [replace(by_id[row.chunk_id], ranked=row) for row in better], []


def weighed(ranked: Sequence[Ranked], scores: Mapping[ChunkId, float], weight: float) -> list[Ranked]:
    """Return the chunks by weight × score + (1 − weight) × fused, best first; scores are within [0, 1].

    A chunk without a score counts as an average one: not to have been looked at speaks neither for nor
    against it. Where no chunk has a score, or they count for nothing, all stays as it is.
    """
    known = [scores[row.chunk_id] for row in ranked if row.chunk_id in scores]
    if not known or not weight:
        return list(ranked)
    average = sum(known) / len(known)
    fused = [row.score for row in ranked]
    blended = [
        replace(row, score=weight * scores.get(row.chunk_id, average) + (1 - weight) * own)
        for row, own in zip(ranked, stretched(fused, min(fused)), strict=True)
    ]
    return sorted(blended, key=lambda row: -row.score)  # stable: what ties stays in its order


class CosineReranker:
    """Reads `rerank.weight`; the cosines of a query and of chunks are asked of `similarity`."""

    name = "cosine"

    def __init__(self, options: Mapping[str, Any], paths: Paths, similarity: Similarity) -> None:
        self._weight = float(options["rerank.weight"])
        self._similarity = similarity

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the chunks in the order of cosine and fused score together."""
        cosines = self._similarity(query, [row.chunk_id for row in ranked])
        # An angle beyond 90° says no more than 90° does: the chunk has nothing to do with the query.
        return weighed(ranked, {i: min(1.0, max(0.0, c)) for i, c in cosines.items()}, self._weight)

    def close(self) -> None:
        """There is nothing to free: the vectors are the store's, the model is the embedder's."""


class CrossEncoder:
    """A model that reads query and chunk together, from a directory of the user's own, or by its name.

    It holds `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as cross-encoders are published.
    Nothing is read before the first search, and nothing is ever fetched from anywhere. Reads `rerank.model`,
    `rerank.weight` and `embed.threads`. May be used by several threads.
    """

    name = "cross_encoder"

    def __init__(self, options: Mapping[str, Any], paths: Paths, similarity: object = None) -> None:
        self._weight = float(options["rerank.weight"])
        self._home = str(options.get("rerank.model") or "")
        self._paths = paths
        self._threads = int(options.get("embed.threads") or 0)
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Session] | None = None

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the chunks in the order of the model's and the fused score together."""
        from concord.embed.runtime import native_code

        known = [row.chunk_id for row in ranked if row.chunk_id in texts]
        scores: dict[ChunkId, float] = {}
        # Those of a length together, so that little is padding.
        for batch in batched(sorted(known, key=lambda chunk_id: len(texts[chunk_id])), _BATCH_PAIRS):
            pairs = [(encodable(query), encodable(texts[chunk_id])) for chunk_id in batch]
            with native_code():
                scores.update(zip(batch, self._probabilities(pairs), strict=True))
        return weighed(ranked, scores, self._weight)

    def close(self) -> None:
        """Free the model; the next use loads it again."""
        with self._loading:
            self._loaded = None

    def _probabilities(self, pairs: list[tuple[str, str]]) -> list[float]:
        """Return how probably each pair belongs together: a sigmoid of one logit, a softmax of two."""
        import numpy as np

        from concord.embed.runtime import INPUTS

        with self._loading:
            self._loaded = tokenizer, session = self._loaded or self._load()
        encoded = tokenizer.encode_batch(pairs)
        rows = ([getattr(pair, part) for pair in encoded] for part in ("ids", "attention_mask", "type_ids"))
        feed = {name: np.array(row, np.int64) for name, row in zip(INPUTS, rows, strict=True)}
        logits = session.run(feed, ["logits"]).astype(np.float64)
        logits = logits.reshape(-1, 1) if logits.ndim == 1 else logits
        if logits.shape not in {(len(pairs), 1), (len(pairs), 2)}:
            shape = [*logits.shape]
            raise BadValue(f"the model {self._home} returns {shape}, not one score a pair", hint=_HINT)
        if not np.isfinite(logits).all():
            said = f"the model {self._home} returns what is no number"
            raise Unavailable(said, hint="its file may be damaged")
        # The softmax of two logits is the sigmoid of their difference; tanh does not overflow, exp would.
        margins = logits[:, -1] - (logits[:, 0] if logits.shape[1] > 1 else 0)
        return [float(p) for p in 0.5 * (1 + np.tanh(0.5 * margins))]

    def _load(self) -> tuple[Tokenizer, Session]:
        from tokenizers import Tokenizer

        from concord.embed.onnx import find_model, read_window
        from concord.embed.runtime import Session
        from concord.embed.tokenizer import padding_id

        if not self._home:
            raise BadValue("rerank.model does not say where the cross-encoder is", hint=_HINT)
        directory, model = find_model(self._home, self._paths, "rerank.model")
        try:
            tokenizer = Tokenizer.from_buffer((directory / "tokenizer.json").read_bytes())
        except (OSError, ValueError) as fault:
            raise Unavailable(f"{directory}/tokenizer.json cannot be read: {fault}", hint=_HINT) from fault
        kind = (tokenizer.padding or {}).get("pad_type_id", 0)
        tokenizer.enable_padding(pad_id=padding_id(tokenizer), pad_type_id=kind)
        tokenizer.enable_truncation(read_window(directory))  # the longer of the two, mostly the passage
        tokenizer.encode_special_tokens = True  # text that spells a special token is read as text

        def unavailable(reason: str) -> Unavailable:
            return Unavailable(f"the cross-encoder {model} does not run: {reason}", hint=_HINT)

        return tokenizer, Session(str(model), model, self._threads, unavailable)
