"""Hard questions: such as share few words with their answers, and such as are about two subjects at once.

    KB_BENCH_DATA=../shared/data python -m benchmarks questions

Paraphrases are the questions of a set that share least with what answers them: words, each by its rarity, cut
to their first letters so that inflections are the same. Entries of the FAQ lose their own questions, which
are then asked, too. Two subjects are two queries of a set joined; each asks for documents of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.development import folder, opened, present, rewritten
from benchmarks.measure import Row, absent, at_least, sized
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
QUERIES, PAIRS = sized(300, 4), sized(200, 4)  # of each set
STEM = 5  # letters by which two words are the same

_WORD = re.compile(r"\w+")


class Kind(NamedTuple):
    """What `auto` is measured by, and what it is to reach: a share of the best of these modes."""

    measure: str
    rivals: tuple[str, ...]
    least: float


PARAPHRASES = Kind("nDCG@10", ("bm25", "semantic"), 0.98)
TWO_SUBJECTS = Kind("R@5", ("dominant",), 1.0)


def run() -> Iterator[Row]:
    """Print what every mode reaches, and yield how `auto` compares."""
    if not present([*{*PARAPHRASED, *JOINTS}]):
        yield absent("hard questions", f"no set of questions in {folder()}")
        return
    cells = []
    with opened() as knowledge:
        for what, kind, collection in _asked():
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                measures = evaluate(collection, tools, silent).measures
            values = {mode: measures[mode][kind.measure] for mode in MODES}
            n = f"{len(collection.judged):,}"
            cells.append((what, kind.measure, n, *(f"{value:.4f}" for value in values.values())))
            auto, rival = values["auto"], max(values[mode] for mode in kind.rivals)
            beside = f"{what}: auto ÷ {' or '.join(kind.rivals)}"
            yield at_least(beside, f"{auto:.4f}", f"{rival:.4f}", auto / rival, kind.least)
    print(table(("questions", "measure", "n", *MODES), cells), flush=True)


def _asked() -> Iterator[tuple[str, Kind, Collection]]:
    for name in present(PARAPHRASED):
        collection = read_collection(folder() / name)
        if name == FAQ:
            entries = [*collection.documents()]
            collection = rewritten(
                collection, f"{name}-untitled", (one._replace(title="") for one in entries)
            )
            questions = {one.id: one.title for one in entries if one.title.endswith("?")}
            asked = replace(collection, queries=questions, qrels={id: {id: 1} for id in questions})
            yield f"{name}, its own", PARAPHRASES, asked.sampled(QUERIES)
        yield f"{name}, few shared words", PARAPHRASES, least_shared(collection)
    for name in present([*JOINTS]):
        yield f"{name}, two subjects", TWO_SUBJECTS, joined(read_collection(folder() / name), JOINTS[name])


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
