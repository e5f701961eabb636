"""Several passages of one document: what does a score say of each?

    KB_BENCH_DATA=../shared/data python -m benchmarks passages

Judged collections say which documents are relevant, so `score` is fitted to that, and `passage_score` is what
a passage would have alone. Here paragraphs are put together to the articles they are from, and it is known
which paragraph answers a question. No figure was set as a goal; rows are to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.development import folder, present
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import cache_folder
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import ask_one
from concord.types import Answer, silent

SETS = ("xquad-en", "xquad-de")
QUERIES = sized(400, 2)  # of each set


class _Told(NamedTuple):
    """A hit: the score it was given, and what is true of it."""

    is_best: bool  # of the hits of its document
    score: float
    alone: float  # the score of the passage alone
    is_document: bool  # the article holds the answer
    is_passage: bool  # and this passage is of the paragraph that does


def run() -> Iterator[Row]:
    """Yield what scores promise of the best hit of a document, and of its others, and what is true."""
    chosen = present(SETS)
    if not chosen:
        yield absent("several passages of one document", f"no set of articles in {folder()}")
        return
    with KnowledgeBase.open() as knowledge:
        for name in chosen:
            paragraphs = read_collection(folder() / name).sampled(QUERIES)
            articles = put_together(paragraphs, cache_folder() / "articles" / name)
            with knowledge.measuring.indexed_apart(articles, silent) as tools:
                told = [
                    one
                    for query, text in articles.judged.items()
                    for one in _told(ask_one(text, tools).answer, _answering(query, paragraphs))
                ]
            yield from _rows(name, told)


def put_together(paragraphs: Collection, place: Path) -> Collection:
    """Return the collection of the articles that paragraphs are from; their ids are ARTICLE-PARAGRAPH."""
    (place / "qrels").mkdir(parents=True, exist_ok=True)
    texts: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for one in paragraphs.documents():
        texts.setdefault(_article(one.id), []).append(one.text)
        titles[_article(one.id)] = one.title
    with (place / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for id, parts in texts.items():
            file.write(json.dumps({"_id": id, "title": titles[id], "text": "\n\n".join(parts)}) + "\n")
    qrels = {
        query: {_article(document): grade for document, grade in grades.items()}
        for query, grades in paragraphs.qrels.items()
    }
    return replace(paragraphs, folder=place, qrels=qrels)


def _article(paragraph: str) -> str:
    return paragraph.partition("-")[0]


def _answering(query: str, paragraphs: Collection) -> Mapping[str, str]:
    """Return the text of the paragraph that answers a question, by its article."""
    relevant = {id for id, grade in paragraphs.qrels[query].items() if grade > 0}
    return {_article(one.id): one.text for one in paragraphs.documents() if one.id in relevant}


def _told(answer: Answer, answering: Mapping[str, str]) -> Iterator[_Told]:
    seen: set[str] = set()
    for hit in sorted(answer.hits, key=lambda hit: -hit.passage_score):
        article = hit.document.id
        is_passage = article in answering and _share_a_middle(hit.chunk.text, answering[article])
        yield _Told(article not in seen, hit.score, hit.passage_score, article in answering, is_passage)
        seen.add(article)


def _share_a_middle(one: str, other: str) -> bool:
    """Whether one holds the middle third of the other: a chunk may be a part of a paragraph, or several."""
    one, other = " ".join(one.split()), " ".join(other.split())
    return _middle(one) in other or _middle(other) in one


def _middle(text: str) -> str:
    return text[len(text) // 3 : len(text) * 2 // 3]


def _rows(name: str, told: Sequence[_Told]) -> Iterator[Row]:
    for what, is_best in (("the best hit of each document", True), ("its other hits", False)):
        some = [one for one in told if one.is_best == is_best]
        for means, promised in (("", some), (" of 0.6 and more", [one for one in some if one.score >= 0.6])):
            n = f"n {len(promised):,}"
            label = f"{name}, {what}: mean score{means}"
            yield Row(label, _mean([one.score for one in promised]), n)
            yield Row("  its document has the answer", _mean([one.is_document for one in promised]), n)
            yield Row("  mean score of the passage alone", _mean([one.alone for one in promised]), n)
            yield Row("  it has the answer", _mean([one.is_passage for one in promised]), n)


def _mean(values: Sequence[float]) -> str:
    return f"{mean(values or [0.0]):.3f}"
