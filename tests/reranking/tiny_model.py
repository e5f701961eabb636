"""A cross-encoder that counts shared words, and passages to rerank by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from concord.types import Candidate, ChunkId, Ranked
from support.onnx_file import FLOAT, INT64, Graph

TEXTS: dict[ChunkId, str] = {
    1: "the pool holds ten connections",
    2: "login hands out a token after the password",
    3: "backups are kept for a month",
    4: "a token expires after login",
}
QUERY = "login token"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
DOUBT = 1.0  # the logit of a pair that shares no word is -1: each shared word adds 1


def ranking(scores: Mapping[ChunkId, float]) -> list[Ranked]:
    rows = sorted(scores.items(), key=lambda item: -item[1])
    return [Ranked(Candidate(chunk_id, {"fts_exact": 1}, 1), score) for chunk_id, score in rows]


FUSED = ranking({3: 0.0325, 1: 0.0317, 2: 0.0310, 4: 0.0164})


def make_model(
    home: Path,
    outputs: int = 1,
    *,
    segments: bool = True,
    flat: bool = False,
    doubt: float = DOUBT,
    extra: str = "",
) -> Path:
    """A real cross-encoder whose logit is known: how many words query and passage share, less `doubt`.

    Special tokens and unknown words count for nothing. Without segments every pair of equal words is counted.
    """
    graph = Graph()
    names = ["input_ids", "attention_mask", *["token_type_ids"] * segments, *[extra] * bool(extra)]
    ids, mask, *rest = [graph.input(name, INT64, ["batch", "tokens"]) for name in names]
    is_word = graph.node("Greater", [ids, graph.constant("specials", np.array(len(SPECIAL) - 1, np.int64))])
    counted = graph.node("Mul", [graph.node("Cast", [is_word], to=INT64), mask])
    one = graph.constant("one", np.array(1, np.int64))
    left = graph.node("Mul", [counted, graph.node("Sub", [one, rest[0]])]) if segments else counted
    right = graph.node("Mul", [counted, rest[0]]) if segments else counted

    def along(axis: int, name: str) -> str:
        return graph.node("Unsqueeze", [name, graph.constant(f"axis{axis}", np.array([axis], np.int64))])

    same = graph.node("Cast", [graph.node("Equal", [along(1, ids), along(2, ids)])], to=INT64)
    shared = graph.node("Mul", [graph.node("Mul", [same, along(2, left)]), along(1, right)])
    axes = graph.constant("both", np.array([1, 2], np.int64))
    total = graph.node("ReduceSum", [shared, axes], keepdims=0)
    logit = graph.node(
        "Sub",
        [graph.node("Cast", [total], to=FLOAT), graph.constant("doubt", np.array(doubt, np.float32))],
    )
    column = along(1, logit)
    nought = graph.node("Sub", [column, column])
    result = logit if flat else graph.node("Concat", [*[nought] * (outputs - 1), column], axis=1)
    graph.output("logits", result, FLOAT, ["batch"] if flat else ["batch", outputs])
    home.mkdir(parents=True, exist_ok=True)
    (home / "model.onnx").write_bytes(graph.to_bytes())
    write_tokenizer(home / "tokenizer.json")
    return home


def write_tokenizer(path: Path) -> None:
    words = sorted({word for text in TEXTS.values() for word in text.split()})
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_truncation(4)  # as published tokenizers may say; it must not be obeyed
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=64)
    tokenizer.save(str(path))


def options(weight: float = 1.0, model: object = "") -> dict[str, object]:
    return {"rerank.weight": weight, "rerank.model": str(model), "embed.threads": 1}


def spoilt(home: Path, name: str, content: bytes | None) -> Path:
    make_model(home)
    (home / name).unlink()
    if content is not None:
        (home / name).write_bytes(content)
    return home


NOTES = {str(i): text for i, text in TEXTS.items()}


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
