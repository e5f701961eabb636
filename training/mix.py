"""Makes examples of judged collections, as the product retrieves them, beside those that there are.

    python -m training.mix OUT.jsonl --examples ../shared/data/reader/train.jsonl.gz \
        --collections ../shared/data/scifact:train ../shared/data/datatalks-faq

Each judged question is asked of its collection; what comes back is an example with its title and headings in
front, as the reader is given it: relevant ones answer, others are near misses. A share of the questions is
asked once more as keywords, and as one about another number. It runs in the environment of the project: it
needs its search, and no torch.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from concord.knowledge import KnowledgeBase
from concord.quality.collection import read_collection
from concord.quality.evaluate import ask_one
from concord.text.document import header
from concord.text.word_lists import significant
from concord.types import Hit, silent

SEED, HITS, KEYWORDS, SWAPPED = 7, 3, 0.15, 0.1
_NUMBER = re.compile(r"\b\d{1,4}\b")


def main() -> None:
    """Write all examples in one order that looks random."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--examples", type=Path, nargs="*", default=[])
    parser.add_argument("--collections", nargs="*", default=[], metavar="FOLDER[:SPLIT]")
    parser.add_argument("--limit", type=int, help="questions of each collection")
    given = parser.parse_args()
    chance = random.Random(SEED)
    made = [row for path in given.examples for row in _rows(path)]
    with KnowledgeBase.open(reader__enabled=False) as knowledge:
        for place in given.collections:
            made += varied(retrieved(knowledge, place, given.limit), chance)
    chance.shuffle(made)
    given.out.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    print(f"wrote {len(made):,} examples, {sum(row['label'] for row in made):,} of them answered")


def retrieved(knowledge: KnowledgeBase, place: str, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the first passages of each question of a collection, and whether they are relevant."""
    folder, _, split = place.partition(":")
    collection = read_collection(Path(folder), split or None).sampled(limit)
    with knowledge.measuring.indexed_apart(collection, silent) as tools:
        for id, text in collection.judged.items():
            wanted = {*collection.relevant(id)}
            for hit in ask_one(text, tools).answer.hits[:HITS]:
                label = int(hit.document.id in wanted)
                source = collection.folder.name if label else f"near-{collection.folder.name}"
                yield {"q": text, "ctx": _passage(hit), "spans": [], "label": label, "src": source}


def varied(rows: Iterator[dict[str, Any]], chance: random.Random) -> Iterator[dict[str, Any]]:
    """Yield examples, some as keywords too, and some of what answers once more with another number."""
    for row in rows:
        yield row
        if chance.random() < KEYWORDS:
            yield {**row, "q": " ".join(significant(row["q"].rstrip("?").split())).lower()}
        if row["label"] and chance.random() < SWAPPED and _NUMBER.search(row["q"]):
            other = _NUMBER.sub(lambda found: str(int(found[0]) + chance.randint(1, 9)), row["q"], count=1)
            yield {**row, "q": other, "label": 0, "src": f"swapped-{row['src']}"}


def _passage(hit: Hit) -> str:
    above = header(hit.document.title, hit.chunk.heading, hit.chunk.text)
    return f"{above}\n{hit.chunk.text}" if above else hit.chunk.text


def _rows(path: Path) -> Sequence[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [*map(json.loads, file)]


if __name__ == "__main__":
    main()
