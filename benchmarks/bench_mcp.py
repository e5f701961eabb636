"""The MCP server's speed, as ratios measured side by side, and eight clients on one database.

    python -m benchmarks.bench_mcp [--chunks 100000] [--calls 2000] [--runs 7]

`initialize` is compared with a bare server of the SDK that has one empty tool; a warm search with the library
called directly; the first search of a cold server is timed while its model loads.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.measure import processor_s, sized
from benchmarks.stored import keyed, vectors_of
from concord import KnowledgeBase
from concord.core.config import load_settings
from concord.embed.bundled import BundledEmbedder
from concord.types import Document, Piece, Source

SOURCE = str(Path(__file__).parent.parent / "src")
KB = [sys.executable, "-c", "import sys; from concord.cli.main import main; sys.exit(main())", "mcp"]
BARE = """
from mcp.server import MCPServer
server = MCPServer("bare", log_level="WARNING")
@server.tool()
def nothing() -> None:
    "Do nothing."
server.run()
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SYLLABLES = "ba co di fe gu ha jo ki lu me no pa qui ro sa te vu wa xe zi"
WORDS = ["".join(parts) for parts in product(SYLLABLES.split(), repeat=3)]  # 8,000 of them
ZIPF = [1 / rank for rank in range(1, len(WORDS) + 1)]  # as often as words are in prose
COMMON = WORDS[50:500]  # what people ask for: neither everywhere nor nowhere
CLIENTS = sized(8, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=sized(100_000, 200), help="size of the database")
    parser.add_argument("--calls", type=int, default=sized(2_000, 20), help="calls of all clients together")
    parser.add_argument("--runs", type=int, default=sized(7, 1), help="times that each start-up is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "big")
        say("database", fill(home, given.chunks))
        say("initialize", initialize(home, given.runs))
        say("cold search", cold_search(home, given.runs))
        say("warm search", warm_search(home))
        say(f"{CLIENTS} clients", anyio.run(crowd, Path(folder, "crowd"), given.calls))


def say(what: str, measured: dict[str, Any]) -> None:
    print(f"{what}: {json.dumps(measured)}", flush=True)


def variables(home: Path, provider: str) -> dict[str, str]:
    """Return the environment of a server; byte code is cached, as it is for users."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KB_") and k != "PYTHONDONTWRITEBYTECODE"}
    ours = {"KB_HOME": str(home), "KB_EMBED_PROVIDER": provider, "KB_ENGINE_START": "never"}
    return {**kept, "PYTHONPATH": SOURCE, **ours}


def fill(home: Path, chunks: int) -> dict[str, Any]:
    """Store documents of twenty chunks each, with random vectors under the bundled model's name."""
    started, rng = time.perf_counter(), random.Random(7)
    with KnowledgeBase(load_settings({}, {"KB_HOME": str(home)})) as kb:
        store = kb.store
        store.catalog.put_source(Source("s", "big", str(home / "files"), "directory", "big"))
        store.models.add(BundledEmbedder.identity, {})
        for number in range(chunks // 20):
            pieces = [piece(rng, number * 20 + i) for i in range(20)]
            document = Document(f"d{number:06}", "s", f"big/{number:06}.md", "markdown", f"Page {number}")
            ids = store.catalog.put_documents([(document, pieces)])[0]
            vectors_of(store).put(keyed((chunk_id, vector(rng)) for chunk_id in ids))
    return {"chunks": chunks, "filled_s": round(time.perf_counter() - started, 1)}


def piece(rng: random.Random, number: int) -> Piece:
    text = f"Passage {number}. " + " ".join(rng.choices(WORDS, ZIPF, k=180)) + "."
    return Piece(text, 0, len(text), 1, 1)


def vector(rng: random.Random) -> bytes:
    numbers = [rng.gauss(0, 1) for _ in range(BundledEmbedder.identity.dimension)]
    length = sum(n * n for n in numbers) ** 0.5
    return struct.pack(f"<{len(numbers)}f", *(n / length for n in numbers))


def initialize(home: Path, runs: int) -> dict[str, Any]:
    """Time from the start of the process to the answer to `initialize`, ours and a bare server's in turn."""
    ours, bare = [], []
    for _ in range(runs + 1):  # the first of each fills the caches
        bare.append(hello([sys.executable, "-c", BARE], home))
        ours.append(hello(KB, home))
    (a, a_cpu), (b, b_cpu) = (map(statistics.median, zip(*times[1:], strict=True)) for times in (ours, bare))
    ratios = {"ratio": round(a / b, 2), "cpu_ratio": round(a_cpu / b_cpu, 2)}
    return {"kb_mcp_ms": round(a), "bare_ms": round(b), **ratios}


def hello(command: list[str], home: Path) -> tuple[float, float]:
    """Return the milliseconds until the answer, by the clock and of the processor."""
    started = time.perf_counter()
    with server(command, home) as ask:
        assert "result" in ask(HELLO)
        return (time.perf_counter() - started) * 1000, ask.cpu_ms()


@contextmanager
def server(command: list[str], home: Path) -> Iterator[Asking]:
    """Start a server, and end it afterwards."""
    process = subprocess.Popen(
        command,
        env=variables(home, "bundled"),
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    asking = Asking(process)
    try:
        yield asking
    finally:
        asking.stdin.close()
        process.wait(30)
        asking.stdout.close()


class Asking:
    """A server that is asked one thing at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self.pid, self.stdin, self.stdout = process.pid, process.stdin, process.stdout

    def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer, if there is one to come."""
        self.stdin.write(json.dumps(message) + "\n")
        self.stdin.flush()
        answer: dict[str, Any] = json.loads(self.stdout.readline()) if "id" in message else {}
        return answer

    def cpu_ms(self) -> float:
        """Return how long the processor has worked for it."""
        return processor_s(self.pid) * 1000


def search(number: int, query: str) -> dict[str, Any]:
    params = {"name": "kb_search", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def cold_search(home: Path, runs: int) -> dict[str, Any]:
    """Time the first search, sent right after the handshake."""
    took, cpu, degraded = [], [], 0
    for _ in range(runs):
        with server(KB, home) as ask:
            ask(HELLO)
            ask(READY)
            started, before = time.perf_counter(), ask.cpu_ms()
            answer = ask(search(2, " ".join(COMMON[:5])))["result"]["structuredContent"]
            took.append((time.perf_counter() - started) * 1000)
            cpu.append(ask.cpu_ms() - before)
            degraded += bool(answer["degraded"])
            assert answer["returned"]
    return {
        "cpu_ms": round(statistics.median(cpu)),
        "median_ms": round(statistics.median(took)),
        "max_ms": round(max(took)),
        "degraded": f"{degraded}/{runs}",
    }


def warm_search(home: Path, calls: int = sized(200, 3)) -> dict[str, Any]:
    """Compare a search over stdio with the same in the library; both warm, in turn, each query once."""
    rng = random.Random(3)
    queries = [" ".join(rng.sample(COMMON, 4)) for _ in range(calls)]
    direct, over, direct_cpu, over_cpu = [], [], 0.0, 0.0
    with KnowledgeBase(load_settings({}, {"KB_HOME": str(home)})) as kb, server(KB, home) as ask:
        kb.warm()
        ask(HELLO)
        ask(READY)
        while ask(search(2, "warm up"))["result"]["structuredContent"]["degraded"]:
            time.sleep(0.05)
        for number, query in enumerate(queries, 3):
            before = ask.cpu_ms()
            over.append(timed(partial(ask, search(number, query))))
            over_cpu += ask.cpu_ms() - before
            before = time.process_time()
            direct.append(timed(partial(kb.search, query)))
            direct_cpu += (time.process_time() - before) * 1000
    a, b = statistics.median(over), statistics.median(direct)
    overheads = sorted(x - y for x, y in zip(over, direct, strict=True))
    return {
        "mcp_ms": round(a, 2),
        "library_ms": round(b, 2),
        "overhead_ms": round(statistics.median(overheads), 2),
        "cpu_overhead_ms": round((over_cpu - direct_cpu) / calls, 2),
    }


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


async def crowd(home: Path, calls: int) -> dict[str, Any]:
    """Eight clients with a process each: seven search and note, one adds files and syncs."""
    home.mkdir()
    docs = home / "docs"
    docs.mkdir()
    for number in range(50):
        (docs / f"{number}.md").write_text(
            f"# Page {number}\n\nThe {WORDS[number % len(WORDS)]}.\n", encoding="utf-8"
        )
    parameters = StdioServerParameters(
        command=KB[0], args=KB[1:], env=variables(home / "home", "hashing"), cwd=home
    )
    each, faults, kept = calls // CLIENTS, list[str](), list[str]()
    started = time.perf_counter()

    async def asked(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        if result.is_error:
            faults.append(str(result.content))
        return result.structured_content or {}

    async def one(number: int) -> None:
        async with Client(parameters, mode="legacy") as client:
            for turn in range(each):
                if number == 0:
                    (docs / f"new{turn}.md").write_text(f"# New {turn}\n\nA gazelle.\n", encoding="utf-8")
                    await asked(client, "kb_sync")
                elif turn % 5 == 0:
                    note = await asked(client, "kb_note", content=f"Client {number} in turn {turn}.")
                    kept.append(note["document_id"])
                else:
                    await asked(client, "kb_search", query=WORDS[turn % len(WORDS)])

    async with Client(parameters, mode="legacy") as client:
        await asked(client, "kb_add_source", path=str(docs))
    async with anyio.create_task_group() as tasks:
        for number in range(CLIENTS):
            tasks.start_soon(one, number)
    async with Client(parameters, mode="legacy") as client:
        stored = (await asked(client, "kb_stats"))["documents"]
    expected = 50 + each + len(kept)
    return {
        "calls": each * CLIENTS,
        "errors": len(faults),
        "lost_writes": expected - stored,
        "took_s": round(time.perf_counter() - started, 1),
        "first_errors": faults[:3],
    }


if __name__ == "__main__":
    main()
