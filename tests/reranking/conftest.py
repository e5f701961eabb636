"""The model of the rerankers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reranking.tiny_model import make_model


@pytest.fixture(scope="package")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")
