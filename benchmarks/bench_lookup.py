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
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import evaluate
from concord.types import silent

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
            with knowledge.measuring.indexed_apart(made, silent) as tools:
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
    documents, holding, held = _read(collection)
    rare, frequent = max(4.0, RARE * documents), FREQUENT * documents
    known = {pair: found for pair, found in held.items() if len(found) <= MOST_DOCUMENTS}
    rarer = {pair: min(holding[word] for word in pair) for pair in known}
    commoner = {pair: max(holding[word] for word in pair) for pair in known}
    both = [pair for pair in known if commoner[pair] <= rare]
    one = [pair for pair in known if rarer[pair] <= rare and commoner[pair] > frequent]
    draw = random.Random(SEED)
    asked = [pair for kind in (both, one) for pair in draw.sample(sorted(kind), min(QUERIES, len(kind)))]
    texts = {" ".join(pair): known[pair] for pair in asked}
    judged = {text: dict.fromkeys(found, 1) for text, found in texts.items()}
    return replace(collection, queries={text: text for text in texts}, qrels=judged)


def _read(collection: Collection) -> tuple[int, Counter[str], dict[Pair, set[str]]]:
    """Return how many documents there are, how many hold each word, and which hold two next to each other."""
    holding: Counter[str] = Counter()
    held: dict[Pair, set[str]] = defaultdict(set)
    entries = list(collection.documents())
    for one in entries:
        text = f"{one.title} . {one.text}".lower()
        words = list(_WORD.finditer(text))
        holding.update({word[0] for word in words})
        for first, second in pairwise(words):
            if text[first.end() : second.start()] == " ":
                held[first[0], second[0]].add(one.id)
    return len(entries), holding, held
