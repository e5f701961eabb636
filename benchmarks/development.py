"""The development sets: where they are, and the answers to their queries and to each other's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks import kept_readings
from benchmarks.measure import sized
from benchmarks.synthetic import cache_folder
from concord.core import plugins
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, Entry, foreign_queries, read_collection
from concord.quality.evaluate import Evaluation, evaluate
from concord.quality.fit import JudgedSet
from concord.search.calibration import Calibration
from concord.types import silent

SETS = (
    "scifact",
    "cranfield",
    "cosqa-dev",
    "k8s-anchor",
    "datatalks-faq",
    "xquad-en",
    "xquad-de",
    "xquad-zh",
)
BY_HAND = "squad2-dev"  # the set that has near misses written by people
TRAIN = {"scifact": "train"}  # judgements to tune on, where the others are kept for reporting
QUERIES = 500  # asked of a set, so that the largest does not take an hour
ASKED = 1200  # where confidence is measured: all but of one set, for an error to stand out from chance


def folder() -> Path:
    """Return where the sets are: KB_BENCH_DATA, else beside the project.

    A small run takes none but those it is told of: to embed those beside the project takes hours.
    """
    return Path(os.environ.get("KB_BENCH_DATA") or sized("../shared/data", os.devnull))


def opened(**settings: str) -> KnowledgeBase:
    """Return a knowledge base that embeds and reads no text which a benchmark has embedded or read before."""
    kept_readings.keep()
    plugins.TABLES["embedders"] |= {
        "bundled": "benchmarks.kept_vectors:KeptEmbedder",
        "multilingual": "benchmarks.kept_vectors:KeptMultilingual",
    }
    return KnowledgeBase.open(**settings)


def present(names: Sequence[str] = SETS) -> list[str]:
    """Return the sets that are there; those that are not are named on stderr."""
    found = [name for name in names if (folder() / name / "corpus.jsonl").is_file()]
    missing = [name for name in names if name not in found]
    if missing:
        sys.stderr.write(f"not in {folder()}: {', '.join(missing)} (KB_BENCH_DATA names their folder)\n")
    return found


def strangers(name: str, names: Sequence[str]) -> list[Path]:
    """Return the sets whose queries a set cannot answer: all others but those about the same articles."""
    return [folder() / other for other in names if _articles(other) != _articles(name)]


def _articles(name: str) -> str:
    """Return what translations of a set have in common; xquad is made from articles that squad2 has."""
    return name.partition("-")[0].replace("squad2", "xquad")


def measured(
    knowledge: KnowledgeBase,
    name: str,
    names: Sequence[str],
    split: str | None = None,
    calibration: Calibration | None = None,
) -> Evaluation:
    """Evaluate a set with the queries of the others; documents are embedded once and kept in the cache.

    A calibration stands in for the one that ships.
    """
    sys.stderr.write(f"{name}{f' ({split})' if split else ''} …\n")
    limit = int(os.environ.get("KB_BENCH_QUERIES", ASKED))
    collection = read_collection(folder() / name, split).sampled(limit)
    others = foreign_queries(strangers(name, names), limit)
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        if calibration is not None:
            tools = replace(tools, calibration=calibration)
        return evaluate(collection, tools, silent, others)


def unshared(collection: Collection) -> Collection:
    """Return a collection without the questions about articles that a reader may have been trained on.

    Paragraphs have the same ids in each language, ARTICLE-PARAGRAPH; the English ones tell which are shared.
    """
    twin, trained = folder() / "xquad-en", folder() / BY_HAND
    if not collection.folder.name.startswith("xquad-") or not (trained / "corpus.jsonl").is_file():
        return collection
    texts = {entry.text for entry in read_collection(trained).documents()}
    shared = {_article(entry.id) for entry in read_collection(twin).documents() if entry.text in texts}
    asked = {
        id: text
        for id, text in collection.judged.items()
        if shared.isdisjoint(map(_article, collection.relevant(id)))
    }
    return replace(collection, queries=asked)


def _article(paragraph: str) -> str:
    return paragraph.partition("-")[0]


def rows(name: str, file: str) -> list[dict[str, Any]]:
    """Return the rows of one of a set's files; none where it has no such file."""
    path = folder() / name / file
    return [*map(json.loads, path.read_text(encoding="utf-8").splitlines())] if path.is_file() else []


def rewritten(collection: Collection, name: str, documents: Iterable[Entry]) -> Collection:
    """Return a collection with other documents, which are written where benchmarks keep what they make."""
    place = cache_folder().absolute() / "rewritten" / name
    place.mkdir(parents=True, exist_ok=True)
    with (place / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for entry in documents:
            file.write(json.dumps({"_id": entry.id, "title": entry.title, "text": entry.text}) + "\n")
    return replace(collection, folder=place)


def judged(evaluation: Evaluation) -> JudgedSet:
    """Return what calibration is fitted to and measured on."""
    foreign = [outcome for outcomes in evaluation.foreign.values() for outcome in outcomes]
    return JudgedSet(evaluation.name, evaluation.outcomes, foreign)
