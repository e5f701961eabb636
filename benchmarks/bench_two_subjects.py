"""Questions about two subjects at once: are the answers to both among the first five documents?

    KB_BENCH_DATA=../shared/data python -m benchmarks two_subjects

Queries of one set are joined two by two; each asks for documents that the other does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent, at_least, sized
from concord.cli.output import table
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import MODES, evaluate
from concord.types import silent

JOINTS = {
    "k8s-anchor": "difference between {} and {}",
    "scifact": "{} and {}",
    "datatalks-faq": "{} {}",
    "squad2-dev": "{} And {}",
}
PAIRS = sized(200, 4)  # of each set
RIVAL = "dominant"  # what `auto` is to be as good as


def run() -> Iterator[Row]:
    """Print the recall of every mode, and yield how `auto` compares."""
    chosen = present([*JOINTS])
    if not chosen:
        yield absent("two subjects", f"no development set in {folder()}")
        return
    rows = []
    with opened() as knowledge:
        for name in chosen:
            collection = joined(read_collection(folder() / name), JOINTS[name])
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                measures = evaluate(collection, tools, silent).measures
            recall = {mode: measures[mode]["R@5"] for mode in MODES}
            rows.append((name, f"{len(collection.queries):,}", *(f"{recall[mode]:.4f}" for mode in MODES)))
            ratio = recall["auto"] / recall[RIVAL]
            what = f"{name}: auto beside {RIVAL}"
            yield at_least(what, f"{recall['auto']:.4f}", f"{recall[RIVAL]:.4f}", ratio, 1)
    print(table(("R@5 of", "pairs", *MODES), rows))


def joined(collection: Collection, joint: str) -> Collection:
    """Return the collection with queries joined two by two; no document is relevant to both of a pair."""
    judged = collection.sampled(2 * PAIRS).judged
    ids, half = [*judged], len(judged) // 2
    pairs = [
        (one, other)
        for one, other in zip(ids[:half], ids[half:], strict=False)
        if not {*collection.relevant(one)} & {*collection.relevant(other)}
    ]
    queries = {" ".join(pair): joint.format(*(judged[id] for id in pair)) for pair in pairs}
    qrels = {
        " ".join(pair): {document: 1 for id in pair for document in collection.relevant(id)} for pair in pairs
    }
    return replace(collection, queries=queries, qrels=qrels)
