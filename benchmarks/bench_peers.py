"""Peers on the same chunks and vectors: LanceDB and qdrant-edge hybrid, chromadb (vectors only), and a script
with FTS5 and exact numpy vectors.

None of them is a dependency: KB_BENCH_PEERS names a Python interpreter that has them installed. The query's
vector is known to everybody, ours included, and each query is asked twice, of each in turn: the second time
counts. Ours also reads the text, judges, spreads, cites and cuts snippets; they return identifiers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import apsw
import numpy as np

from benchmarks.measure import Row, absent, cost_of, milliseconds, sized
from benchmarks.stored import vectors_of
from benchmarks.synthetic import Floats, filled_store, questions
from concord.knowledge import KnowledgeBase
from concord.store.sqlite.file import locate

CHUNKS = sized(10_000, 400)
QUERIES = sized(40, 2)  # fewer than the library remembers the vectors of
TOP, CANDIDATES = 10, 40
RRF_K = 60
PEER = Path(__file__).with_name("peer.py")
PEERS = {"lancedb": "LanceDB hybrid", "chromadb": "chromadb, vectors", "qdrant_edge": "qdrant-edge hybrid"}

Ask = Callable[[str, Floats], float]  # query and its vector → milliseconds


def run() -> Iterator[Row]:
    """Ask everybody the same questions."""
    python = os.environ.get("KB_BENCH_PEERS") or sys.executable
    url = filled_store(CHUNKS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kb = stack.enter_context(KnowledgeBase.open(store__url=url))
        script = Script(url)
        script.write(folder)
        asked: dict[str, Ask] = {"ours": lambda text, _: _ours(kb, text), "FTS5 and numpy": script.ask}
        for name, title in PEERS.items():
            if _is_installed(python, name):
                asked[title] = stack.enter_context(Peer(python, name, folder)).ask
            else:
                yield absent(title, f"{python} has no {name}; KB_BENCH_PEERS names one that has")
        times = _compare(asked, kb)
    ours = median(times.pop("ours"))
    for title, taken in times.items():
        theirs = median(taken)
        what = f"search, {CHUNKS:,} chunks, vector known, beside {title}"
        yield Row(what, milliseconds(ours), milliseconds(theirs), ours / theirs)


def _compare(asked: Mapping[str, Ask], kb: KnowledgeBase) -> dict[str, list[float]]:
    embedder = kb.embedder
    if embedder is None:
        raise RuntimeError("peers are compared with the bundled model: unset KB_EMBED_PROVIDER")
    times: dict[str, list[float]] = {name: [] for name in asked}
    for text in questions(QUERIES):
        vector = np.frombuffer(embedder.embed_query(text), dtype="<f4")
        for name, ask in asked.items():
            ask(text, vector)
            times[name].append(ask(text, vector))
    return times


def _ours(kb: KnowledgeBase, text: str) -> float:
    return cost_of(lambda: kb.search(text, top=TOP)).elapsed * 1000


def _is_installed(python: str, module: str) -> bool:
    looking = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", looking], check=False).returncode == 0


class Script:
    """What anybody could write in a page: one FTS5 statement, one product, reciprocal ranks."""

    _WORDS = "SELECT rowid FROM kb_chunks_fts WHERE kb_chunks_fts MATCH ? ORDER BY rank LIMIT ?"

    def __init__(self, url: str) -> None:
        path = str(locate(url, "default").path)
        self._connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        with KnowledgeBase.open(store__url=url) as kb:
            ids = [int(row) for (row,) in self._connection.execute("SELECT id FROM kb_chunks ORDER BY id")]
            vectors = vectors_of(kb.store).fetch(ids)
        self._ids = np.array(ids)
        self._matrix = np.frombuffer(b"".join(vectors[i] for i in ids), "<f4").reshape(len(ids), -1)

    def write(self, folder: Path) -> None:
        """Write texts and vectors for the peers."""
        rows = self._connection.execute("SELECT content FROM kb_chunks ORDER BY id")
        (folder / "texts.json").write_text(json.dumps([text for (text,) in rows]), encoding="utf-8")
        np.save(folder / "vectors.npy", self._matrix)

    def ask(self, text: str, vector: Floats) -> float:
        """Search and return the time it took."""
        return cost_of(lambda: self._search(text, vector)).elapsed * 1000

    def _search(self, text: str, vector: Floats) -> list[int]:
        expression = " OR ".join(f'"{word}"' for word in text.split())
        words = [row for (row,) in self._connection.execute(self._WORDS, (expression, CANDIDATES))]
        scores = self._matrix @ vector
        nearest = np.argpartition(-scores, CANDIDATES)[:CANDIDATES]
        near = self._ids[nearest[np.argsort(-scores[nearest])]].tolist()
        return _fused(words, near)[:TOP]


def _fused(*lists: Sequence[int]) -> list[int]:
    points: dict[int, float] = {}
    for one in lists:
        for rank, chunk_id in enumerate(one, 1):
            points[chunk_id] = points.get(chunk_id, 0.0) + 1 / (RRF_K + rank)
    return sorted(points, key=lambda chunk_id: -points[chunk_id])


class Peer:
    """A peer's process: indexes when it is entered, answers one query after the other."""

    def __init__(self, python: str, name: str, folder: Path) -> None:
        print(f"  {name} is indexing", flush=True)
        self._name = name
        command = [python, str(PEER), name, str(folder)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Peer:
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, text: str, vector: Floats) -> float:
        """Return the time that the peer took, without the way there and back."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"text": text, "vector": vector.tolist()}) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> float:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        return float(json.loads(line).get("ms", 0.0))
