"""Applying a calibration: probabilities, its JSON, where it is kept, and which one is used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.core.errors import BadValue
from concord.search.calibration import (
    SHIPPED,
    UNFITTED,
    Calibration,
    file_name,
    find_calibration,
    for_words,
    model_key,
    parsed,
    save_calibration,
    shipped_calibration,
)
from concord.types import Identity

HEAD = {
    "features": ["cosine", "coverage"],
    "coef": [2.0, 1.0],
    "intercept": -0.5,
    "mean": [0.6, 0.5],
    "scale": [0.1, 0.25],
}
TABLE = {
    "features": ["top_cosine"],
    "coef": [1.5],
    "intercept": 0.0,
    "mean": [0.7],
    "scale": [0.05],
    "isotonic": [[0.0, 0.0], [0.5, 0.2], [1.0, 0.9]],
}
DATA = {
    "version": 2,
    "model": "granite/384//cosine",
    "heads": {"hybrid": {"hit": HEAD, "answer": TABLE, "answerable": 0.35}},
    "cuts": {"strong": 0.8, "weak": 0.65, "hit": {"high": 0.4}, "answer": {"very_high": 0.85}},
}
MODEL = Identity("hashing", "some-model", 64)


def changed(path: str, value: object) -> dict[str, object]:
    data: dict[str, Any] = json.loads(json.dumps(DATA))
    *way, last = path.split(".")
    inner: Any = data
    for key in way:
        inner = inner[key]
    inner[last] = value
    return data


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        changed("heads.hybrid.hit.coef", [1.0]),
        changed("cuts", None),
    ],
)
def test_a_malformed_calibration_is_refused_with_a_cure(data: object):
    with pytest.raises(BadValue, match="calibration") as refusal:
        parsed(data)
    assert "calibrate" in (refusal.value.hint or "")


@pytest.mark.promise("B.calibration.fit")
def test_a_calibration_is_tied_to_its_model_and_not_to_who_runs_it():
    model = Identity(provider="bundled", model="granite", dimension=384)
    assert model_key(model) == model_key(replace(model, provider="onnx")) == parsed(DATA).model
    assert len({model_key(replace(model, dimension=768)), model_key(replace(model, prefix_version="q"))}) == 2


@pytest.mark.parametrize("path", sorted(Path(SHIPPED).glob("calibration-*.json")), ids=lambda path: path.stem)
def test_every_calibration_that_ships_judges_words_and_both_legs(path: Path):
    assert {"words", "hybrid"} <= parsed(json.loads(path.read_text(encoding="utf-8"))).heads.keys()


def found(identity: Identity, knowledge: KnowledgeBase) -> Calibration | None:
    return find_calibration(identity, knowledge.settings.paths)


def test_without_a_fit_for_its_model_a_knowledge_base_judges_by_words(knowledge: KnowledgeBase):
    words = found(MODEL, knowledge)
    assert words is not None
    assert (words.model, [*words.heads], words.cuts.strong) == ("", ["words", "words+reader"], None)
    assert for_words(parsed(DATA)) is UNFITTED


def test_the_users_own_fit_comes_before_the_one_that_ships(knowledge: KnowledgeBase):
    own = replace(parsed(DATA), model=model_key(MODEL))
    path = save_calibration(own, MODEL, Path(knowledge.settings.paths.data))
    assert (path.name, path.parent.stat().st_mode & 0o777) == (file_name(MODEL), 0o700)
    assert found(MODEL, knowledge) == own
    assert shipped_calibration(MODEL) is None
    save_calibration(replace(own, model="another/model"), MODEL, Path(knowledge.settings.paths.data))
    assert found(MODEL, knowledge) != replace(own, model="another/model")


def test_a_running_process_notices_what_another_fits_changes_or_takes_back(knowledge: KnowledgeBase):
    own = replace(parsed(DATA), model=model_key(MODEL))
    path = Path(knowledge.settings.paths.data) / file_name(MODEL)
    path.parent.mkdir(parents=True)
    for second, share in enumerate((0.25, 0.75), 1):  # of the same size
        written = replace(own, other_scripts=share)
        path.write_text(json.dumps(to_builtins(written)), encoding="utf-8")
        os.utime(path, (second, second))
        assert found(MODEL, knowledge) == written
    path.unlink()
    assert found(MODEL, knowledge) != written
