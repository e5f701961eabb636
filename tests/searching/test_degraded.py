"""What may be missing: words answer alone, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.core import plugins
from concord.core.config import Paths
from concord.core.errors import BackendDown, BadValue, EmbedderDown
from concord.embed.hashing import HashingEmbedder
from concord.knowledge import KnowledgeBase
from concord.types import Answer, Vector
from searching.pages import opened, plant
from support.recorders import FrailStore, write


@pytest.fixture
def frail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """A knowledge base whose vectors or words can be down."""
    monkeypatch.setitem(plugins.TABLES["backends"], "frail", "support.recorders:FrailStore")
    with KnowledgeBase.open(store__url="frail://", embed__provider="hashing") as made:
        made.add(plant(tmp_path / "docs"))
        yield made


def reasons(answer: Answer) -> dict[str, str]:
    return {part.strategy: part.reason for part in answer.degraded}


class Down(HashingEmbedder):
    """An embedder that can embed documents but, today, no query."""

    def embed_query(self, text: str) -> Vector:
        if text == "deploy":
            raise EmbedderDown("the provider does not answer", hint="start it")
        return super().embed_query(text)


@pytest.mark.promise("000.degrade.semantic")
def test_without_the_embedding_provider_words_answer_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "down", "searching.test_degraded:Down")
    with opened("memory", tmp_path, embed__provider="down") as kb:
        kb.add(plant(tmp_path / "docs"))
        answer = kb.search("deploy")
        assert reasons(answer) == {"semantic": "the provider does not answer"}
        assert answer.hits
        assert "semantic" not in answer.strategies_matched


@pytest.mark.promise("000.degrade.semantic", "001.vec.same-model")
@pytest.mark.parametrize(
    ("provider", "hashing", "says"),
    [
        ("none", "concord.embed.hashing:HashingEmbedder", "no embedding provider"),
        ("hashing", "searching.test_degraded:Other", "built with hashing/hashing-256, not hashing/other"),
        ("hashing", "searching.test_degraded:Gone", "the model's folder is gone"),
    ],
)
def test_without_the_model_of_the_vectors_words_answer_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, hashing: str, says: str
):
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    monkeypatch.setitem(plugins.TABLES["embedders"], "hashing", hashing)
    with opened("sqlite", tmp_path, embed__provider=provider) as kb:
        answer = kb.search("deploy")
        assert says in reasons(answer)["semantic"]
        assert answer.hits


@pytest.mark.promise("E.models.store-decides")
def test_a_store_keeps_to_the_model_of_its_vectors_whatever_is_configured_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "other", "searching.test_degraded:Other")
    with opened("sqlite", tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
    write(tmp_path / "docs" / "new.md", "# Melons\n\nA melon is round.\n")
    with opened("sqlite", tmp_path, embed__provider="other") as kb:
        (report,) = kb.sync()
        assert (report.embedded, report.pending, report.degraded) == (1, 0, None)
        answer = kb.search("a round melon")
        assert answer.degraded == ()
        assert "semantic" in answer.hits[0].found_by
        assert kb.stats().identity == HashingEmbedder.identity


class Gone(HashingEmbedder):
    def __init__(self, options: object, paths: Paths) -> None:
        raise BadValue("the model's folder is gone", hint="put it back")


class Other(HashingEmbedder):
    """The same vectors under another name: nobody may compare them."""

    identity = type(HashingEmbedder.identity)("hashing", "other", 256)


@pytest.mark.promise("000.degrade.lexical")
def test_without_words_there_is_an_error_and_no_answer(frail: KnowledgeBase):
    def down(*_: object, **__: object) -> None:
        raise BackendDown("the index of words is gone", hint="mend it")

    FrailStore.last.words.search = down  # type: ignore[method-assign, assignment]
    for mode in ("auto", "hybrid", "fts5"):
        with pytest.raises(BackendDown, match="by words") as failure:
            frail.search("deploy", mode=mode)
        assert failure.value.hint
    assert frail.search("deploy", mode="semantic").hits
