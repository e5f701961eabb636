"""Long work and cold models: calls stay short, progress is told, cancelling stops, words answer meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from concord import KnowledgeBase
from concord.core import plugins
from concord.core.config import load_settings
from concord.core.protocols import Progress
from concord.mcp.jobs import Cancelled
from concord.mcp.packing import Reply
from concord.mcp.table import TOOLS, Row
from concord.text.json_safe import JsonObject
from support.gated_embedder import GatedEmbedder
from support.mcp_session import BOUND_S, ERAS, call, in_process, refusal, run, said, write_docs


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> type[GatedEmbedder]:
    """The gated embedder by its name, with all gates open."""
    monkeypatch.setitem(plugins.TABLES["embedders"], "gated", "support.gated_embedder:GatedEmbedder")
    GatedEmbedder.close_gates()
    return GatedEmbedder


async def reached(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, BOUND_S)


@pytest.mark.promise("mcp.startup.cold", "003.cold.fts-only", "003.coldstart.warm-up")
@pytest.mark.parametrize("era", ERAS)
def test_words_answer_at_once_while_the_model_loads_and_meaning_joins_when_it_has(
    tmp_path: Path, gated: type[GatedEmbedder], era: str
):
    async def scene() -> None:
        async with in_process(tmp_path / "home", era, embed__provider="gated") as client:
            await call(client, "kb_add_source", path=str(write_docs(tmp_path / "docs")))
        gated.close_gates(loading=True)
        async with in_process(tmp_path / "home", era, embed__provider="gated") as client:
            result = await client.call_tool("kb_search", {"query": "session token"})
            cold = result.structured_content or {}
            assert cold["results"][0]["path"] == "docs/auth.md"
            assert cold["confidence"] == "fts_only"
            assert [part["strategy"] for part in cold["degraded"]] == ["semantic"]
            assert "still loading" in said(result)
            refused = await refusal(client, "kb_search", query="session token", mode="semantic")
            assert "still loading; ask again" in refused
            assert "(mode auto)" in refused
            await reached(gated.loading.reached)
            gated.loading.open.set()
            while (await call(client, "kb_search", query="session token"))["degraded"]:
                await anyio.lowlevel.checkpoint()
            warm = await call(client, "kb_search", query="session token")
            assert "semantic" in warm["strategies_matched"]
            assert warm["confidence"] != "fts_only"

    run(scene)


@pytest.mark.promise("mcp.startup.no-model")
def test_a_client_is_greeted_before_any_model_is_loaded(tmp_path: Path, gated: type[GatedEmbedder]):
    gated.close_gates(loading=True, working=True)

    async def scene() -> None:
        async with in_process(tmp_path / "home", embed__provider="gated") as client:
            assert client.server_info
            assert client.server_info.name == "concord"
            assert "data" in (client.instructions or "")
        assert not gated.loading.reached.is_set()

    run(scene)


@pytest.mark.promise("mcp.progress")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("tool", ["kb_add_source", "kb_sync"])
def test_indexing_tells_how_far_it_is_and_the_numbers_grow(
    tmp_path: Path, gated: type[GatedEmbedder], era: str, tool: str
):
    docs = write_docs(tmp_path / "docs", 20)
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        gated.working.open.set()

    async def scene() -> None:
        async with in_process(tmp_path / "home", era, embed__provider="gated") as client:
            arguments: dict[str, Any] = {"path": str(docs)}
            if tool == "kb_sync":
                await call(client, "kb_add_source", **arguments)
                (docs / "auth.md").write_text("# New\n\nSomething new to embed.\n", encoding="utf-8")
                arguments = {}
            gated.close_gates(working=True)
            result = await client.call_tool(tool, arguments, progress_callback=note)
            assert not result.is_error
        numbers = [number for number, _ in told]
        assert numbers
        assert numbers == sorted(set(numbers))
        # What is told is how far it was whenever somebody looked: on a busy machine, seldom.
        assert {str(message).partition(":")[0] for _, message in told} & {"index", "links", "embed"}

    run(scene)


def test_a_call_that_takes_too_long_leaves_the_work_running_and_the_next_one_joins_it(
    tmp_path: Path, gated: type[GatedEmbedder]
):
    docs = write_docs(tmp_path / "docs")
    gated.close_gates(working=True)

    async def scene() -> None:
        async with in_process(
            tmp_path / "home", limits_s={"kb_add_source": 0.2}, embed__provider="gated"
        ) as client:
            started = await call(client, "kb_add_source", path=str(docs))
            assert started["state"] == "running"
            assert "goes on in the background" in started["note"]
            await reached(gated.working.reached)
            running = await call(client, "kb_stats")
            assert [job["label"] for job in running["jobs"]] == [str(docs)]
            assert (await call(client, "kb_search", query="session token"))["returned"] >= 1
            gated.working.open.set()
            while (ended := await call(client, "kb_add_source", path=str(docs)))["state"] == "running":
                await anyio.lowlevel.checkpoint()
            assert ended["generation"] > 0
            assert (await call(client, "kb_stats"))["pending"] == 0

    run(scene)


@pytest.mark.promise("mcp.cancel")
@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_stops_indexing_and_loses_nothing_that_was_done(
    tmp_path: Path, gated: type[GatedEmbedder], era: str
):
    docs = write_docs(tmp_path / "docs")
    gated.close_gates(working=True)

    async def scene() -> None:
        async with in_process(tmp_path / "home", era, embed__provider="gated") as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "kb_add_source", {"path": str(docs)})
                await reached(gated.working.reached)
                tasks.cancel_scope.cancel()
            gated.working.open.set()
            while (await call(client, "kb_stats"))["jobs"]:
                await anyio.lowlevel.checkpoint()
            state = await call(client, "kb_stats")
            assert state["documents"] == 3
            assert (await call(client, "kb_search", query="session token", mode="fts5"))["returned"] == 1
            finished = await call(client, "kb_sync")
            assert (finished["pending"], finished["failed_total"]) == (0, 0)

    run(scene)


@contextmanager
def synced_elsewhere(home: Path, name: str) -> Iterator[None]:
    """Hold a source as another process does that syncs it."""
    with KnowledgeBase(load_settings({}, {"KB_HOME": str(home)})) as other:
        source = other.source(name).source
        with other.store.lock(source.id, "syncing this source", wait_s=0):
            yield


def test_a_source_that_is_being_synced_is_said_to_be_removed_later_and_then_is(tmp_path: Path):
    home = tmp_path / "home"

    async def scene() -> None:
        async with in_process(home, limits_s={"kb_remove_source": 0.5}) as client:
            await call(client, "kb_add_source", path=str(write_docs(tmp_path / "docs")))
            with synced_elsewhere(home, "docs"):
                started = await call(client, "kb_remove_source", source="docs")
                assert started["state"] == "running"
                assert "removing docs goes on in the background" in started["note"]
                again = await call(client, "kb_remove_source", source="docs")
                assert again["state"] == "running"
                assert len((await call(client, "kb_stats"))["jobs"]) == 1
            while (await call(client, "kb_list"))["sources"]:
                await anyio.lowlevel.checkpoint()

    run(scene)


def test_a_source_that_is_removed_is_no_longer_indexed_and_whoever_waits_is_told_why(
    tmp_path: Path, gated: type[GatedEmbedder]
):
    docs = write_docs(tmp_path / "docs")
    gated.close_gates(working=True)
    told: list[str] = []

    async def scene() -> None:
        async with in_process(tmp_path / "home", embed__provider="gated") as client:

            async def add() -> None:
                told.append(await refusal(client, "kb_add_source", path=str(docs)))

            async def remove() -> None:
                told.append((await call(client, "kb_remove_source", source="docs"))["state"])

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(add)
                await reached(gated.working.reached)
                tasks.start_soon(remove)
                while len((await call(client, "kb_stats"))["jobs"]) < 2:
                    await anyio.lowlevel.checkpoint()
                gated.working.open.set()
            assert (await call(client, "kb_list"))["sources"] == []
        assert "done" in told
        assert any("was stopped: its source is being removed" in sentence for sentence in told)

    run(scene)


@pytest.mark.parametrize(
    ("tool", "hint"),
    [
        ("kb_sync", "nothing that was stored is lost; kb_sync goes on from there"),
        ("kb_remove_source", "nothing was removed; again: kb_remove_source"),
    ],
)
def test_what_the_end_of_the_server_stops_is_told_with_what_goes_on_with_it(
    tmp_path: Path, tool: str, hint: str
):
    def ends(progress: Progress) -> JsonObject:
        raise Cancelled

    def stopped(row: Row) -> Row:
        plan = row.long
        return row._replace(long=lambda *given: plan(*given)._replace(work=ends)) if plan else row

    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            await call(client, "kb_add_source", path=str(write_docs(tmp_path / "docs")))
        async with in_process(tmp_path / "home", tools=[stopped(row) for row in TOOLS]) as client:
            told = await refusal(client, tool, source="docs")
            assert "docs was stopped: the server is ending" in told
            assert hint in told

    run(scene)


def searching_by(quick: Callable[..., Reply]) -> list[Row]:
    """Return the tools with another one for searches."""
    return [row._replace(quick=quick) if row.name == "kb_search" else row for row in TOOLS]


@pytest.mark.promise("000.mcp.timeouts")
def test_a_search_that_hangs_is_given_up_with_a_sentence(tmp_path: Path):
    gate = threading.Event()

    def hangs(*_: object) -> Reply:
        gate.wait(BOUND_S)
        return Reply({}, "too late")

    async def scene() -> None:
        async with in_process(
            tmp_path / "home", limits_s={"kb_search": 0.2}, tools=searching_by(hangs)
        ) as client:
            assert "no answer within 0.2 seconds" in await refusal(client, "kb_search", query="x")
            assert await call(client, "kb_stats")
        gate.set()

    run(scene)
