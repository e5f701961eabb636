"""The right passage of a long document: does it come first, and what does its score say?

    KB_BENCH_DATA=../shared/data python -m benchmarks passages

Paragraphs are put together to the articles they are from, and each article is indexed as one document. A hit
is right if it and the paragraph that answers the question share half of the shorter of the two. `score` is
fitted to documents and `passage_score` is what a passage would have alone; both stand beside what is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.development import folder, opened, present, rewritten
from benchmarks.measure import Row, absent, sized
from concord.quality.collection import Collection, Entry, read_collection
from concord.quality.evaluate import ask_one
from concord.text.clean import clean
from concord.types import Hit, silent

SETS = ("squad2-dev", "xquad-en", "xquad-de")
QUERIES = sized(600, 2)  # of each set
WITHIN = (1, 3, 5)
GOALS = {"squad2-dev": 0.847}  # share of questions whose first hit is right: 0.817 at 9482f1c, and 0.03 more
BETWEEN = "\n\n"  # two paragraphs of an article

Place = tuple[str, int, int]  # an article, and where in it a paragraph begins and ends


class Found(NamedTuple):
    """A hit, and what is true of it."""

    hit: Hit
    is_document: bool  # its document has the answer
    is_passage: bool  # and so has the passage


def run() -> Iterator[Row]:
    """Yield how often the right passage comes first, and what scores promise."""
    chosen = present(SETS)
    if not chosen:
        yield absent("passages of long documents", f"no set of articles in {folder()}")
        return
    with opened() as knowledge:
        for name in chosen:
            paragraphs = read_collection(folder() / name).sampled(QUERIES)
            articles, places = put_together(paragraphs)
            with knowledge.measuring.indexed_apart(articles, silent) as tools:
                answers = [
                    _found(
                        ask_one(text, tools).answer.hits, [places[id] for id in paragraphs.relevant(query)]
                    )
                    for query, text in articles.judged.items()
                ]
            yield from _orders(name, answers)
            yield from _promises(name, answers)


def put_together(paragraphs: Collection) -> tuple[Collection, Mapping[str, Place]]:
    """Return the articles that paragraphs are from, and where each is; ids are ARTICLE-PARAGRAPH."""
    articles: dict[str, Entry] = {}
    places: dict[str, Place] = {}
    for document in paragraphs.documents():
        article, paragraph = _article(document.id), clean(document.text, paged=False)
        before = f"{articles[article].text}{BETWEEN}" if article in articles else ""
        articles[article] = Entry(article, document.title, before + paragraph)
        places[document.id] = (article, len(before), len(before) + len(paragraph))
    qrels = {
        query: {_article(document): grade for document, grade in grades.items()}
        for query, grades in paragraphs.qrels.items()
    }
    made = rewritten(paragraphs, f"{paragraphs.folder.name}-articles", articles.values())
    return replace(made, qrels=qrels), places


def _article(paragraph: str) -> str:
    return paragraph.rpartition("-")[0] or paragraph


def _found(hits: Sequence[Hit], answering: Sequence[Place]) -> list[Found]:
    return [
        Found(
            hit,
            any(hit.document.id == article for article, _, _ in answering),
            any(_is_at(hit, place) for place in answering),
        )
        for hit in hits
    ]


def _is_at(hit: Hit, place: Place) -> bool:
    """Whether a hit and a paragraph share half of the shorter one."""
    article, start, end = place
    shared = min(hit.chunk.end, end) - max(hit.chunk.start, start)
    return hit.document.id == article and shared * 2 >= min(hit.chunk.end - hit.chunk.start, end - start)


def _orders(name: str, answers: Sequence[Sequence[Found]]) -> Iterator[Row]:
    n = f"n {len(answers):,}"
    for depth in WITHIN:
        share = mean(any(found.is_passage for found in hits[:depth]) for hits in answers)
        goal = GOALS.get(name) if depth == 1 else None
        row = Row(f"{name}: right passage within {depth}", f"{share:.3f}", n)
        yield row._replace(target=f"≥ {goal:g}", is_met=share >= goal) if goal else row
    first = mean(any(found.is_document for found in hits[:1]) for hits in answers)
    yield Row(f"{name}: right document first", f"{first:.3f}", n)


def _promises(name: str, answers: Sequence[Sequence[Found]]) -> Iterator[Row]:
    """Yield what scores promise of the best hit of each document and of the others, beside what is true."""
    sides: dict[bool, list[Found]] = {True: [], False: []}
    for hits in answers:
        seen: set[str] = set()
        for found in sorted(hits, key=lambda found: -found.hit.passage_score):
            sides[found.hit.document.id not in seen].append(found)
            seen.add(found.hit.document.id)
    for is_best, some in sides.items():
        what, n = ("best" if is_best else "other") + " hits of documents", f"n {len(some):,}"
        for score, truth in (("score", "is_document"), ("passage_score", "is_passage")):
            promised = mean([getattr(found.hit, score) for found in some] or [0.0])
            true = mean([getattr(found, truth) for found in some] or [False])
            yield Row(f"{name}, {what}: {score}", f"{promised:.3f}", f"came true {true:.3f}, {n}")
