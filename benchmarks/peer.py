"""One peer in a process of its own, under an interpreter that has it installed: `python peer.py NAME FOLDER`.

FOLDER holds texts.json and vectors.npy. Each line of standard input is a query, {"text": …, "vector": […]};
the answer is {"ms": …, "ids": […]}, the time of the search alone. An empty answer comes first, once all is
indexed. Nothing of ours is imported here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TOP = 10
CANDIDATES = 40

Search = Callable[[str, Sequence[float]], Sequence[object]]  # identifiers, as the peer has them


def lancedb(folder: Path, texts: Sequence[str], vectors: Any) -> Search:
    """Hybrid: its own full-text index and exact vectors, fused by reciprocal rank."""
    import lancedb
    from lancedb.rerankers import RRFReranker

    rows = [{"id": at, "text": text, "vector": vectors[at].tolist()} for at, text in enumerate(texts)]
    chunks = lancedb.connect(str(folder / "lance")).create_table("chunks", rows)
    chunks.create_fts_index("text")
    reranker = RRFReranker()

    def search(text: str, vector: Sequence[float]) -> Sequence[object]:
        query = chunks.search(query_type="hybrid").vector(vector).text(text).distance_type("cosine")
        return [row["id"] for row in query.rerank(reranker).limit(TOP).to_list()]

    return search


def chromadb(folder: Path, texts: Sequence[str], vectors: Any) -> Search:
    """Vectors only, approximate (HNSW)."""
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"))
    chunks = client.create_collection("chunks", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    for start in range(0, len(texts), 1000):
        some = slice(start, start + 1000)
        ids = [str(at) for at in range(len(texts))[some]]
        chunks.add(ids=ids, embeddings=vectors[some], documents=list(texts[some]))

    def search(text: str, vector: Sequence[float]) -> Sequence[object]:
        return list(map(int, chunks.query(query_embeddings=[vector], n_results=TOP)["ids"][0]))

    return search


def qdrant_edge(folder: Path, texts: Sequence[str], vectors: Any) -> Search:
    """Hybrid: its own BM25 as sparse vectors and dense vectors (HNSW), fused by reciprocal rank."""
    import qdrant_edge as edge

    config = edge.EdgeConfig(
        vectors={"dense": edge.EdgeVectorParams(size=vectors.shape[1], distance=edge.Distance.Cosine)},
        sparse_vectors={"words": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
    )
    home = folder / "qdrant"
    home.mkdir()
    shard = edge.EdgeShard.create(str(home), config)
    bm25 = edge.Bm25()
    for start in range(0, len(texts), 1000):
        points = [
            edge.Point(at, {"dense": vectors[at].tolist(), "words": bm25.embed_document(texts[at])}, {})
            for at in range(start, min(start + 1000, len(texts)))
        ]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.optimize()

    def search(text: str, vector: Sequence[float]) -> Sequence[object]:
        sparse = bm25.embed_query(text)
        legs = [
            edge.Prefetch(CANDIDATES, query=edge.Query.Nearest(list(vector), using="dense")),
            edge.Prefetch(CANDIDATES, query=edge.Query.Nearest(sparse, using="words")),
        ]
        fusion: Any = edge.Fusion.Rrf(60)  # a Fusion, which its type does not say
        request = edge.QueryRequest(TOP, query=fusion, prefetches=legs, with_payload=True)
        return [point.id for point in shard.query(request)]

    return search


PEERS: dict[str, Callable[[Path, Sequence[str], Any], Search]] = {
    "lancedb": lancedb,
    "chromadb": chromadb,
    "qdrant_edge": qdrant_edge,
}


def main(name: str, folder: Path) -> None:
    """Index, then answer until standard input ends."""
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    search = PEERS[name](folder, texts, np.load(folder / "vectors.npy"))
    print("{}", flush=True)
    for line in sys.stdin:
        query = json.loads(line)
        started = time.perf_counter()
        ids = search(query["text"], query["vector"])
        took_ms = (time.perf_counter() - started) * 1000
        print(json.dumps({"ms": took_ms, "ids": ids}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
