"""Models and their life: a switch under load, indexing anew from the cache, words while a provider is frozen.

The switch is watched by another process that searches by meaning all the time. The two models are of the same
dimension and call each other's nearest the farthest, so that a single query which met the wrong vectors would
find the wrong passage.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from benchmarks.measure import Cost, Row, at_least, at_most, cost_of, elapsed_ms, milliseconds, p95_ms, sized
from benchmarks.stored import active_model, keyed, vectors_of
from benchmarks.synthetic import write_markdown
from concord.core import plugins
from concord.embed.hashing import HashingEmbedder
from concord.knowledge import KnowledgeBase
from concord.types import Document, Identity, Piece, Source, Vector, silent

CHUNKS = sized(10_000, 300)
BATCH = sized(500, 100)
SWITCHES = sized(40, 2)
LOOK_EVERY = sized(10, 1)  # queries: which model is in use
BETWEEN_S = sized(0.1, 0.3)  # switches: a few queries are answered by each model
FILES = sized(12, 1)  # for indexing anew with the bundled model
TIMES_FASTER = 20.0
SEARCHES = sized(40, 2)
DEADLINE_MS = 150
ANSWERED_MS = 200.0


class Turned(HashingEmbedder):
    """As good as the hashing embedder, with every vector turned round."""

    identity = replace(HashingEmbedder.identity, model="turned")

    def embed_query(self, text: str) -> Vector:
        """Return the opposite vector."""
        return array("f", [-number for number in array("f", super().embed_query(text))]).tobytes()


plugins.TABLES["embedders"]["turned"] = "benchmarks.bench_models:Turned"


def run() -> Iterator[Row]:
    """Take the figures."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _switch(f"sqlite://{folder}/store")
        yield _backfill(Path(folder))
        yield _frozen(f"sqlite://{folder}/frozen")


def text_of(number: int) -> str:
    """Return the text of a chunk, of which no other has so many words."""
    return f"entry {number} of the ledger holds item{number} and goes to place{number} in room{number % 97}"


def search_on(url: str) -> None:
    """Search until stdin is closed, and tell on stdout how many were asked, failed or found the wrong one."""
    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    asked = failed = wrong = 0
    models: set[str] = set()
    with KnowledgeBase.open(store__url=url, embed__provider="hashing") as kb:
        print("ready", flush=True)
        while not over.is_set():
            number = asked * 7919 % CHUNKS
            answer = kb.search(text_of(number), mode="semantic", deadline_ms=60_000)
            failed += bool(answer.degraded) or not answer.hits
            wrong += bool(answer.hits) and answer.hits[0].chunk.text != text_of(number)
            if asked % LOOK_EVERY == 0 and (identity := active_model(kb.store)):
                models.add(identity.model)
            asked += 1
    print(json.dumps({"asked": asked, "failed": failed, "wrong": wrong, "models": sorted(models)}))


