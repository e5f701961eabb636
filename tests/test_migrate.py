"""Moving a knowledge base to another store: everything arrives, once, whatever happens on the way."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase, Note
from concord.cli.main import main
from concord.core.config import load_settings
from concord.core.errors import BadValue, StoreError
from concord.files.state import Memo, read_memo, write_memo
from concord.ops.migrate import migrate, verified
from concord.parts import Parts
from concord.store.contract import Store, documents_at
from concord.types import Access, Feedback, Filter
from contract.stored import IDENTITY, active_model, document, keyed, put, unit, vectors_of
from support.engines import wait_until
from support.kb_process import environment, finish, start
from support.postgres_server import fresh_org, server_url
from support.recorders import write
from support.small_library import secluded

STORES: dict[str, dict[str, str]] = {
    "sqlite": {"store.url": "sqlite://{folder}"},
    "json": {"store.url": "json://{folder}"},
    "postgresql": {"store.url": "{server}"},
    "sqlite+qdrant": {"store.url": "sqlite://{folder}", "vectors.url": "qdrant-local:{folder}/vectors"},
}
TARGETS = [kind for kind in STORES if "qdrant" not in kind]  # vectors go to another server afterwards
MEMO = Memo(textless={"a.png": [1, 2, "a picture"]})


def opened(kind: str, folder: Path) -> Store:
    if "qdrant" in kind:
        pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
    url = server_url() if kind == "postgresql" else ""
    given = {key: value.format(folder=folder, server=url) for key, value in STORES[kind].items()}
    return Parts(load_settings(given, {"KB_HOME": str(folder)}), fresh_org()).store


@pytest.fixture
def pair(folder: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores: what is copied, and where to."""
    here, there = opened("sqlite", folder / "here"), opened("sqlite", folder / "there")
    yield here, there
    for store in (here, there):
        store.close()


def silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""


def moved(origin: Store, target: Store, progress: Callable[..., None] = silent) -> Any:
    return migrate(origin, target, progress, lock_wait_s=10)


def fill(store: Store, documents: int = 150) -> None:
    """Store a bit of everything: tags, details, supersession, a memo, pending chunks, a cache."""
    store.models.add(IDENTITY, {})
    for n in range(documents):
        fields = {"title": f"Page {n}", "tags": ("even",) if n % 2 == 0 else (), "details": {"n": [n, "ü"]}}
        times = {"mtime_ns": n * 10**9 + 7, "indexed_at": 1.5 + n, "size": n, "file_hash": f"{n:x}"}
        ids = put(store, f"docs/{n:03}.md", f"text {n} äöü", f"more of {n}", **fields, **times)
        if n % 3:  # the others wait for an embedder
            vectors_of(store).put(keyed([(chunk_id, unit(1, n, at, 1)) for at, chunk_id in enumerate(ids)]))
        store.models.index(IDENTITY).remember({bytes([n]) * 32: unit(n + 1, 1, 0, 0)})
    store.catalog.update_documents(
        [replace(document("docs/001.md", title="Old"), superseded_by="docs/002.md")]
    )
    store.models.index(replace(IDENTITY, model="older")).remember({b"k" * 32: unit(1, 2, 3, 4)})
    store.catalog.put_sync_state("docs", write_memo(MEMO))
    store.journal.record_access(["docs/001.md", "docs/002.md"], 5.0)
    store.journal.record_access(["docs/002.md"], 7.5)
    store.journal.record_feedback(Feedback("docs/002.md", "docs/002.md:1", "good", "a query", 9.0))


