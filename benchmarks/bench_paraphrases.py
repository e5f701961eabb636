"""Questions whose words the answer does not have: is `auto` as good as meaning alone?

    KB_BENCH_DATA=../shared/data python -m benchmarks paraphrases

Of each set those questions are asked that share least with what answers them: words, each by its rarity, cut
to their first letters so that inflections are the same. The entries of the FAQ lose their own questions,
which are then asked, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from benchmarks.development import folder, opened, present, rewritten
from benchmarks.measure import Row, absent, at_least, sized
from concord.cli.output import table
from concord.quality.collection import Collection, Entry, read_collection
from concord.quality.evaluate import MODES, evaluate
from concord.types import silent

FAQ = "datatalks-faq"
SETS = (FAQ, "squad2-dev", "xquad-en")
QUERIES = sized(300, 4)  # of each set
LEAST = 0.98  # of the better leg
LEGS = ("bm25", "semantic")
STEM = 5  # letters by which two words are the same

_WORD = re.compile(r"\w+")


def run() -> Iterator[Row]:
    """Print nDCG@10 of every mode, and yield how `auto` compares with the better leg."""
    chosen = present(SETS)
    if not chosen:
        yield absent("paraphrases", f"no set of questions in {folder()}")
        return
    with opened() as knowledge:
        for name, collection in _paraphrases(chosen):
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                measures = evaluate(collection, tools, silent).measures
            values = {mode: measures[mode]["nDCG@10"] for mode in MODES}
            print(table((name, *MODES), [("nDCG@10", *(f"{value:.4f}" for value in values.values()))]))
            better, auto = max(values[leg] for leg in LEGS), values["auto"]
            yield at_least(f"{name}: auto", f"{auto:.4f}", f"{better:.4f}", auto / better, LEAST)


def _paraphrases(names: list[str]) -> Iterator[tuple[str, Collection]]:
    for name in names:
        collection = read_collection(folder() / name)
        if name == FAQ:
            entries = [*collection.documents()]
            untitled = (entry._replace(title="") for entry in entries)
            collection = rewritten(collection, f"{name}-untitled", untitled)
            questions = {one.id: one.title for one in entries if one.title.endswith("?")}
            judged = {id: {id: 1} for id in questions}
            yield (
                "questions of the FAQ",
                replace(collection, queries=questions, qrels=judged).sampled(QUERIES),
            )
        yield f"{name}, few shared words", least_shared(collection)


def least_shared(collection: Collection) -> Collection:
    """Return the questions that share least with what answers them."""
    words = {entry.id: _words(entry) for entry in collection.documents()}
    holding = Counter(word for held in words.values() for word in held)
    weights = {word: math.log(len(words) / count) for word, count in holding.items()}
    shared = {
        id: max(_shared(text, words.get(document, set()), weights) for document in collection.relevant(id))
        for id, text in collection.judged.items()
    }
    chosen = sorted(shared, key=lambda id: (shared[id], id))[:QUERIES]
    return replace(collection, queries={id: collection.queries[id] for id in chosen})


def _shared(question: str, held: set[str], weights: Mapping[str, float]) -> float:
    """Return the share of a question's words that a document holds, by weight; unknown ones weigh most."""
    most = max(weights.values())
    asked = {word: weights.get(word, most) for word in _stems(question)}
    return sum(weight for word, weight in asked.items() if word in held) / (sum(asked.values()) or 1)


def _words(entry: Entry) -> set[str]:
    return _stems(f"{entry.title} {entry.text}")


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(text.lower())}
