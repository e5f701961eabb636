"""The API under eight clients at once for a minute, beside one client: errors, searches a second, waiting."""

from __future__ import annotations

import http.client
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from benchmarks.measure import KB, Cost, Row, at_most, elapsed_ms, p95_ms, quick_environment, sized
from benchmarks.synthetic import filled_store, questions

CHUNKS = sized(10_000, 200)
CLIENTS = 8
SECONDS = sized(60.0, 0.5)
WARMING_S = sized(5.0, 0.2)  # the model is loaded, and what is asked often is in memory


class Asked(NamedTuple):
    """What came of asking for a while."""

    costs: list[Cost]
    errors: int


def run() -> Iterator[Row]:
    """Yield the figures."""
    with tempfile.TemporaryDirectory() as home:
        environment = quick_environment(KB_HOME=home, KB_STORE_URL=filled_store(CHUNKS))
        with subprocess.Popen(
            [KB, "serve", "--port", "0", "--json"], env=environment, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                place = urlsplit(json.loads(server.stdout.readline())["url"]).netloc
                _together(place, CLIENTS, WARMING_S)
                one = _together(place, 1, SECONDS / 2)
                many = _together(place, CLIENTS, SECONDS)
                yield from _rows(one, many)
            finally:
                server.terminate()


def _rows(one: Asked, many: Asked) -> Iterator[Row]:
    yield Row(
        f"{CLIENTS} clients for {SECONDS:g} s, errors", f"{many.errors}", target="0", is_met=not many.errors
    )
    rates = len(many.costs) / SECONDS, len(one.costs) / (SECONDS / 2)
    ratio = rates[0] / rates[1]
    yield Row("searches a second", f"{rates[0]:.0f}", f"{rates[1]:.0f}, one client", ratio, "≥ 1", ratio >= 1)
    shown = [f"{elapsed_ms(asked.costs):.0f} / {p95_ms(asked.costs):.0f} ms" for asked in (many, one)]
    ratio = p95_ms(many.costs) / p95_ms(one.costs)
    yield at_most("a search, p50 / p95", shown[0], f"{shown[1]}, one client", ratio, 10)


def _together(place: str, clients: int, seconds: float) -> Asked:
    until = time.perf_counter() + seconds
    with ThreadPoolExecutor(clients) as pool:
        asked = list(pool.map(lambda number: _asking(place, number, until), range(clients)))
    return Asked(
        [cost for question in asked for cost in question.costs], sum(question.errors for question in asked)
    )


def _asking(place: str, number: int, until: float) -> Asked:
    """Search again and again over one connection."""
    costs: list[Cost] = []
    errors, texts = 0, questions(200)
    connection = http.client.HTTPConnection(place, timeout=30)
    while (started := time.perf_counter()) < until:
        text = texts[(len(costs) * CLIENTS + number) % len(texts)]
        try:
            connection.request("GET", f"/api/v1/search?query={quote(text)}")
            answer = connection.getresponse()
            wire = json.loads(answer.read())
            errors += answer.status != 200 or "results" not in wire
        except (OSError, http.client.HTTPException):
            errors += 1
            connection.close()
        costs.append(Cost(0.0, time.perf_counter() - started))
    connection.close()
    return Asked(costs, errors)
