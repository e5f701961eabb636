"""One engine behind all clients, beside each doing its own work: memory, a first answer, a single search."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.bench_mcp import HELLO, READY, Asking
from benchmarks.measure import (
    KB,
    Cost,
    Row,
    command_cost,
    cpu_ms,
    elapsed_ms,
    in_turn,
    quick_environment,
    sized,
)
from benchmarks.synthetic import filled_store, questions
from concord.core.config import load_settings

CHUNKS = sized(6_500, 400)
CLIENTS = sized(10, 2)
ROUNDS = sized(15, 2)
MOST_HELLO_MS = 100
# With the reader, and without.
MOST_MB, MOST_SEARCH_MS = (320, 140) if load_settings()["reader.enabled"] else (260, 90)
WARM_S = sized(20.0, 0.0)  # a model that is loading is not a figure to take


def run() -> Iterator[Row]:
    """Measure clients of an engine and clients without, of the same store."""
    url = filled_store(CHUNKS)
    alone = quick_environment(KB_STORE_URL=url)
    shared = {**alone, "KB_ENGINE_START": "search"}
    with _engine(shared):
        together = clients_mb(shared)
        apart = clients_mb(alone)
        hellos = in_turn(ROUNDS, {"shared": partial(_hello, shared), "alone": partial(_hello, alone)})
        texts = iter(questions(2 * ROUNDS))
        searches = in_turn(
            ROUNDS,
            {
                "shared": lambda: command_cost([KB, "search", next(texts)], shared),
                "alone": lambda: command_cost([KB, "search", next(texts)], alone),
            },
        )
    what = f"{CLIENTS} MCP clients that each searched, {CHUNKS:,} chunks, PSS of all"
    yield _within(what, "{:.0f} MB", together, apart, MOST_MB)
    yield from _waits("`kb mcp` until `initialize` is answered", hellos, MOST_HELLO_MS)
    yield from _waits("`kb search`, one-shot", searches, MOST_SEARCH_MS)


def _waits(what: str, costs: Mapping[str, Sequence[Cost]], most: float) -> Iterator[Row]:
    """Yield what somebody waits for, and the processor time of the client's own process."""
    shared, alone = costs["shared"], costs["alone"]
    yield _within(what, "{:.0f} ms", elapsed_ms(shared), elapsed_ms(alone), most)
    ours, others = cpu_ms(shared), cpu_ms(alone)
    yield Row("the same, processor time of its process", f"{ours:.0f} ms", f"{others:.0f} ms", ours / others)


def _within(what: str, form: str, ours: float, alone: float, most: float) -> Row:
    """Return a row for a figure beside that of clients without an engine, and the most that it may be."""
    target = "≤ " + form.format(most)
    return Row(what, form.format(ours), form.format(alone), ours / alone, target, ours <= most)


@contextmanager
def _engine(environment: Mapping[str, str]) -> Iterator[None]:
    """Have an engine that is warm, and end it afterwards."""
    try:
        for _ in range(2):
            command_cost([KB, "search", "warm"], environment)
            time.sleep(WARM_S / 2)
        yield
    finally:
        subprocess.run([KB, "engine", "stop"], env=environment, capture_output=True, check=False)


def clients_mb(environment: Mapping[str, str]) -> float:
    """Return the memory of clients that have each searched by meaning, with that of the engine, if any."""
    with ExitStack() as stack:
        clients = [stack.enter_context(_client(environment)) for _ in range(CLIENTS)]
        for client in clients:
            assert "result" in client(HELLO)
            client(READY)
        for client in clients:
            until = time.monotonic() + 60
            while _is_cold(client) and time.monotonic() < until:
                time.sleep(0.2)
        status = subprocess.run([KB, "engine", "status", "--json"], env=environment, capture_output=True)
        engine = json.loads(status.stdout).get("pid")
        with_engine = environment["KB_ENGINE_START"] != "never"
        return sum(map(_pss_mb, [*(client.pid for client in clients), *([engine] if with_engine else [])]))


def _is_cold(client: Asking) -> bool:
    params = {"name": "kb_search", "arguments": {"query": questions(1)[0]}}
    said = client({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
    return bool(said["result"]["structuredContent"]["degraded"])


def _hello(environment: Mapping[str, str]) -> Cost:
    """Return what it takes from the start of a client until it has its first answer."""
    started = time.perf_counter()
    with _client(environment) as client:
        assert "result" in client(HELLO)
        return Cost(client.cpu_ms() / 1000, time.perf_counter() - started)


@contextmanager
def _client(environment: Mapping[str, str]) -> Iterator[Asking]:
    process = subprocess.Popen(
        [KB, "mcp"],
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    client = Asking(process)
    try:
        yield client
    finally:
        client.stdin.close()
        process.wait(30)
        client.stdout.close()


def _pss_mb(pid: int) -> float:
    """Return the memory of a process, of which what it shares with others counts in part."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
