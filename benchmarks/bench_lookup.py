"""Whoever types two rare words that stand together somewhere wants to see where: is that what comes first?

    KB_BENCH_DATA=../shared/data python -m benchmarks lookup

Questions are not the only thing people ask. The queries here are made: neighbouring words of a few documents,
such as a person's name, one or both of them rare. Relevant is every document in which they stand together. A
model of meaning knows little of them, so what fuses must notice.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from benchmarks.development import folder, present
from benchmarks.measure import Row, absent, at_least
from concord.knowledge import KnowledgeBase
from concord.parts import silent
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import evaluate

SETS = ("scifact", "cranfield", "datatalks-faq")
QUERIES = 120  # of two rare words, and as many of a rare and a frequent one
MOST_DOCUMENTS = 4  # that hold both words together
RARE, FREQUENT = 0.004, 0.01  # shares of the documents that hold a word
LEAST = 0.99  # of words alone
SEED = 3

_WORD = re.compile(r"[a-z][a-z'-]{3,}")
Pair = tuple[str, str]


def run() -> Iterator[Row]:
    """Yield how what fuses compares with words alone."""
    chosen = present(SETS)
    if not chosen:
        yield absent("looking up rare words", f"no development set in {folder()}")
        return
    with KnowledgeBase.open() as knowledge:
        for name in chosen:
            made = lookups(read_collection(folder() / name))
            with knowledge.measuring.apart(made, silent) as tools:
                found = evaluate(made, tools, silent).measures
            auto, words = found["auto"]["nDCG@10"], found["bm25"]["nDCG@10"]
            yield at_least(
                f"{name}: two rare words, auto beside words alone",
                f"{auto:.4f}",
                f"{words:.4f}",
                auto / words,
                LEAST,
            )


def lookups(collection: Collection) -> Collection:
    """Return the documents of a collection with queries made from them."""
    held = _pairs(collection)
    documents = sum(1 for _ in collection.documents())
    holding = Counter(word for words in _texts(collection).values() for word in set(words))
    rare, frequent = max(4.0, RARE * documents), FREQUENT * documents
    known = {pair: found for pair, found in held.items() if len(found) <= MOST_DOCUMENTS}
    both = [pair for pair in known if max(holding[word] for word in pair) <= rare]
    one = [p for p in known if min(holding[w] for w in p) <= rare and max(holding[w] for w in p) > frequent]
    draw = random.Random(SEED)
    asked = [pair for some in (both, one) for pair in draw.sample(sorted(some), min(QUERIES, len(some)))]
    queries = {" ".join(pair): " ".join(pair) for pair in asked}
    return replace(
        collection, queries=queries, qrels={" ".join(p): dict.fromkeys(known[p], 1) for p in asked}
    )


def _texts(collection: Collection) -> dict[str, list[str]]:
    return {one.id: _WORD.findall(f"{one.title} . {one.text}".lower()) for one in collection.documents()}


def _pairs(collection: Collection) -> dict[Pair, set[str]]:
    """Return which documents hold which words next to each other."""
    found: dict[Pair, set[str]] = defaultdict(set)
    for document, text in ((one.id, f"{one.title} . {one.text}".lower()) for one in collection.documents()):
        for first, second in pairwise(_WORD.finditer(text)):
            if text[first.end() : second.start()] == " ":
                found[first[0], second[0]].add(document)
    return found
