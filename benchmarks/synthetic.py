"""Made-up collections, the same every time: Markdown trees, and stores filled without embedding anything.

Prose comes from the language reference that Python brings along. Filled stores draw their words by Zipf's law
from its vocabulary and from invented words, so that full-text search meets frequent and rare ones as in life.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Clock, Cost, cost_of, sized, together
from benchmarks.stored import keyed, vectors_of
from concord.embed.bundled import BundledEmbedder
from concord.store import schema
from concord.store.contract import Store
from concord.store.sqlite.store import SQLiteStore
from concord.types import ChunkId, Document, Piece, Source, Vector

SEED = 2026
VOCABULARY = sized(60_000, 8_000)  # words, most of them rare
WORDS_A_CHUNK = 90
CHUNKS_A_DOCUMENT = 20
BATCH = 2_000  # chunks written together
DIMENSION = BundledEmbedder.identity.dimension
OLD_S = 3600.0
QUESTION_WORDS = ("how does", "what is", "why", "where to find", "which", "when to use")

Floats = NDArray[np.float32]


def cache_folder() -> Path:
    """Return where benchmarks keep what takes long to make: KB_BENCH_CACHE, or the user's cache folder."""
    folder = Path(os.environ.get("KB_BENCH_CACHE") or Path.home() / ".cache" / "concord-benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_markdown(folder: Path, files: int, *, seed: int = SEED) -> None:
    """Write a tree of Markdown files of about 8 kB, fifty a folder."""
    chance = random.Random(seed)
    for number in range(files):
        path = folder / f"part{number // 50:03}" / f"page{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_page(chance, number), encoding="utf-8")


def write_small_files(folder: Path, files: int) -> None:
    """Write a tree of one-paragraph files, a hundred a folder."""
    for number in range(files):
        path = folder / f"part{number // 100:03}" / f"note{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nWhat was said on day {number}.\n", encoding="utf-8")


def make_old(folder: Path, age_s: float = OLD_S) -> None:
    """Make files as old as files are: what was saved this moment is looked into by every sync and search."""
    then = time.time() - age_s
    for path in folder.rglob("*.md"):
        os.utime(path, (then, then))


@cache
def _paragraphs() -> tuple[list[str], list[str]]:
    """Return the prose and the listings of the language reference."""
    blocks = [block for text in topics.values() for block in text.split("\n\n") if len(block) > 40]
    listings = [block for block in blocks if block.startswith("   ")]
    return [block for block in blocks if not block.startswith(" ")], listings


def _page(chance: random.Random, number: int) -> str:
    prose, listings = _paragraphs()
    parts = [f"# Page {number}: {chance.choice(_vocabulary()[200:2000])}"]
    for section in range(chance.randint(4, 9)):
        parts.append(f"## {chance.choice(_vocabulary()[50:3000]).title()} {section}")
        parts += chance.sample(prose, chance.randint(2, 5))
        if chance.random() < 0.5:
            parts.append(f"```python\n{chance.choice(listings)}\n```")
        if chance.random() < 0.5:
            parts.append("\n".join(f"- {chance.choice(prose).split('. ')[0]}" for _ in range(4)))
    return "\n\n".join(parts) + "\n"


