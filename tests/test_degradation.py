"""Searching and syncing while the vector store or the embedder is down, slow, wrong, and back again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase, Note
from concord.core import plugins
from concord.core.errors import BackendDown, EmbedderDown
from concord.embed.hashing import HashingEmbedder
from concord.types import Answer, Vector
from support.small_library import NOTES, UNHURRIED, secluded, titles

pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
pytest.importorskip("qdrant_edge", reason="pip install qdrant-edge-py")

from support.qdrant_shim import QdrantShim

QUERY = "database connection pool"


class FickleEmbedder(HashingEmbedder):
    """The hashing embedder, which does what it is told to."""

    behave: Callable[[Vector], Vector] = staticmethod(lambda vector: vector)

    def embed_query(self, text: str) -> Vector:
        return FickleEmbedder.behave(super().embed_query(text))

    def embed_documents(self, texts: Any) -> list[Vector]:
        return [FickleEmbedder.behave(vector) for vector in super().embed_documents(texts)]


def down(vector: Vector) -> Vector:
    raise EmbedderDown("the provider does not answer", hint="start it")


def too_short(vector: Vector) -> Vector:
    return vector[:-4]


@pytest.fixture
def kb(shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """A few notes in SQLite, their vectors in Qdrant; meaning is tried again as soon as it has failed."""
    monkeypatch.setitem(plugins.TABLES["embedders"], "fickle", f"{__name__}:FickleEmbedder")
    monkeypatch.setattr(FickleEmbedder, "behave", staticmethod(lambda vector: vector))
    given = {"embed__provider": "fickle", "search__retry_s": 0, **UNHURRIED}
    with elsewhere(tmp_path, shim.url, vectors__timeout_s=1, **given) as made:
        for title, text in NOTES.items():
            made.note(Note(text, title=title))
        yield made


def ask(kb: KnowledgeBase, text: str = QUERY, **more: Any) -> Answer:
    return kb.search(text, **more)


def is_whole(answer: Answer) -> bool:
    return not answer.degraded and "semantic" in answer.strategies_matched


def is_by_words(answer: Answer, reason: str) -> bool:
    """Whether words alone answered, well, and the answer says why."""
    (named,) = answer.degraded
    found = titles(answer)[0] == "Pool" and answer.strategies_matched == ("fts_exact", "fts_relaxed")
    return found and named.strategy == "semantic" and reason in named.reason


@pytest.mark.promise("000.degrade.semantic")
def test_a_vector_store_that_is_down_costs_meaning_only_until_it_is_back(kb: KnowledgeBase, shim: QdrantShim):
    shim.stop()
    for _ in range(4):
        assert is_by_words(ask(kb), "Qdrant")
    shim.start()
    assert is_whole(ask(kb))


def test_a_vector_store_that_hangs_is_given_up_after_its_own_time(kb: KnowledgeBase, shim: QdrantShim):
    shim.gate.clear()
    assert is_by_words(ask(kb), "timed out")
    shim.gate.set()
    assert is_whole(ask(kb))


@pytest.mark.parametrize("broken", [{"points": None}, {"points": [{"id": 1}]}, "nonsense", None], ids=str)
def test_a_vector_store_that_answers_nonsense_costs_meaning_only(
    kb: KnowledgeBase, shim: QdrantShim, broken: Any
):
    shim.mangle = lambda route, result: broken if route == "query" else result
    assert is_by_words(ask(kb), "")
    shim.mangle = lambda route, result: result
    assert is_whole(ask(kb))


@pytest.mark.promise("000.degrade.semantic")
@pytest.mark.parametrize(
    ("behave", "reason"), [(down, "the provider does not answer"), (too_short, "dimensions")]
)
def test_an_embedder_that_fails_costs_meaning_only_until_it_works_again(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, behave: Callable[[Vector], Vector], reason: str
):
    with monkeypatch.context() as patched:
        patched.setattr(FickleEmbedder, "behave", staticmethod(behave))
        assert is_by_words(ask(kb), reason)
    assert is_whole(ask(kb))  # the same query: nothing that was wrong has been kept


@pytest.mark.promise("000.degrade.log")
def test_one_outage_is_one_line_in_the_log(
    kb: KnowledgeBase, shim: QdrantShim, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "concord")
    shim.status = 503
    for n in range(5):
        ask(kb, f"{QUERY} {n}")
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("concord")]
    assert "words alone" in line
    assert "503" in line


def test_an_outage_does_not_bring_a_storm_of_requests(
    shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with elsewhere(tmp_path, shim.url) as kb:
        kb.note(Note(NOTES["Pool"], title="Pool"))
        shim.status = 503
        shim.requests.clear()
        reasons = [ask(kb, f"{QUERY} {n}").degraded[0].reason for n in range(20)]
    assert len(shim.requests) == 3
    assert all("tried again in" in reason for reason in reasons[3:])


@pytest.mark.promise("000.degrade.lexical")
def test_without_the_lexical_store_there_is_an_error(kb: KnowledgeBase):
    kb.store.close()
    with pytest.raises(BackendDown) as fault:
        ask(kb)
    assert fault.value.hint


def folder_of(tmp_path: Path, files: int) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for n in range(files):
        (folder / f"{n}.md").write_text(f"# Page {n}\n\nThe pump number {n} is tested.\n", encoding="utf-8")
    return folder


def test_a_sync_while_the_vector_store_is_down_keeps_words_and_is_finished_later(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path
):
    folder = folder_of(tmp_path, 5)
    shim.stop()
    report = kb.add(folder)
    assert (report.added, report.embedded, report.pending) == (5, 0, 5)
    assert "Qdrant" in str(report.degraded)
    assert ask(kb, "pump number 3", mode="fts5").hits
    shim.start()
    (report,) = kb.sync(["docs"])
    assert (report.pending, report.degraded, report.embedded + report.reused) == (0, None, 5)
    assert is_whole(ask(kb, "pump number 3"))


def elsewhere(tmp_path: Path, url: str, **more: Any) -> KnowledgeBase:
    """A knowledge base in SQLite whose vectors are kept at a URL."""
    return secluded(tmp_path, f"sqlite://{tmp_path}", vectors__url=url, **more)


def answer_errors(shim: QdrantShim) -> None:
    shim.status = 500


@pytest.mark.parametrize("break_down", [answer_errors, QdrantShim.stop])
def test_a_vector_store_that_breaks_down_within_a_sync_loses_nothing(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path, break_down: Callable[[QdrantShim], None]
):
    folder, sent = folder_of(tmp_path, 200), []

    def break_at_the_second_batch(route: str, result: Any) -> Any:
        sent.append(route)
        if sent.count("upsert") == 2:  # the engine has it, and nobody will hear that
            break_down(shim)
        return result

    shim.mangle = break_at_the_second_batch
    report = kb.add(folder)
    assert report.degraded
    assert 0 < report.pending < 200
    shim.mangle, shim.status = (lambda route, result: result), None
    if break_down is QdrantShim.stop:
        shim.start()
    (report,) = kb.sync(["docs"])
    assert (report.pending, report.degraded) == (0, None)
    assert kb.source("docs").counts.vectors == 200
    assert shim.answer("POST", "/collections/conduit_kb/points/count", {})["count"] == 200 + len(NOTES)


@pytest.mark.promise("000.remove.retryable")
def test_a_removal_while_the_vector_store_is_down_leaves_everything_and_works_later(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path
):
    kb.add(folder_of(tmp_path, 3))
    before = kb.stats().counts
    shim.stop()
    with pytest.raises(BackendDown):
        kb.remove("docs")
    assert kb.stats().counts == before
    shim.start()
    removal = kb.remove("docs")
    assert (removal.documents_deleted, removal.vectors_deleted) == (3, 3)
    assert shim.answer("POST", "/collections/conduit_kb/points/count", {})["count"] == len(NOTES)
