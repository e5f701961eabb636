"""Stores of a few documents: is what is there told from what is not, as among thousands?

    KB_BENCH_DATA=../shared/data python -m benchmarks few

Each question of a collection is asked of so many documents of it, once with one that is relevant among them
and once without.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from statistics import mean

from msgspec.structs import replace

from benchmarks.copying import copy_documents
from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent, sized
from benchmarks.stored import vectors_of
from benchmarks.synthetic import SEED
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.search.legs import Semantic, Tools
from concord.search.pipeline import search
from concord.search.setup import Searching
from concord.types import Answer, Document, Request, silent

SETS = ("scifact", "datatalks-faq", "xquad-en")
SIZES = (6, 30, 300)
LEAST = 0.8  # of the questions that have an answer are called answerable
QUERIES = sized(40, 2)  # of each set


def run() -> Iterator[Row]:
    """Yield what is called answerable, by how many documents there are."""
    chosen = present(SETS)
    if not chosen:
        yield absent("stores of a few documents", f"no set in {folder()}")
        return
    asked: dict[int, list[tuple[Answer, set[str]]]] = {size: [] for size in SIZES}
    with opened() as knowledge:
        for name in chosen:
            collection = read_collection(folder() / name, None).sampled(QUERIES)
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                for size in SIZES:
                    asked[size] += _answers(collection, knowledge, tools, size)
    for size, answers in asked.items():
        yield from _rows(f"{size} documents", answers)


def _answers(
    collection: Collection, knowledge: KnowledgeBase, tools: Tools, size: int
) -> Iterator[tuple[Answer, set[str]]]:
    """Yield an answer where one document is relevant, and one where none is, with all that are relevant."""
    chance = random.Random(SEED)
    documents = {document.id: document for document in tools.store.catalog.documents()}
    for query, text in collection.judged.items():
        relevant = [id for id, grade in collection.qrels[query].items() if grade > 0 and id in documents]
        others = [id for id in documents if id not in relevant]
        if not relevant or len(others) < size:
            continue
        for ids in ([chance.choice(relevant), *chance.sample(others, size - 1)], chance.sample(others, size)):
            yield _asked(text, [documents[id] for id in ids], knowledge, tools), set(relevant)


def _asked(text: str, documents: Sequence[Document], knowledge: KnowledgeBase, tools: Tools) -> Answer:
    assert knowledge.embedder is not None
    with KnowledgeBase.open(store__url="memory://") as few:
        copy_documents(documents, tools.store, few.store)
        words = Searching(few.parts).tools(Request("", mode="fts5"), wait_for_model=False).strategies
        meaning = Semantic(vectors_of(few.store), knowledge.embedder)
        given = replace(
            tools, store=few.store, strategies=[*words, meaning], similarity=meaning, snapshot=None
        )
        return search(Request(text), given)


def _rows(what: str, answers: Sequence[tuple[Answer, set[str]]]) -> Iterator[Row]:
    sides: dict[bool, list[bool]] = {True: [], False: []}
    for answer, relevant in answers:
        is_held = any(hit.document.id in relevant for hit in answer.hits)
        sides[is_held].append(bool(answer.answerable) == is_held)
    right, refused = (mean(side or [False]) for side in sides.values())
    row = Row(f"{what}: answerable, where one is relevant", f"{right:.3f}", f"n {len(sides[True])}")
    yield row._replace(target=f"≥ {LEAST:g}", is_met=right >= LEAST)
    yield Row(f"{what}: not answerable, where none is", f"{refused:.3f}", f"n {len(sides[False])}")