@cache
def _vocabulary() -> list[str]:
    """Return words, the most frequent first."""
    counted = Counter(re.findall(r"[a-z]{2,}", " ".join(topics.values()).lower()))
    real = [word for word, _ in counted.most_common()]
    chance = random.Random(SEED)
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    invented = ("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(4 * VOCABULARY))
    return list(dict.fromkeys([*real, *invented]))[:VOCABULARY]


class Filling(NamedTuple):
    """What filling a store took; making up the texts and vectors is not counted."""

    words: Cost
    vectors: Cost
    settling: Cost  # what a sync does last: merging words, and on a server building the vector index


_FILLING = "filling.json"  # beside a store that is kept: what filling it took


def filled_store(chunks: int) -> str:
    """Return the URL of a store with so many chunks and vectors, filled now or by an earlier run."""
    folder = _folder(chunks)
    if not (folder / _FILLING).is_file():
        making = folder.with_name(folder.name + ".making")
        shutil.rmtree(making, ignore_errors=True)
        print(f"  filling a store with {chunks:,} chunks, once", flush=True)
        with closing(SQLiteStore.open(f"sqlite://{making.absolute()}", "default")) as store:
            taken = fill(store, chunks)
        (making / _FILLING).write_text(json.dumps(taken), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        making.rename(folder)
    return f"sqlite://{folder.absolute()}"


def filling_of(chunks: int) -> Filling:
    """Return what filling the store of that size took when it was made."""
    costs = json.loads((_folder(chunks) / _FILLING).read_text(encoding="utf-8"))
    return Filling(*(Cost(*cost) for cost in costs))


def _folder(chunks: int) -> Path:
    told = f"{schema.CATALOG}{schema.VECTORS}{SEED}{VOCABULARY}{WORDS_A_CHUNK}{CHUNKS_A_DOCUMENT}"
    return cache_folder() / f"store-{chunks}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def fill(
    store: Store,
    chunks: int,
    processor: Clock = time.process_time,
    settle: Callable[[], None] = lambda: None,
) -> Filling:
    """Store texts and vectors for so many chunks, and do what is to be done at the end."""
    source = Source("synthetic", "synthetic", None, "notes", "synthetic")
    store.catalog.put_source(source)
    store.models.add(BundledEmbedder.identity, {})
    words, vectors = list[Cost](), list[Cost]()
    with store.lock(source.id, "syncing this source", wait_s=0):
        for number, texts in enumerate(batches_of_texts(chunks)):
            documents = list(documents_of(source, number, texts))
            words.append(cost_of(partial(store.catalog.put_documents, documents), processor))
            made = vectors_for([chunk.chunk_id for chunk in vectors_of(store).pending(0, BATCH)], seed=number)
            vectors.append(cost_of(partial(vectors_of(store).put, list(keyed(made))), processor))
        settling = cost_of(settle, processor)
    return Filling(together(words), together(vectors), settling)


def batches_of_texts(chunks: int) -> Iterator[list[str]]:
    """Yield the texts of chunks, batch by batch."""
    words = np.array(_vocabulary(), dtype=object)
    shares = 1 / (np.arange(len(words)) + 2.7) ** 1.07  # Zipf's law as Mandelbrot put it
    edges = np.cumsum(shares / shares.sum())
    chance = np.random.default_rng(SEED)
    for start in range(0, chunks, BATCH):
        size = min(BATCH, chunks - start)
        drawn = words[
            np.minimum(np.searchsorted(edges, chance.random((size, WORDS_A_CHUNK))), len(words) - 1)
        ]
        yield [" ".join(row) for row in drawn]


def documents_of(
    source: Source, batch: int, texts: Sequence[str]
) -> Iterator[tuple[Document, Sequence[Piece]]]:
    """Yield documents with a batch of texts for their chunks."""
    for start in range(0, len(texts), CHUNKS_A_DOCUMENT):
        number = batch * BATCH + start
        document = Document(f"d{number}", source.id, f"synthetic/{number}.md", "markdown", f"Page {number}")
        some = texts[start : start + CHUNKS_A_DOCUMENT]
        yield document, [Piece(text, 0, len(text), at + 1, at + 1) for at, text in enumerate(some)]


def vectors_for(ids: Sequence[ChunkId], *, seed: int) -> list[tuple[ChunkId, Vector]]:
    """Return a vector for each of these chunks, the same every time."""
    rows = unit_rows(np.random.default_rng([SEED, seed]).standard_normal((len(ids), DIMENSION)))
    return [(chunk_id, row.tobytes()) for chunk_id, row in zip(ids, rows, strict=True)]


def unit_rows(matrix: NDArray[np.float64]) -> Floats:
    """Return rows of length 1, as stores keep them."""
    rows: Floats = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype("<f4")
    return rows


def questions(count: int) -> list[str]:
    """Return questions of two to four words that are in 28 % of the chunks or in as few as 0.1 %."""
    chance = random.Random(SEED)
    known = _vocabulary()
    found: dict[str, None] = {}
    while len(found) < count:
        words = [known[int(30 * 250 ** chance.random())] for _ in range(chance.randint(2, 4))]
        found[" ".join([chance.choice(QUESTION_WORDS), *words])] = None
    return list(found)
