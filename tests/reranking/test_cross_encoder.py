"""Reranking by a cross-encoder: what its model is given, and what is made of its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concord.core.errors import BadValue, KBError, Unavailable
from concord.embed.onnx import read_window
from concord.search.rerank import CrossEncoder
from reranking.tiny_model import DOUBT, FUSED, QUERY, TEXTS, make_model, options, ranking, sigmoid, spoilt
from support.folders import NOWHERE


def probability(home: Path, query: str, text: str) -> float:
    return CrossEncoder(options(1.0, home), NOWHERE).rerank(query, ranking({1: 1.0}), {1: text})[0].score


@pytest.mark.parametrize(
    ("query", "text", "shared"),
    [("login token", TEXTS[4], 2), ("login", TEXTS[4], 1), ("pool", TEXTS[4], 0), ("unheard", "of", 0)],
)
def test_the_score_is_the_probability_that_the_model_gives(model: Path, query: str, text: str, shared: int):
    assert probability(model, query, text) == pytest.approx(sigmoid(shared - DOUBT), abs=1e-6)


@pytest.mark.parametrize("variant", [{"outputs": 2}, {"flat": True}])
def test_two_logits_or_a_bare_list_say_the_same_as_one(tmp_path: Path, variant: dict[str, Any]):
    home = make_model(tmp_path / "variant", **variant)
    assert probability(home, QUERY, TEXTS[4]) == pytest.approx(sigmoid(2 - DOUBT), abs=1e-6)


def test_only_the_passage_is_cut_to_the_window(tmp_path: Path):
    home = make_model(tmp_path / "narrow")
    (home / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 12}), "utf-8")
    seven = "month " * 6 + "login"  # of 12, 3 special tokens and 2 of the query leave room for 7
    assert probability(home, "token login", seven) == pytest.approx(sigmoid(1 - DOUBT), abs=1e-6)
    assert probability(home, "token login", "month " + seven) == pytest.approx(sigmoid(-DOUBT), abs=1e-6)


@pytest.mark.parametrize(
    ("files", "window"),
    [
        ({}, 512),
        ({"tokenizer_config.json": {"model_max_length": 10**30}, "config.json": {}}, 512),
        ({"tokenizer_config.json": {"model_max_length": 64}}, 64),
        ({"config.json": {"max_position_embeddings": 514, "model_type": "xlm-roberta"}}, 512),
        ({"config.json": {"max_position_embeddings": 8192, "model_type": "modernbert"}}, 8192),
    ],
)
def test_the_window_is_what_the_directory_names(tmp_path: Path, files: dict[str, object], window: int):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    assert read_window(tmp_path) == window


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda tmp: "", BadValue, "rerank.model"),
        (lambda tmp: tmp / "nowhere", BadValue, "names no model"),
        (lambda tmp: spoilt(tmp / "m", "tokenizer.json", None), BadValue, "no tokenizer.json"),
        (lambda tmp: spoilt(tmp / "m", "tokenizer.json", b"{}"), Unavailable, "tokenizer.json"),
        (lambda tmp: spoilt(tmp / "m", "model.onnx", b"nonsense"), Unavailable, "does not run"),
        (lambda tmp: make_model(tmp / "m", outputs=3), BadValue, "not one score a pair"),
        (lambda tmp: make_model(tmp / "m", doubt=math.nan), Unavailable, "no number"),
        (lambda tmp: make_model(tmp / "m", extra="pixel_values"), BadValue, "pixel_values"),
    ],
    ids=["unset", "nowhere", "no-tokenizer", "bad-tokenizer", "bad-model", "classes", "nan", "input"],
)
def test_a_model_that_is_none_says_what_is_wrong_and_what_to_do(
    tmp_path: Path, make: Callable[[Path], object], kind: type[KBError], said: str
):
    reranker = CrossEncoder(options(0.5, make(tmp_path)), NOWHERE)
    with pytest.raises(kind) as fault:
        reranker.rerank(QUERY, FUSED, TEXTS)
    assert said in fault.value.message
    assert fault.value.hint
