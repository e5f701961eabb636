"""Another model's vectors are built beside the old, tried, used, gone back from; no query mixes the two."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from concord.cli.main import main
from concord.core import plugins
from concord.core.errors import BadValue, NotFound
from concord.embed.hashing import HashingEmbedder
from concord.knowledge import KnowledgeBase
from concord.types import silent
from support import mcp_session
from support.embedding_server import serving
from support.engines import our_variables
from support.kb_process import BOUND_S, assert_sound, environment
from support.other_embedders import TABLE, Turned
from support.recorders import write
from support.small_library import opened

ANIMALS = ("otter", "heron", "badger", "lynx", "marten", "stoat", "plover", "newt", "adder", "shrew")
HASHING = HashingEmbedder.identity


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, target in TABLE.items():
        monkeypatch.setitem(plugins.TABLES["embedders"], name, target)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for n, animal in enumerate(ANIMALS * 3):
        text = f"The {animal} number {n} sleeps under root{n} until the river{n} rises again."
        write(tmp_path / "docs" / f"{animal}{n}.md", f"# {animal.title()} {n}\n\n{text}\n")
    return tmp_path / "docs"


@pytest.fixture
def kb(tmp_path: Path, docs: Path) -> Iterator[KnowledgeBase]:
    with opened(tmp_path) as made:
        made.add(docs)
        yield made


def nearest(kb: KnowledgeBase, text: str) -> str:
    """Return the title of what meaning alone finds; a query that met the wrong vectors finds the farthest."""
    answer = kb.search(text, mode="semantic")
    assert answer.degraded == ()
    return answer.hits[0].document.title


def states(kb: KnowledgeBase) -> dict[str, tuple[int, int, bool]]:
    return {s.model.identity.model: (s.vectors, s.pending, s.model.is_active) for s in kb.models.list()}


@pytest.mark.promise("E.models.beside")
def test_a_new_models_vectors_are_built_beside_the_old_and_searches_go_on(kb: KnowledgeBase):
    built = kb.models.add("turned", "", "", silent)
    assert (built.identity, built.is_active, built.embedding.embedded) == (Turned.identity, False, 30)
    assert states(kb) == {"hashing-256": (30, 0, True), "turned": (30, 0, False)}
    assert nearest(kb, "otter number 0 under root0") == "Otter 0"
    assert kb.stats().identity == HASHING


@pytest.mark.promise("E.models.switch")
def test_a_model_is_used_at_once_and_so_is_the_one_before(kb: KnowledgeBase):
    kb.models.add("turned", "", "", silent)
    switch = kb.models.use("turned", progress=silent)
    assert (switch.outcome, switch.identity, switch.before) == ("switched", Turned.identity, HASHING)
    assert nearest(kb, "heron number 1 under root1") == "Heron 1"
    assert kb.models.use("hashing-256", progress=silent).outcome == "switched"
    assert nearest(kb, "heron number 1 under root1") == "Heron 1"
    assert kb.models.use("hashing-256", progress=silent).outcome == "already"


@pytest.mark.promise("E.models.complete")
def test_what_is_stored_after_a_model_was_added_has_its_vector_before_the_model_is_used(
    kb: KnowledgeBase, docs: Path
):
    kb.models.add("turned", "", "", silent)
    write(docs / "quince.md", "# Quince\n\nA quince is a fruit that is cooked before it is eaten.\n")
    (docs / "otter0.md").unlink()
    kb.sync()
    assert states(kb) == {"hashing-256": (30, 0, True), "turned": (29, 1, False)}
    switch = kb.models.use("turned", progress=silent)
    assert (switch.outcome, switch.embedding.embedded) == ("switched", 1)
    assert states(kb)["turned"] == (30, 0, True)
    assert nearest(kb, "a quince is a fruit that is cooked") == "Quince"
    write(docs / "plum.md", "# Plum\n\nA plum is dried in the sun.\n")
    kb.sync()
    assert nearest(kb, "a plum is dried in the sun") == "Plum"


def test_removing_deletes_a_models_vectors_but_never_those_in_use(kb: KnowledgeBase):
    kb.models.add("turned", "", "", silent)
    with pytest.raises(BadValue, match="cannot be removed"):
        kb.models.remove("hashing-256")
    assert kb.models.remove("turned") == (Turned.identity, 30)
    assert states(kb) == {"hashing-256": (30, 0, True)}
    with pytest.raises(NotFound):
        kb.models.use("turned", progress=silent)


KILLED = """
import os, signal, sys
from concord.core import plugins
from concord.knowledge import KnowledgeBase
from support.other_embedders import TABLE, Turned

plugins.TABLES["embedders"].update(TABLE)
calls = 0
embed = Turned.embed_documents

def dying(self, texts):
    global calls
    calls += 1
    if calls > int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return embed(self, texts)

Turned.embed_documents = dying
with KnowledgeBase.open(store__url=sys.argv[1], embed__provider="hashing") as kb:
    kb.models.add("turned", "", "", lambda *news: None)
