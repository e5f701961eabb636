"""Answers that confidence is fitted to: what a set knows, what it cannot know, and what it only nearly knows.

Each query is asked with meaning and by words alone. Beside the whole set it is asked of stores of a few
documents, and of the set without the documents that answer it: topics are there then, and answers are not.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from benchmarks.copying import copy_documents
from benchmarks.development import TRAIN, folder, strangers
from benchmarks.synthetic import SEED
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, foreign_queries, read_collection
from concord.quality.evaluate import UNHURRIED_MS
from concord.search.legs import Semantic
from concord.search.pipeline import Examined, examine
from concord.search.tools import Tools
from concord.search_parts import Searching
from concord.types import Document, Mode, Request, silent

Kind = Literal["own", "foreign", "near"]

QUERIES = 300  # own queries of a set; half as many foreign ones and near misses
LEFT_OUT = 0.25  # of a set's documents, at most, that are taken away to make near misses
SIZES = {6: 30, 30: 8, 300: 2}  # documents of a small store, and how many such stores of a set
ASKED_OF_A_STORE = {6: 1, 30: 4, 300: 20}  # queries that it answers, and as many that it does not
IN_MEMORY = 30  # documents, up to which a store is kept in memory
MODES: tuple[Mode, ...] = ("auto", "fts5")


class Case(NamedTuple):
    """One answer, and what was true."""

    kind: Kind
    store: str  # the set, or a set and how many documents of it: "scifact/30"
    query_id: str
    examined: Examined
    judged: Mapping[str, int]  # document → how relevant


class Asked(NamedTuple):
    """One query, and which documents answer it."""

    kind: Kind
    id: str
    text: str
    judged: Mapping[str, int] = {}


def cases(knowledge: KnowledgeBase, name: str, names: Sequence[str]) -> Iterator[Case]:
    """Yield the answers to all that is asked of a set and of parts of it."""
    collection = read_collection(folder() / name, TRAIN.get(name)).sampled(QUERIES)
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        own = [Asked("own", id, text, collection.qrels[id]) for id, text in collection.judged.items()]
        others = foreign_queries(strangers(name, names), QUERIES // 2)
        foreign = [Asked("foreign", text, text) for texts in others.values() for text in texts]
        yield from _answers(name, [*own, *foreign, *_by_hand(name)], tools)
        documents = {document.id: document for document in tools.store.catalog.documents()}
        left_out, missed = _left_out(own, documents)
        kept = [document for id, document in documents.items() if id not in left_out]
        with _part(kept, knowledge, tools) as part:
            yield from _answers(name, missed[: QUERIES // 2], part)
        for size, stores in SIZES.items():
            for number in range(stores if len(documents) > 2 * size else 0):
                yield from _of_few(f"{name}/{size}", own, documents, size, number, knowledge, tools)


def _by_hand(name: str) -> list[Asked]:
    """Return questions that people wrote about passages which do not answer them, where a set has some."""
    path = folder() / name / "unanswerable.jsonl"
    if not path.is_file():
        return []
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    return [Asked("near", text, text) for text in random.Random(SEED).sample(texts, QUERIES)]


def _left_out(own: Sequence[Asked], documents: Mapping[str, Document]) -> tuple[set[str], list[Asked]]:
    """Return documents to take away, and the queries that nothing answers then."""
    gone: set[str] = set()
    for query in own:
        wanted = gone | _relevant(query)
        if len(wanted) <= LEFT_OUT * len(documents):
            gone = wanted
    missed = [query._replace(kind="near", judged={}) for query in own if _relevant(query) <= gone]
    return gone, missed


def _relevant(query: Asked) -> set[str]:
    return {id for id, grade in query.judged.items() if grade > 0}


def _of_few(
    name: str,
    own: Sequence[Asked],
    documents: Mapping[str, Document],
    size: int,
    number: int,
    knowledge: KnowledgeBase,
    tools: Tools,
) -> Iterator[Case]:
    """Yield the answers of a store of few documents to some queries it answers, and to others of the set."""
    chance = random.Random(f"{SEED} {name} {number}")
    asked = ASKED_OF_A_STORE[size]
    held = chance.sample(own, min(asked, len(own)))
    ids = {chance.choice(sorted(_relevant(query) & documents.keys())) for query in held}
    rest = sorted(documents.keys() - ids)
    ids |= {*chance.sample(rest, max(0, size - len(ids)))}
    lacking = [query for query in own if not _relevant(query) & ids]
    missed = [
        query._replace(kind="near", judged={}) for query in chance.sample(lacking, min(asked, len(lacking)))
    ]
    with _part([documents[id] for id in ids], knowledge, tools) as part:
        yield from _answers(name, [*held, *missed], part)


@contextmanager
def _part(documents: Sequence[Document], knowledge: KnowledgeBase, tools: Tools) -> Iterator[Tools]:
    """Yield what a store of some of the documents is searched with; vectors are those of the whole set."""
    assert knowledge.embedder is not None
    with tempfile.TemporaryDirectory() as place:
        url = "memory://" if len(documents) <= IN_MEMORY else f"sqlite:///{place}"
        with KnowledgeBase.open(store__url=url) as part:
            copy_documents(documents, tools.store, part.store)
            words = Searching(part.parts).for_words().strategies
            meaning = Semantic(part.store.vectors, knowledge.embedder)
            yield replace(
                tools, store=part.store, strategies=[*words, meaning], similarity=meaning, snapshot=None
            )


def _answers(store: str, asked: Iterable[Asked], tools: Tools) -> Iterator[Case]:
    by_words = replace(
        tools,
        strategies=[strategy for strategy in tools.strategies if strategy.leg == "lexical"],
        similarity=None,
        reranker=None,
    )
    for query in asked:
        for mode in MODES:
            request = Request(query.text, mode=mode, deadline_ms=UNHURRIED_MS)
            examined = examine(request, by_words if mode == "fts5" else tools)
            yield Case(query.kind, store, query.id, examined, query.judged)


__all__ = ["Asked", "Case", "Collection", "Path", "cases"]
