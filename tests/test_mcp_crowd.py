"""Eight clients with a server process each, all on one database: nobody is locked out, no write is lost."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp.client import Client

from support.mcp_session import call, over_stdio, run, write_docs

pytestmark = pytest.mark.slow

CLIENTS = 8
ROUNDS = 3  # for each client; `benchmarks/bench_mcp.py` does 250


@pytest.mark.promise("mcp.crowd")
def test_eight_clients_search_and_note_while_one_syncs(tmp_path: Path):
    docs = write_docs(tmp_path / "docs", 12)
    home = tmp_path / "home"

    async def searching(client: Client, number: int) -> None:
        for turn in range(ROUNDS):
            found = await call(client, "kb_search", query=f"deployment step {turn}")
            assert found["returned"] >= 1
            kept = await call(client, "kb_note", content=f"Client {number} says tapir{number}x{turn}.")
            found = await call(client, "kb_search", query=f"tapir{number}x{turn}", mode="fts5")
            assert kept["document_id"] in [hit["document_id"] for hit in found["results"]]

    async def syncing(client: Client) -> None:
        for turn in range(ROUNDS):
            (docs / f"new{turn}.md").write_text(f"# New\n\nA gazelle numbered {turn}.\n", encoding="utf-8")
            synced = await call(client, "kb_sync")
            assert (synced["state"], synced["failed"], synced["added"]) == ("done", [], 1)

    async def scene() -> None:
        async with over_stdio(home, tmp_path) as first:
            await call(first, "kb_add_source", path="docs")
            async with anyio.create_task_group() as crowd:
                crowd.start_soon(syncing, first)
                for number in range(1, CLIENTS):
                    crowd.start_soon(joined, number)
            state = await call(first, "kb_stats")
            assert state["documents"] == 12 + ROUNDS + (CLIENTS - 1) * ROUNDS
            found = await call(first, "kb_search", query="gazelle", limit=50, max_tokens=25_000)
            assert len({hit["path"] for hit in found["results"] if "new" in hit["path"]}) == ROUNDS

    async def joined(number: int) -> None:
        async with over_stdio(home, tmp_path) as client:
            await searching(client, number)

    run(scene)
