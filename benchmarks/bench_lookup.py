"""Whoever types a name, or two rare words that stand together, wants to see where: is that what comes first?

    KB_BENCH_DATA=../shared/data python -m benchmarks lookup

Questions are not the only thing people ask. Names are those of releases, definitions, options and settings
that are found on this machine (`lookups.py`); right is a hit that holds a line where the name is explained.
Rare words are neighbours in a few documents of the development sets, such as a person's name; relevant is
every document in which they stand together. A model of meaning knows little of either, so what fuses must
notice.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from benchmarks.development import folder, opened, present
from benchmarks.lookups import LookUp, looked_up, sources
from benchmarks.measure import Row, absent, at_least, sized
from benchmarks.synthetic import cache_folder
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import UNHURRIED_MS, evaluate
from concord.types import Hit, silent

SETS = ("scifact", "cranfield", "datatalks-faq")
GOALS = {
    "versions": 0.95,
    "definitions": 0.97,
    "options": 0.93,
    "qualified names": 0.9,
    "keys of settings": 0.9,
    "options of manual pages": 0.9,
}  # share of look-ups whose first hit is right
NAMES = sized(60, 2)  # of each kind
QUERIES = 120  # of two rare words, and as many of a rare and a frequent one
MOST_DOCUMENTS = 4  # that hold both words together
RARE, FREQUENT = 0.004, 0.01  # shares of the documents that hold a word
LEAST = 0.99  # of words alone
SEED = 3

_WORD = re.compile(r"[a-z][a-z'-]{3,}")
Pair = tuple[str, str]


def run() -> Iterator[Row]:
    """Yield how often the right lines come first, and how what fuses compares with words alone."""
    yield from _names()
    chosen = present(SETS)
    if not chosen:
        yield absent("looking up rare words", f"no development set in {folder()}")
        return
    with opened() as knowledge:
        for name in chosen:
            made = rare_words(read_collection(folder() / name))
            with knowledge.measuring.indexed_apart(made, silent) as tools:
                measures = evaluate(made, tools, silent).measures
            auto, words = measures["auto"]["nDCG@10"], measures["bm25"]["nDCG@10"]
            what = f"{name}: two rare words, auto beside words alone"
            yield at_least(what, f"{auto:.4f}", f"{words:.4f}", auto / words, LEAST)


def _names() -> Iterator[Row]:
    texts = sources()
    corpus = cache_folder().absolute() / sized("lookups", "lookups-small")
    shutil.rmtree(corpus, ignore_errors=True)
    for path, text in texts.items():
        (corpus / path).parent.mkdir(parents=True, exist_ok=True)
        (corpus / path).write_text(text, encoding="utf-8")
    with opened(store__url=f"sqlite://{os.environ['KB_HOME']}/{corpus.name}") as knowledge:
        knowledge.add(corpus)
        for kind, made in looked_up(texts).items():
            if made:
                yield _first(kind, random.Random(SEED).sample(made, min(NAMES, len(made))), knowledge)
            else:
                yield absent(kind, "this machine has no file of the kind")


def _first(kind: str, asked: Sequence[LookUp], knowledge: KnowledgeBase) -> Row:
    """Return how often the first hit is right; in the cache is a list of those that are not."""
    answers = [(one, knowledge.search(one.query, deadline_ms=UNHURRIED_MS).hits) for one in asked]
    missed = [one for one, hits in answers if not any(_is_right(hit, one) for hit in hits[:1])]
    listed = "".join(f"{one.query}\t{one.file}:{min(one.lines)}\n" for one in missed)
    (cache_folder() / f"missed {kind}.txt").write_text(listed, encoding="utf-8")
    share, goal = 1 - len(missed) / len(asked), GOALS[kind]
    within = sum(any(_is_right(hit, one) for hit in hits[:5]) for one, hits in answers) / len(asked)
    n = f"n {len(asked)}, within five {within:.3f}"
    return Row(f"{kind}: right first", f"{share:.3f}", n, target=f"≥ {goal:g}", is_met=share >= goal)


def _is_right(hit: Hit, wanted: LookUp) -> bool:
    lines = range(hit.chunk.start_line, hit.chunk.end_line + 1)
    return hit.document.path.endswith(f"/{wanted.file}") and not wanted.lines.isdisjoint(lines)


def rare_words(collection: Collection) -> Collection:
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
