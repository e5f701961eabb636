"""Links: what they find for questions of several passages, and what they cost.

    KB_BENCH_DATA=FOLDER KB_BENCH_HOPS=2wiki,hotpot python -m benchmarks links

The sets are in BEIR layout, a document a passage, all passages that a question needs being relevant to it.
Found is the share of these among the first seven results, and among the first five and two links. Time is
that of a sync of pages that link to and mention each other, with the bundled model and without, and that of
the stage of a search, in stores in which every chunk has links.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from unittest import mock

from benchmarks.development import folder, opened
from benchmarks.measure import Cost, Row, absent, at_least, at_most, cost_of, cpu_ms, in_turn, sized, together
from benchmarks.synthetic import make_old, write_markdown
from concord.index.links import find_mentions
from concord.knowledge import KnowledgeBase
from concord.quality.collection import read_collection
from concord.search.pipeline import search
from concord.store.contract import Store
from concord.store.sqlite.store import SQLiteStore
from concord.types import Document, Filter, Link, Piece, Request, Source, silent

SETS = "2wiki,hotpot,musique"
PLAIN, BESIDE, LEAST = 7, 5, 0.93  # results alone; results with two links; and what these are to find
PAGES = sized(40, 4)  # of 8 kB, embedded
MORE_PAGES = sized(400, 8)  # searched by words alone
ROUNDS = sized(3, 1)
SLOWER = 1.05
SIZES = sized(
    ((10_000, 1.0), (100_000, 3.0)), ((500, 1.0),)
)  # chunks, and milliseconds that a stage may take
ASKED = sized(200, 5)  # searches of ten hits
HITS, CHUNKS_A_DOCUMENT, LINKS_A_CHUNK = 10, 10, 8
GROUP = 200  # documents stored together


def run() -> Iterator[Row]:
    """Yield what links cost a sync, what they find, and what they cost a search."""
    yield _sync_row("a sync with links, embedding", PAGES, "bundled")  # before vectors are kept
    yield _sync_row("a sync with links, words alone", MORE_PAGES, "")
    for name in os.environ.get("KB_BENCH_HOPS", SETS).split(","):
        yield from _found(name)
    for chunks, limit in SIZES:
        yield _stage_row(chunks, limit)


def _found(name: str) -> Iterator[Row]:
    if not (folder() / name / "corpus.jsonl").is_file():
        yield absent(f"{name}: passages that questions need", f"not in {folder()}")
        return
    collection = read_collection(folder() / name)
    plain, beside = [], []
    with opened() as knowledge, knowledge.measuring.indexed_apart(collection, silent) as tools:
        for id, text in collection.judged.items():
            needed = set(collection.relevant(id))
            alone = search(Request(text, top=PLAIN), tools)
            both = search(Request(text, top=BESIDE), tools)
            plain.append(_share(needed, [hit.document.id for hit in alone.hits]))
            shown = [*(hit.document.id for hit in both.hits), *(row.document_id for row in both.linked)]
            beside.append(_share(needed, shown))
    what = f"{name}: needed passages among {BESIDE} results and two links ({len(plain)} questions)"
    ours, theirs = mean(beside), mean(plain)
    figures = f"{ours:.3f}", f"{theirs:.3f} among {PLAIN} results", ours
    yield at_least(what, *figures, LEAST) if name == SETS.partition(",")[0] else Row(what, *figures)


def _share(needed: set[str], shown: Sequence[str]) -> float:
    return len(needed.intersection(shown)) / len(needed)


def _sync_row(what: str, pages: int, provider: str) -> Row:
    """Compare syncs of the same pages with links and without."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        write_markdown(home / "pages", pages)
        _link_pages(home / "pages")
        make_old(home / "pages")
        works = {
            "with": partial(_sync, home, provider),
            "without": partial(_without, partial(_sync, home, provider)),
        }
        costs = in_turn(ROUNDS, works)
    ours, theirs = cpu_ms(costs["with"]), cpu_ms(costs["without"])
    return at_most(what, f"{ours:,.0f} ms cpu", f"{theirs:,.0f} ms without links", ours / theirs, SLOWER)


def _sync(home: Path, provider: str) -> Cost:
    with tempfile.TemporaryDirectory(dir=home) as place:
        settings = {"store__url": f"sqlite://{place}/store"} | (
            {"embed__provider": provider} if provider else {}
        )
        with KnowledgeBase.open(**settings) as kb:
            kb.parts.tokenizer().token_starts("warm")
            if provider and kb.embedder:
                kb.embedder.warm()
            return cost_of(lambda: kb.add(home / "pages", embed=bool(provider)))


def _without(work: Callable[[], Cost]) -> Cost:
    """Do it without looking for links."""
    with (
        mock.patch("concord.text.chunk.with_links", lambda extracted, pieces: pieces),
        mock.patch("concord.store.changes.put_links"),
        mock.patch("concord.index.sync.find_mentions"),
    ):
        return work()


def _link_pages(place: Path) -> None:
    """Let each page link to some others, and mention the title of one."""
    chance = random.Random(len(str(place)))
    pages = sorted(place.rglob("*.md"))
    titles = {page: page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for page in pages}
    for page in pages:
        others = chance.sample(pages, min(4, len(pages)))
        links = ", ".join(f"[it]({os.path.relpath(other, page.parent)})" for other in others)
        with page.open("a", encoding="utf-8") as file:
            file.write(f"\nSee {links} and {titles[others[0]]}.\n")


def _stage_row(chunks: int, limit: float) -> Row:
    """Time what a search reads of links, for ten hits."""
    with tempfile.TemporaryDirectory() as place:
        store = SQLiteStore.open(f"sqlite://{place}", "default")
        ids = _fill(store, chunks)
        chance = random.Random(chunks)
        asked = [chance.sample(ids, HITS) for _ in range(ASKED)]
        store.links.pointing(asked[0], Filter())
        cost = together([cost_of(partial(_look, store, few)) for few in asked])
        store.close()
    ours = cost.cpu / ASKED * 1000
    return at_most(
        f"links of {HITS} hits, {chunks:,} chunks", f"{ours:.2f} ms cpu", f"{limit:g} ms", ours / limit, 1.0
    )


def _look(store: Store, hits: Sequence[int]) -> None:
    rows = store.links.pointing(hits, Filter())
    store.catalog.read([row.first for row in rows[:6]])


def _fill(store: Store, chunks: int) -> list[int]:
    """Store documents whose chunks link to others and mention them."""
    documents, chance = chunks // CHUNKS_A_DOCUMENT, random.Random(chunks)
    store.catalog.put_source(Source("docs", "docs", "/docs", "directory", "docs"))
    ids: list[int] = []
    for start in range(0, documents, GROUP):
        group = [
            _document(number, documents, chance) for number in range(start, min(start + GROUP, documents))
        ]
        ids += [id for own in store.catalog.put_documents(group) for id in own]
    find_mentions(store)
    return ids


def _document(number: int, documents: int, chance: random.Random) -> tuple[Document, list[Piece]]:
    made = Document(f"d{number}", "docs", f"docs/{number}.md", "markdown", f"Chapter part{number}")
    pieces = []
    for at in range(CHUNKS_A_DOCUMENT):
        others = [chance.randrange(documents) for _ in range(LINKS_A_CHUNK)]
        text = f"Passage {at}. " + " ".join(f"Chapter part{other} says more." for other in others[::2])
        links = tuple(Link("link", f"{other}.md", "it") for other in others[1::2])
        pieces.append(Piece(text, at * 200, at * 200 + len(text), at + 1, at + 1, links=links))
    return made, pieces
