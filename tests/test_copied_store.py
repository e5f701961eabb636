"""Copies of a store with vectors in Qdrant: what lies there is the original's, and they send their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from concord import KnowledgeBase, Note
from concord.store.contract import Store
from contract.stored import vectors_of
from support.recorders import write
from support.small_library import secluded

pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
pytest.importorskip("qdrant_edge", reason="pip install qdrant-edge-py")

from support.qdrant_shim import QdrantShim

COLLECTION = "conduit_kb"


def filled(folder: Path, url: str, vectors: str) -> KnowledgeBase:
    """A knowledge base of three files, with its vectors in Qdrant."""
    for n in range(3):
        write(folder / "docs" / f"{n}.md", f"# Page {n}\n\nThe heron number {n} waits.\n")
    made = secluded(folder, url, vectors__url=vectors)
    made.add(folder / "docs")
    return made


def keys(shim: QdrantShim, collection: str = COLLECTION) -> dict[str, int]:
    """How many points there are under each key."""
    import qdrant_edge as edge

    found: dict[str, int] = {}
    request = edge.ScrollRequest(limit=1000, with_payload=True, with_vector=False)
    for record in shim.shards[collection][0].scroll(request)[0]:
        key = str((record.payload or {})["store"])
        found[key] = found.get(key, 0) + 1
    return found


def fetched(store: Store) -> int:
    """How many chunks have a vector that can be fetched."""
    every = [
        chunk.id for document in store.catalog.documents() for chunk in store.catalog.chunks(document.id)
    ]
    return len(vectors_of(store).fetch(every))


def backed_up(folder: Path, original: KnowledgeBase) -> str:
    original.backup(folder / "copy.db")
    return f"sqlite://{folder}/copy.db"


@pytest.fixture
def pair(shim: QdrantShim, tmp_path: Path) -> tuple[str, str]:
    """The URLs of a knowledge base and of a copy of it."""
    url = f"sqlite://{tmp_path}/store"
    with filled(tmp_path, url, shim.url) as made:
        made.search("heron")
        return url, backed_up(tmp_path, made)


def test_a_copy_sends_its_own_and_what_it_removes_is_its_own(
    pair: tuple[str, str], shim: QdrantShim, tmp_path: Path
):
    original, copy = pair
    ((key, sent),) = keys(shim).items()
    assert sent == 3
    with secluded(tmp_path, copy, vectors__url=shim.url) as clone:
        assert clone.search("heron waits").hits
        assert clone.stats().pending == 3
        (said,) = clone.search("heron waits", mode="semantic").degraded
        assert "3 of 3 passages have no vector yet" in said.reason
        clone.sync()
        assert clone.search("heron waits", mode="semantic").degraded == ()
        assert (fetched(clone.store), clone.stats().pending) == (3, 0)
        assert sorted(keys(shim).values()) == [3, 3]
        clone.remove("docs")
        assert keys(shim) == {key: 3}
    with secluded(tmp_path, original, vectors__url=shim.url) as first:
        assert first.doctor().findings == ()
        assert first.search("heron waits", mode="semantic").degraded == ()
        assert first.store.outbox.home().key == key
        assert fetched(first.store) == 3


def test_a_copy_whose_vectors_move_elsewhere_leaves_the_originals(
    pair: tuple[str, str], shim: QdrantShim, tmp_path: Path
):
    before = keys(shim)
    with secluded(tmp_path, pair[1], vectors__url=shim.url, vectors__collection="other_kb") as clone:
        assert clone.migrate_vectors().left == ()
        assert clone.search("heron waits", mode="semantic").degraded == ()
    assert keys(shim) == before
    assert [*keys(shim, "other_kb").values()] == [3]


def put_back(copy: Path, folder: Path) -> None:
    """Restore a backup as docs/moving.md says."""
    for file in (folder / "store").glob("default.db*"):
        file.unlink()
    shutil.copy(copy, folder / "store" / "default.db")


def a_day_later(folder: Path, kb: KnowledgeBase) -> None:
    """Delete a file, and add one about something else."""
    (folder / "docs" / "1.md").unlink()
    write(folder / "docs" / "new.md", "# Zebra\n\nThe zebra grazes.\n")
    kb.sync()


def test_a_backup_that_was_put_back_has_all_its_vectors_after_a_sync_and_none_of_a_lost_future(
    shim: QdrantShim, tmp_path: Path
):
    url = f"sqlite://{tmp_path}/store"
    with filled(tmp_path, url, shim.url) as kb:
        backed_up(tmp_path, kb)
        a_day_later(tmp_path, kb)
    put_back(tmp_path / "copy.db", tmp_path)
    write(tmp_path / "docs" / "1.md", "# Page 1\n\nThe heron number 1 waits.\n")
    (tmp_path / "docs" / "new.md").unlink()
    with secluded(tmp_path, url, vectors__url=shim.url) as kb:
        assert kb.stats().pending == 3
        assert [
            finding.fault for finding in kb.doctor().findings if finding.fault not in ("disk", "memory")
        ] == ["embedding"]
        kb.sync()
        kb.note(Note("Bananas are yellow."), embed=False)  # under the number that the zebra had
        found = kb.search("The zebra grazes.", mode="semantic").hits
        assert sorted(hit.document.path for hit in found) == ["docs/0.md", "docs/1.md", "docs/2.md"]
        assert (fetched(kb.store), kb.stats().pending) == (3, 1)


def test_an_older_state_that_came_back_unnoticed_is_found_by_the_doctor_and_mended(
    shim: QdrantShim, tmp_path: Path
):
    url, file = f"sqlite://{tmp_path}/store", tmp_path / "store" / "default.db"
    filled(tmp_path, url, shim.url).close()
    shutil.copyfile(file, tmp_path / "yesterday")
    with secluded(tmp_path, url, vectors__url=shim.url) as kb:
        a_day_later(tmp_path, kb)
    shutil.copyfile(tmp_path / "yesterday", file)  # as a disk that is set back: still the same file
    write(tmp_path / "docs" / "1.md", "# Page 1\n\nThe heron number 1 waits.\n")
    (tmp_path / "docs" / "new.md").unlink()
    with secluded(tmp_path, url, vectors__url=shim.url) as kb:
        (said,) = kb.search("heron number 1 waits").degraded
        assert "doctor" in said.reason
        (lost,) = (finding for finding in kb.doctor().findings if finding.fault == "outside")
        assert "holds 2 vectors of the 3" in lost.message
        assert "migrate" in lost.hint
        kb.migrate_vectors()
        assert kb.search("heron number 1 waits").degraded == ()
        assert [finding for finding in kb.doctor().findings if finding.fault == "outside"] == []
    assert [*keys(shim).values()] == [3]