"""


@pytest.mark.promise("E.models.resumable")
def test_building_goes_on_where_it_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for n in range(200):
        write(tmp_path / "docs" / f"{n}.md", f"# Page {n}\n\nWords{n} about thing{n}.\n")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
    url = f"sqlite://{tmp_path}/store"
    env = environment(tmp_path / "home")
    killed = subprocess.run([sys.executable, "-c", KILLED, url, "2"], env=env, timeout=BOUND_S, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert_sound(tmp_path / "store" / "default.db")
    with opened(tmp_path) as kb:
        assert states(kb) == {"hashing-256": (200, 0, True), "turned": (128, 72, False)}
        assert nearest(kb, "words7 about thing7") == "Page 7"
        built = kb.models.add("turned", "", "", silent)
        assert (built.embedding.embedded, built.embedding.reused) == (72, 0)
        assert kb.models.use("turned", progress=silent).outcome == "switched"


SEARCHES = """
import sys, time
from concord.core import plugins
from concord.knowledge import KnowledgeBase
from contract.stored import active_model
from support.other_embedders import TABLE

plugins.TABLES["embedders"].update(TABLE)
with KnowledgeBase.open(store__url=sys.argv[1], embed__provider="hashing") as kb:
    print("ready", flush=True)
    asked = wrong = 0
    models = set()
    while not sys.stdin.closed and asked < 100_000:
        n = asked % 30
        text = f"number {n} sleeps under root{n} until the river{n}"
        answer = kb.search(text, mode="semantic", deadline_ms=60_000)
        asked += 1
        wrong += bool(answer.degraded) or not answer.hits[0].document.title.endswith(f" {n}")
        models.add(kb.store.catalog.snapshot().active.identity.model)
        if asked % 10 == 0:
            print(asked, wrong, *sorted(models), flush=True)
"""


@pytest.mark.promise("E.models.never-mixed", "E.models.switch")
def test_no_query_fails_or_meets_the_wrong_vectors_while_models_are_built_switched_and_removed(
    kb: KnowledgeBase, tmp_path: Path
):
    """In another process, which asks all the time; the two models call each other's nearest the farthest."""
    with subprocess.Popen(
        [sys.executable, "-c", SEARCHES, f"sqlite://{tmp_path}/store"],
        env=environment(tmp_path / "home"),
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as searcher:
        assert searcher.stdout is not None
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.extend(searcher.stdout or ()), daemon=True)
        reading.start()

        def tells_on() -> None:
            seen = len(lines)
            wait_for(lambda: len(lines) > seen + 1 or searcher.poll() is not None)
            assert searcher.poll() is None

        tells_on()
        for _ in range(4):
            kb.models.add("turned", "", "", silent)
            for name in ("turned", "hashing-256", "turned"):
                kb.models.use(name, progress=silent)
                tells_on()
            kb.models.use("hashing-256", progress=silent)
            tells_on()
            kb.models.remove("turned")
        searcher.kill()
        reading.join(BOUND_S)
    asked, wrong, *models = lines[-1].split()
    assert int(asked) > 100
    assert int(wrong) == 0
    assert models == ["hashing-256", "turned"]


def wait_for(happened: Any) -> None:
    ends = time.monotonic() + BOUND_S
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.01)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, Any, str]:
    status = main([*args, "--json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in our_variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    return tmp_path


@pytest.mark.promise("E.models.commands")
def test_the_commands_list_add_use_and_remove(home: Path, docs: Path, capsys: pytest.CaptureFixture[str]):
    assert run(capsys, "models")[1] == {"models": []}
    main(["add", str(docs)])
    capsys.readouterr()
    status, built, _ = run(capsys, "models", "add", "turned")
    assert (status, built["name"], built["embedded"], built["active"]) == (0, "hashing/turned", 30, False)
    _, listed, _ = run(capsys, "models", "list")
    assert [(m["name"], m["active"], m["vectors"]) for m in listed["models"]] == [
        ("hashing/hashing-256", True, 30),
        ("hashing/turned", False, 30),
    ]
    status, switched, _ = run(capsys, "models", "use", "turned")
    assert (status, switched["outcome"], switched["before"]) == (0, "switched", "hashing/hashing-256")
    status, removed, _ = run(capsys, "models", "remove", "1")
    assert (status, removed) == (0, {"name": "hashing/hashing-256", "vectors_deleted": 30})


@pytest.mark.promise("E.models.switch")
def test_a_running_mcp_server_goes_on_with_the_model_that_was_switched_to_elsewhere(
    tmp_path: Path, docs: Path
):
    with (
        serving() as server,
        opened(f"sqlite://{tmp_path}/home/data") as kb,
    ):
        kb.add(docs)
        kb.models.add("ollama", "granite", server.url, silent)

        async def scene() -> None:
            async with mcp_session.in_process(tmp_path / "home") as client:
                await by_meaning(client)
                before = len(server.behaviour.requests)
                kb.models.use("granite", force=True, progress=silent)
                first = await mcp_session.call(client, "kb_search", query="heron number 1")
                assert first["results"][0]["title"] == "Heron 1"
                await by_meaning(client)
                assert len(server.behaviour.requests) > before

        mcp_session.run(scene)


async def by_meaning(client: Client) -> None:
    """Search until meaning has its vote: a model that is cold is loaded in the background."""
    while True:
        found = await mcp_session.call(client, "kb_search", query="heron number 1 under root1")
        assert found["results"][0]["title"] == "Heron 1"
        if "semantic" in found["strategies_matched"]:
            return
        await anyio.sleep(0.02)
