"""Vectors that move from one place to another: all arrive, and nothing of them stays where they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase, Note
from concord.cli.main import main
from concord.core.errors import BackendDown, EmbedderDown
from concord.index.embedding import embedded_text, text_key
from concord.ops.migrate import VectorMove
from concord.store.contract import Store
from contract.stored import IDENTITY, unit
from support.small_library import secluded

pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
pytest.importorskip("qdrant_edge", reason="pip install qdrant-edge-py")

from support.qdrant_shim import QdrantShim

OLD, NEW = "conduit_kb", "other_kb"


def opened(folder: Path, vectors: str = "", org: str = "default", **more: Any) -> KnowledgeBase:
    return secluded(folder, f"sqlite://{folder}/store", vectors__url=vectors, org=org, **more)


@pytest.fixture
def kb(shim: QdrantShim, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base with its vectors in Qdrant, where another organisation has some as well."""
    with opened(tmp_path, shim.url, "others") as others, opened(tmp_path, shim.url) as made:
        others.note(Note("Somebody else's secret.", title="Theirs"))
        made.note(Note("The pump is tested on Mondays.", title="Pump"))
        made.note(Note("The valve is painted on Fridays.", title="Valve"))
        yield made


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a command on that knowledge base; return what it prints."""
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")

    def run(*args: str) -> str:
        assert main(["--store", f"sqlite://{tmp_path}/store", *args]) == 0
        return capsys.readouterr().out

    return run


def owners(shim: QdrantShim, collection: str = OLD) -> dict[str, int]:
    """How many points each organisation has in a collection."""
    import qdrant_edge as edge

    found: dict[str, int] = {}
    request = edge.ScrollRequest(limit=1000, with_payload=True, with_vector=False)
    for record in shim.shards[collection][0].scroll(request)[0]:
        org = str((record.payload or {})["org"])
        found[org] = found.get(org, 0) + 1
    return found


def moved(folder: Path, vectors: str = "", **more: Any) -> VectorMove:
    """Bring vectors there, and see that they are searched there."""
    with opened(folder, vectors, **more) as made:
        done = made.migrate_vectors()
        answer = made.search("pump", mode="semantic")
        assert (answer.hits[0].document.title, answer.degraded) == ("Pump", ())
        return done


def test_brought_back_vectors_are_gone_from_qdrant_and_nobody_elses_are(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path
):
    assert owners(shim) == {"default": 2, "others": 1}
    done = moved(tmp_path)
    assert (done.embedding.reused, done.left) == (2, ())
    assert owners(shim) == {"others": 1}
    with opened(tmp_path, shim.url, "others") as others:
        assert others.search("secret", mode="semantic").hits


def test_vectors_of_every_model_are_gone(kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path):
    embed_by_another_model(kb.store)
    assert [owners(shim, name).get("default", 0) for name in shim.shards] == [2, 2]
    assert moved(tmp_path).left == ()
    assert [owners(shim, name).get("default", 0) for name in shim.shards] == [0, 0]


def embed_by_another_model(store: Store) -> None:
    """Keep vectors of another dimension, as `kb models add` does."""
    store.models.add(IDENTITY, {})
    index = store.models.index(IDENTITY)
    for waiting in index.pending(0, 9):
        key = text_key(embedded_text(waiting))
        index.remember({key: unit(1, 0, 0, 0)})
        index.put([(waiting.chunk_id, key, unit(1, 0, 0, 0))])


def test_the_same_server_by_another_name_loses_nothing(kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path):
    assert moved(tmp_path, shim.url.replace("127.0.0.1", "localhost")).left == ()
    assert owners(shim) == {"default": 2, "others": 1}


def test_nothing_is_deleted_before_all_has_arrived(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> Any:
        raise EmbedderDown("the model does not answer")

    kb.store.cache.trim(0)  # so that they have to be embedded again
    with monkeypatch.context() as patched:
        patched.setattr("concord.embed.hashing.HashingEmbedder.embed_documents", fail)
        with opened(tmp_path) as inside:
            done = inside.migrate_vectors()
    assert done.embedding.pending == 2
    assert "yet to be made" in done.left[0].why
    assert owners(shim) == {"default": 2, "others": 1}
    assert (moved(tmp_path, shim.url).left, moved(tmp_path).left) == ((), ())


def test_a_key_goes_to_no_server_but_the_one_that_the_settings_name(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path
):
    home = kb.store.outbox.home()
    for named, key in (("", "k"), ("http://elsewhere:6333", None)):
        shim.keys.clear()
        with opened(tmp_path, named, **{"vectors.api_key": "k"}) as other:
            other.parts.clear_vectors(home)
        assert set(shim.keys) == {key}


@pytest.mark.parametrize("vectors", ["", "http://127.0.0.1:1"])
def test_vectors_that_are_kept_elsewhere_than_the_settings_say_are_found_by_the_doctor(
    kb: KnowledgeBase, shim: QdrantShim, tmp_path: Path, vectors: str
):
    assert kb.doctor().findings == ()
    with opened(tmp_path, vectors) as elsewhere:
        said = [finding for finding in elsewhere.doctor().findings if finding.fault == "vectors"]
        assert [f"are kept in {shim.url}/{OLD}" in finding.message for finding in said] == [True]
        assert "vectors.url" in said[0].hint
        assert elsewhere.stats().index is None


def test_a_source_that_cannot_be_removed_now_is_removed_later(
    kb: KnowledgeBase, shim: QdrantShim, run: Callable[..., str]
):
    shim.status = 503
    with pytest.raises(BackendDown, match="503") as refusal:
        kb.remove("notes", force=True)
    assert refusal.value.hint == "nothing was removed: try again when it answers"
    shim.status = None
    assert kb.remove("notes", force=True).vectors_deleted == 2


def test_the_command_tells_of_what_is_left_and_what_to_do(
    kb: KnowledgeBase,
    shim: QdrantShim,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    here = ["--store", f"sqlite://{tmp_path}/store"]
    monkeypatch.setenv("KB_VECTORS_URL", shim.url)
    assert main([*here, "migrate", "--to", f"sqlite://{tmp_path}/copy"]) == 0
    said = capsys.readouterr().err
    assert "the old store's vectors stay where they are" in said
    assert "KB_VECTORS_URL=http" not in said
    assert owners(shim)["default"] == 2  # the old store is only read
    monkeypatch.setenv("KB_VECTORS_URL", "")
    key = kb.store.outbox.home().key
    shim.status = 503
    assert main([*here, "migrate"]) == 0
    said = capsys.readouterr().err
    assert f"what was sent to {shim.url}/{OLD} is still there" in said
    assert f"whose `store` is {key}" in said