@pytest.mark.promise("D.migrate.everything")
@pytest.mark.parametrize(
    ("origin", "target"),
    [*(("sqlite", kind) for kind in TARGETS), *((kind, "sqlite") for kind in list(STORES)[1:])],
)
def test_everything_arrives_and_is_found_as_before(folder: Path, origin: str, target: str):
    here, there = opened(origin, folder / "here"), opened(target, folder / "there")
    fill(here)
    before = here.catalog.snapshot().generation
    done = moved(here, there)
    assert done.counts == here.catalog.count() == there.catalog.count()
    assert done.copied == 150
    assert done.cached >= 151  # where chunks and the cache share their vectors, those are in it, too
    assert read_memo(there.catalog.sync_state("docs")) == MEMO
    assert there.journal.accesses(["docs/002.md"]) == {"docs/002.md": Access(2, 7.5)}
    assert [judgement.opinion for judgement in there.journal.feedback()] == ["good"]
    assert active_model(there) == IDENTITY
    older = replace(IDENTITY, model="older")
    assert there.models.index(older).cached([b"k" * 32]) == {b"k" * 32: unit(1, 2, 3, 4)}
    for filter in (Filter(), Filter(tags=("even",)), Filter(include_superseded=True)):
        assert texts(there, filter) == texts(here, filter)
    assert here.catalog.snapshot().generation == before
    for store in (here, there):
        store.close()


def texts(store: Store, filter: Filter) -> list[tuple[str, float]]:
    found = vectors_of(store).search(unit(1, 20, 1, 1), filter, 30)
    read = store.catalog.read([each.chunk_id for each in found])
    return sorted((read[each.chunk_id][0].text, round(each.score, 5)) for each in found)


class Killed(BaseException):
    """As a kill: nothing may catch it."""


@pytest.mark.promise("D.migrate.resumable")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stage", ["copy", "moving"])
def test_a_run_that_is_stopped_leaves_nothing_and_can_be_repeated(folder: Path, target: str, stage: str):
    here, there = opened("sqlite", folder / "here"), opened(target, folder / "there")
    fill(here, 20)

    def stop(at: str, done: int, total: int | None) -> None:
        if at == stage:
            raise Killed

    with pytest.raises(Killed):
        moved(here, there, stop)
    assert there.catalog.snapshot().sources == []
    assert moved(here, there).copied == 20
    for store in (here, there):
        store.close()


@pytest.mark.promise("D.migrate.resumable")
def test_a_process_that_is_killed_leaves_nothing_and_the_next_does_the_whole(folder: Path):
    env = environment(folder / "home")
    for n in range(300):
        write(folder / "docs" / f"{n}.md", f"# Page {n}\n\nWhat there is to say about number {n}.\n")
    assert finish(start("add", folder / "docs", env=env))[0] == 0
    target = folder / "there" / "default.db"
    killed = start("migrate", "--to", f"sqlite://{target.parent}", env=env)
    assert wait_until(target.exists)
    killed.kill()
    finish(killed)
    assert killed.returncode == -signal.SIGKILL
    left = json.loads(finish(start("--store", f"sqlite://{target.parent}", "stats", "--json", env=env))[1])
    assert left["documents"] == 0
    status, out, err = finish(start("migrate", "--to", f"sqlite://{target.parent}", "--json", env=env))
    assert status == 0, err
    said = json.loads(out)
    assert (said["documents"], said["vectors"]) == (300, 300)
    assert len(said["checksum"]) == 64


@pytest.mark.promise("D.migrate.verified")
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_kept_of_a_copy_while_which_something_changes(folder: Path, target: str):
    here, there = opened("sqlite", folder / "here"), opened(target, folder / "there")
    fill(here, 9)

    def delete_one(stage: str, done: int, total: int | None) -> None:
        if stage == "copy":
            here.catalog.delete_documents(["docs/007.md"])

    with pytest.raises(StoreError, match="something changed") as refusal:
        moved(here, there, delete_one)
    assert "again" in (refusal.value.hint or "")
    assert there.catalog.snapshot().sources == []
    assert moved(here, there).counts == here.catalog.count()
    for store in (here, there):
        store.close()


