"""Hard questions: few words shared with the answer, two subjects at once, nothing but two rare words.

    KB_BENCH_DATA=../shared/data python -m benchmarks questions

Paraphrases are the questions of a set that share least with what answers them: words, each by its rarity, cut
to their first letters so that inflections are the same. Entries of the FAQ lose their own questions, which
are then asked, too. Two subjects are two queries of a set joined; each asks for documents of its own. Rare
words are neighbours in a few documents, such as a person's name; relevant is every document in which they
stand together. A model of meaning knows little of them, so what fuses must notice.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from benchmarks.development import folder, opened, present, rewritten
from benchmarks.measure import Row, absent, at_least, sized
from benchmarks.synthetic import SEED
from concord.cli.output import table
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import MODES, evaluate
from concord.types import silent

FAQ = "datatalks-faq"
PARAPHRASED = (FAQ, "squad2-dev", "xquad-en")
JOINTS = {
    "k8s-anchor": "difference between {} and {}",
    "scifact": "{} and {}",
    FAQ: "{} {}",
    "squad2-dev": "{} And {}",
}
RARE_IN = ("scifact", "cranfield", FAQ)
QUERIES, PAIRS = sized(300, 4), sized(200, 4)  # of each set
RARE_PAIRS = 120  # of two rare words, and as many of a rare and a frequent one
MOST_DOCUMENTS = 4  # that hold both words together
RARE, FREQUENT = 0.004, 0.01  # shares of the documents that hold a word
STEM = 5  # letters by which two words are the same

_WORD = re.compile(r"\w+")
_RARE_WORD = re.compile(r"[a-z][a-z'-]{3,}")
Pair = tuple[str, str]


# What `auto` is measured by, and what it is to reach: a share of the best of some modes.
Kind = tuple[str, tuple[str, ...], float]
PARAPHRASES: Kind = ("nDCG@10", ("bm25", "semantic"), 0.98)
TWO_SUBJECTS: Kind = ("R@5", ("dominant",), 1.0)
RARE_WORDS: Kind = ("nDCG@10", ("bm25",), 0.99)


def run() -> Iterator[Row]:
    """Print what every mode reaches, and yield how `auto` compares."""
    if not present([*{*PARAPHRASED, *JOINTS, *RARE_IN}]):
        yield absent("hard questions", f"no set of questions in {folder()}")
        return
    cells = []
    with opened() as knowledge:
        for what, (measure, rivals, least), collection in _asked():
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                measures = evaluate(collection, tools, silent).measures
            values = {mode: measures[mode][measure] for mode in MODES}
            n = f"{len(collection.judged):,}"
            cells.append((what, measure, n, *(f"{value:.4f}" for value in values.values())))
            auto, rival = values["auto"], max(values[mode] for mode in rivals)
            beside = f"{what}: auto ÷ {' or '.join(rivals)}"
            yield at_least(beside, f"{auto:.4f}", f"{rival:.4f}", auto / rival, least)
    print(table(("questions", "measure", "n", *MODES), cells), flush=True)


def _asked() -> Iterator[tuple[str, Kind, Collection]]:
    for name in present(PARAPHRASED):
        collection = read_collection(folder() / name)
        if name == FAQ:
            entries = [*collection.documents()]
            collection = rewritten(
                collection, f"{name}-untitled", (entry._replace(title="") for entry in entries)
            )
            questions = {entry.id: entry.title for entry in entries if entry.title.endswith("?")}
            asked = replace(collection, queries=questions, qrels={id: {id: 1} for id in questions})
            yield f"{name}, its own", PARAPHRASES, asked.sampled(QUERIES)
        yield f"{name}, few shared words", PARAPHRASES, least_shared(collection)
    for name in present([*JOINTS]):
        yield f"{name}, two subjects", TWO_SUBJECTS, joined(read_collection(folder() / name), JOINTS[name])
    for name in present(RARE_IN):
        yield f"{name}, rare words", RARE_WORDS, rare_words(read_collection(folder() / name))


def least_shared(collection: Collection) -> Collection:
    """Return the questions that share least with what answers them; a word that nothing holds weighs most."""
    words = {entry.id: _stems(f"{entry.title} {entry.text}") for entry in collection.documents()}
    holding = Counter(word for held in words.values() for word in held)

    def weight(some: set[str]) -> float:
        return sum(math.log(len(words) / max(1, holding[word])) for word in some)

    def shared(id: str) -> float:
        asked = _stems(collection.queries[id])
        held = max(weight(asked & words.get(document, set())) for document in collection.relevant(id))
        return held / (weight(asked) or 1)

    chosen = sorted(collection.judged, key=lambda id: (shared(id), id))[:QUERIES]
    return replace(collection, queries={id: collection.queries[id] for id in chosen})


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(text.lower())}


def joined(collection: Collection, joint: str) -> Collection:
    """Return the collection with queries joined two by two; no document is relevant to both of a pair."""
    judged = collection.sampled(2 * PAIRS).judged
    ids, half = [*judged], len(judged) // 2
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for one, other in zip(ids[:half], ids[half:], strict=False):
        relevant = [collection.relevant(one), collection.relevant(other)]
        if not set(relevant[0]) & set(relevant[1]):
            queries[f"{one} {other}"] = joint.format(judged[one], judged[other])
            qrels[f"{one} {other}"] = {document: 1 for some in relevant for document in some}
    return replace(collection, queries=queries, qrels=qrels)


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
    asked = [pair for kind in (both, one) for pair in draw.sample(sorted(kind), min(RARE_PAIRS, len(kind)))]
    texts = {" ".join(pair): known[pair] for pair in asked}
    judged = {text: dict.fromkeys(found, 1) for text, found in texts.items()}
    return replace(collection, queries={text: text for text in texts}, qrels=judged)


def _read(collection: Collection) -> tuple[int, Counter[str], dict[Pair, set[str]]]:
    """Return how many documents there are, how many hold each word, and which hold two next to each other."""
    holding: Counter[str] = Counter()
    held: dict[Pair, set[str]] = defaultdict(set)
    entries = list(collection.documents())
    for entry in entries:
        text = f"{entry.title} . {entry.text}".lower()
        words = list(_RARE_WORD.finditer(text))
        holding.update({word[0] for word in words})
        for first, second in pairwise(words):
            if text[first.end() : second.start()] == " ":
                held[first[0], second[0]].add(entry.id)
    return len(entries), holding, held
