"""Small judged collections in BEIR layout, written where a test wants them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from concord import KnowledgeBase
from concord.quality.fit import JudgedSet

THINGS = [
    "anchor",
    "barrel",
    "candle",
    "drum",
    "engine",
    "feather",
    "glove",
    "hammer",
    "ink",
    "jar",
    "kettle",
    "lantern",
    "mirror",
    "needle",
    "oar",
    "pencil",
    "quilt",
    "ribbon",
    "saddle",
    "teapot",
    "umbrella",
    "violin",
    "wheel",
    "xylophone",
    "yarn",
    "zipper",
    "basket",
    "compass",
    "dagger",
    "easel",
]
PLACES = ["attic", "bakery", "cellar", "dockyard", "embassy", "foundry"]
COLOURS = ["amber", "blue", "crimson", "dun", "ebony"]


def write_collection(
    folder: Path,
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels: Sequence[tuple[str, str, int]],
    split: str = "test",
) -> Path:
    """Write a collection; document texts and queries by id, judgements as (query, document, relevance)."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_rows(
        folder / "corpus.jsonl", [{"_id": i, "title": "", "text": text} for i, text in documents.items()]
    )
    _write_rows(folder / "queries.jsonl", [{"_id": i, "text": text} for i, text in queries.items()])
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, qrel)) for qrel in qrels)]
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def things(folder: Path, queries: int = 60) -> Path:
    """Write a collection of things in places; each query asks where one thing is."""
    documents = {
        f"d{at}": f"The {COLOURS[at % 5]} {thing} is kept in the {PLACES[at % 6]}, next to the door."
        for at, thing in enumerate(THINGS)
    }
    asked = {
        f"q{at}": f"where is the {COLOURS[at % 5]} {THINGS[at % len(THINGS)]} kept" for at in range(queries)
    }
    # Every seventh judgement names a document about something else: search cannot know of it.
    judged = [
        (query, f"d{(at + 11) % len(THINGS)}" if at % 7 == 6 else f"d{at % len(THINGS)}", 1)
        for at, query in enumerate(asked)
    ]
    return write_collection(folder, documents, asked, judged)


def recipes(folder: Path) -> Path:
    """Write a collection that has nothing to do with things in places."""
    documents = {"soup": "Boil lentils with cumin.", "bread": "Knead flour, water and salt."}
    queries = {
        f"r{at}": f"{verb} lentils before soaking" for at, verb in enumerate(("fry", "boil", "season"))
    }
    return write_collection(folder, documents, queries, [(query, "soup", 1) for query in queries])


def _write_rows(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def judged_things(knowledge: KnowledgeBase, folder: Path) -> JudgedSet:
    """Return what a knowledge base answers to questions about things, and to others that it cannot answer."""
    found = knowledge.measuring.evaluate(things(folder / "set"), unanswerable=[recipes(folder / "recipes")])
    return JudgedSet("things", found.outcomes, found.foreign["recipes"])