@pytest.mark.promise("D.migrate.refuses")
def test_a_target_with_something_else_in_it_is_refused_and_left_alone(pair: tuple[Store, Store]):
    here, there = pair
    fill(here, 3)
    put(there, "wiki/a.md", "mine")
    with pytest.raises(BadValue, match="of its own"):
        moved(here, there)
    assert there.catalog.count().documents == 1
    there.catalog.remove_source("wiki")
    there.journal.record_feedback(Feedback("docs/003.md", "docs/003.md:1", "bad", "another query", 9.0))
    with pytest.raises(BadValue, match="of its own"):
        moved(here, there)
    assert there.catalog.snapshot().sources == []


def spoil_text(there: Store) -> None:
    put(there, "docs/002.md", "another text", "more of 2", title="Page 2")


def spoil_vector(there: Store) -> None:
    (known,) = documents_at(there.catalog, "docs/002.md")
    vectors_of(there).put(keyed([(there.catalog.chunks(known.id)[0].id, unit(0, 0, 0, 1))]))


def spoil_source(there: Store) -> None:
    (known,) = there.catalog.snapshot().sources
    there.catalog.put_source(replace(known, tags=("other",)))


@pytest.mark.promise("D.migrate.verified")
@pytest.mark.parametrize("spoil", [spoil_text, spoil_vector, spoil_source])
def test_a_copy_that_differs_is_not_called_a_copy(folder: Path, spoil: Callable[[Store], None]):
    here, there = opened("sqlite", folder / "here"), opened("sqlite", folder / "there")
    fill(here, 5)
    checksum = moved(here, there).checksum
    assert verified(here, there, silent) == checksum
    spoil(there)
    with pytest.raises(StoreError) as fault:
        verified(here, there, silent)
    assert fault.value.hint
    for store in (here, there):
        store.close()


@pytest.fixture
def kb(folder: Path) -> Iterator[KnowledgeBase]:
    with secluded(folder, f"sqlite://{folder}/here") as made:
        made.note(Note("The pump is tested on Mondays.", title="Pump"))
        yield made


@pytest.mark.parametrize("spelt", ["here/default.db", "there/../here", "link"])
def test_a_store_is_not_copied_onto_itself_however_it_is_spelt(kb: KnowledgeBase, folder: Path, spelt: str):
    (folder / "there").mkdir()
    (folder / "link").symlink_to(folder / "here")
    with pytest.raises(BadValue, match="this store itself"):
        kb.migrate(f"sqlite://{folder}/{spelt}")


def test_vectors_move_out_and_back_in_without_being_embedded_again(kb: KnowledgeBase, folder: Path):
    pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
    for url in (f"qdrant-local:{folder}/vectors", ""):
        given = kb.settings.replaced(vectors__url=url)
        with KnowledgeBase(given) as elsewhere:
            answer = elsewhere.search("pump")
            assert [named.strategy for named in answer.degraded] == ["semantic"]
            assert "are kept in" in answer.degraded[0].reason
            done = elsewhere.migrate_vectors().embedding
            assert (done.embedded, done.reused, done.pending) == (0, 1, 0)
        with KnowledgeBase(given) as again:
            assert not again.search("pump").degraded


def test_the_command_says_what_it_did_and_what_to_do_next(
    kb: KnowledgeBase, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    monkeypatch.setenv("KB_HOME", str(folder))
    assert main(["--store", f"sqlite://{folder}/here", "migrate", "--to", f"json://{folder}/there"]) == 0
    said = capsys.readouterr()
    assert re.search(r"^vectors +1$", said.out, re.MULTILINE)
    assert f"KB_STORE_URL=json://{folder}/there" in said.err
    assert main(["--store", f"json://{folder}/there", "search", "pump", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["title"] == "Pump"


def test_vectors_that_are_where_they_are_to_be_are_not_moved_and_nothing_is_embedded(
    kb: KnowledgeBase, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    monkeypatch.setenv("KB_HOME", str(folder))
    here = ["--store", f"sqlite://{folder}/here"]
    assert main([*here, "note", "Not embedded yet.", "--no-embed"]) == 0
    assert main([*here, "migrate"]) == 2
    said = capsys.readouterr().err
    assert "nothing to move" in said
    assert "--to URL" in said
    assert main([*here, "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pending"] == 1