def _switch(url: str) -> Iterator[Row]:
    with KnowledgeBase.open(store__url=url, embed__provider="hashing") as kb:
        _fill(kb)
        command = [sys.executable, "-c", f"from benchmarks.bench_models import search_on; search_on({url!r})"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as searcher:
            assert searcher.stdout is not None
            searcher.stdout.readline()
            built = kb.models.add("turned", "", "", silent)
            first = kb.models.use("turned", progress=silent)
            assert first.outcome == "switched"
            times = [_switched(kb, turn) for turn in range(SWITCHES)]
            out, _ = searcher.communicate()
    told = json.loads(out.strip().splitlines()[-1])
    bad = told["failed"] + told["wrong"]
    what = f"hot swap of {CHUNKS:,} chunks: failed or mixed of {told['asked']:,} queries"
    assert len(told["models"]) == 2, told
    yield Row(what, str(bad), "", None, "= 0", bad == 0)
    yield Row(f"building its {built.embedding.embedded:,} vectors beside it", f"{built.took_s:.1f} s")
    yield Row("switching to a model that was used before", milliseconds(elapsed_ms(times)))


def _switched(kb: KnowledgeBase, turn: int) -> Cost:
    name = "turned" if turn % 2 else "hashing-256"
    cost = cost_of(lambda: kb.models.use(name, progress=silent))
    time.sleep(BETWEEN_S)
    return cost


def _fill(kb: KnowledgeBase) -> None:
    catalog = kb.store.catalog
    catalog.put_source(Source("ledger", "ledger", None, "notes", "ledger"))
    for start in range(0, CHUNKS, BATCH):
        catalog.put_documents(_document(number) for number in range(start, start + BATCH))
    kb.sync()


def _document(number: int) -> tuple[Document, list[Piece]]:
    text = text_of(number)
    document = Document(f"d{number}", "ledger", f"ledger/{number}", "note", f"Entry {number}")
    return document, [Piece(text, 0, len(text), 1, 1)]


def _backfill(folder: Path) -> Row:
    write_markdown(folder / "docs", FILES)
    url = f"sqlite://{folder}/backfill"
    with KnowledgeBase.open(store__url=url, embed__provider="bundled") as kb:
        kb.add(folder / "docs", embed=False)
        kb.parts.tokenizer().warm()
        anew = cost_of(kb.sync)
        (source,) = kb.sources()
        chunks = source.counts.chunks
        costs = []
        for _ in range(5):
            _retitle(kb)
            costs.append(cost_of(_expecting(lambda: kb.backfill().reused, chunks)))
    ours = elapsed_ms(costs)
    what = f"`kb backfill` of {chunks} chunks from the cache, embedding anew beside it"
    return at_least(
        what, milliseconds(ours), milliseconds(anew.elapsed * 1000), anew.elapsed * 1000 / ours, TIMES_FASTER
    )


def _retitle(kb: KnowledgeBase) -> None:
    """Take every chunk's vector away and leave it in the cache: other titles, then the old ones again."""
    catalog = kb.store.catalog
    documents = list(catalog.documents())
    catalog.update_documents([replace(document, title=f"{document.title}!") for document in documents])
    catalog.update_documents(documents)


def _expecting(work: Callable[[], int], count: int) -> Callable[[], None]:
    def checked() -> None:
        assert work() == count

    return checked


def _frozen(url: str) -> Row:
    """Search while a provider accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=4 * SEARCHES) as frozen:
        address = f"http://127.0.0.1:{frozen.getsockname()[1]}"
        identity = Identity("ollama", "granite", HashingEmbedder.identity.dimension)
        with KnowledgeBase.open(store__url=url, embed__provider="hashing") as kb:
            recipe = {"embed.provider": "ollama", "embed.model": "granite", "embed.url": address}
            kb.store.models.add(identity, recipe)
            catalog = kb.store.catalog
            catalog.put_source(Source("ledger", "ledger", None, "notes", "ledger"))
            catalog.put_documents(_document(number) for number in range(1000))
            vectors = HashingEmbedder({}, kb.settings.paths)
            pending = vectors_of(kb.store).pending(0, 1000)
            vectors_of(kb.store).put(
                keyed((chunk.chunk_id, vectors.embed_query(chunk.text)) for chunk in pending)
            )
            _ask(kb, 0)  # which imports what it needs
            costs = [cost_of(partial(_ask, kb, n)) for n in range(SEARCHES)]
    slowest = p95_ms(costs)
    what = f"a search with a deadline of {DEADLINE_MS} ms, the provider frozen, p95 of {SEARCHES}"
    return at_most(what, milliseconds(slowest), milliseconds(ANSWERED_MS), slowest / ANSWERED_MS, 1.0)


def _ask(kb: KnowledgeBase, number: int) -> None:
    answer = kb.search(f"item{number}", deadline_ms=DEADLINE_MS)
    assert answer.hits[0].document.id == f"d{number}"
    assert "semantic" in {
        part.strategy for part in answer.degraded
    }  # on a busy machine the disk is late, too
