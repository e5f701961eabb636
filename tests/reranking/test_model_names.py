"""A cross-encoder's model, found by its name or as a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.core.config import Paths, find_paths, load_settings
from concord.core.errors import BadValue
from concord.search.cross_encoder import CrossEncoder
from concord.types import Ranked
from reranking.tiny_model import FUSED, NOTES, QUERY, TEXTS, make_model, options
from support.small_library import library

NAME = "org/tiny-model_v1.5"
HUB = "models--org--tiny-model_v1.5"


def paths(tmp_path: Path) -> Paths:
    return find_paths({"KB_HOME": str(tmp_path / "home"), "HF_HOME": str(tmp_path / "hf")})


def by_name(tmp_path: Path, name: str = NAME) -> list[Ranked]:
    return CrossEncoder(options(1.0, name), paths(tmp_path)).rerank(QUERY, FUSED, TEXTS)


@pytest.mark.promise("B.rerank.cross-encoder")
@pytest.mark.parametrize("place", [f"home/data/models/{NAME}", f"hf/hub/{HUB}/snapshots/0123abc"])
@pytest.mark.parametrize("below", ["", "onnx"])
def test_a_model_is_found_by_its_name_where_models_are_kept(
    tmp_path: Path, model: Path, place: str, below: str
):
    home = make_model(tmp_path / place)
    if below:
        (home / below).mkdir()
        (home / "model.onnx").rename(home / below / "model.onnx")
    assert by_name(tmp_path) == CrossEncoder(options(1.0, model), paths(tmp_path)).rerank(QUERY, FUSED, TEXTS)


def test_a_name_that_is_nowhere_is_told_with_every_place_that_was_looked_in(tmp_path: Path):
    with pytest.raises(BadValue) as fault:
        by_name(tmp_path)
    for place in (f"home/data/models/{NAME}", f"hf/hub/{HUB}"):
        assert str(tmp_path / place) in fault.value.message
    assert "none is downloaded" in str(fault.value.hint)


def test_a_model_that_is_named_is_asked_unless_that_is_turned_off(tmp_path: Path, model: Path):
    environment = {"KB_HOME": str(tmp_path / "home"), "KB_RERANK_MODEL": str(model)}
    implied = load_settings({}, environment)
    assert implied["rerank.provider"] == "cross_encoder"
    assert implied.origin("rerank.provider") == "implied"
    for said in ("none", "cosine"):
        assert load_settings({"rerank.provider": said}, environment)["rerank.provider"] == said
    assert load_settings({}, {})["rerank.provider"] == "none"
    plain, reranked = (library(NOTES, rerank__model=said).search(QUERY) for said in ("", str(model)))
    assert [hit.scores["fused"] for hit in reranked.hits] != [hit.scores["fused"] for hit in plain.hits]
