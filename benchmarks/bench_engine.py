"""One engine behind all clients, beside each doing its own work: memory, a first answer, a single search."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.bench_mcp import HELLO, READY, Asking
from benchmarks.measure import KB, Cost, Row, command_cost, cpu_ms, elapsed_ms, quick_environment, sized
from benchmarks.synthetic import filled_store, questions

CHUNKS = sized(6_500, 400)
CLIENTS = sized(10, 2)
ROUNDS = sized(15, 2)
MOST_MB, MOST_HELLO_MS, MOST_SEARCH_MS = 260, 100, 90
WARM_S = sized(20.0, 0.0)  # a model that is loading is not a figure to take


def run() -> Iterator[Row]:
    """Measure clients of an engine and clients without, of the same store."""
    url, cost = filled_store(CHUNKS), {}
    alone = quick_environment(KB_STORE_URL=url)
    shared = {**alone, "KB_ENGINE_START": "search"}
    with _engine(shared):
        together = clients_mb(shared)
        apart = clients_mb(alone)
        hellos: dict[str, list[float]] = {"shared": [], "alone": []}
        for _ in range(ROUNDS):
            hellos["shared"].append(_hello_ms(shared))
            hellos["alone"].append(_hello_ms(alone))
        for name, environment in (("shared", shared), ("alone", alone)):
            cost[name] = [_search(environment, text) for text in questions(ROUNDS)]
    what = f"{CLIENTS} MCP clients that each searched, {CHUNKS:,} chunks, PSS of all"
    yield _within(what, "{:.0f} MB", together, apart, MOST_MB)
    firsts = (median(hellos["shared"]), median(hellos["alone"]))
    yield _within("`kb mcp` until `initialize` is answered", "{:.0f} ms", *firsts, MOST_HELLO_MS)
    searches = (elapsed_ms(cost["shared"]), elapsed_ms(cost["alone"]))
    yield _within("`kb search`, one-shot, elapsed", "{:.0f} ms", *searches, MOST_SEARCH_MS)
    ours, others = cpu_ms(cost["shared"]), cpu_ms(cost["alone"])
    yield Row("the same, processor time", f"{ours:.0f} ms", f"{others:.0f} ms", ours / others)


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


def _search(environment: Mapping[str, str], text: str) -> Cost:
    return command_cost([KB, "search", text], environment)


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


def _hello_ms(environment: Mapping[str, str]) -> float:
    started = time.perf_counter()
    with _client(environment) as client:
        assert "result" in client(HELLO)
        return (time.perf_counter() - started) * 1000


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
