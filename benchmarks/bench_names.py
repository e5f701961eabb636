"""Questions in which another name stands: are they told from those that have an answer?

    KB_BENCH_DATA=../shared/data python -m benchmarks names

Of each question that is answered the rarest word that stands in what answers it is replaced by a name that
the collection does not hold. Both questions are asked. Of collections in scripts without spaces between words
there are none. Nothing was promised; rows are to be read.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.development import SETS, folder, present
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import SEED
from concord.answering.tools import SearchTools
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import ask_one
from concord.quality.reliability import auroc
from concord.search import Examined
from concord.text.held import contains
from concord.types import Query, silent

QUERIES = sized(400, 4)  # of each set
NAMES = [
    "Wuppertal", "Ljubljana", "Saskatoon", "Montevideo", "Winnipeg", "Tbilisi", "Reykjavik", "Gdansk",
    "Cuxhaven", "Kigali", "Spokane", "Tromso", "Kowalczyk", "Abernathy", "Petrossian", "Nakagawa",
    "Halvorsen", "Castellanos", "Okonkwo", "Villeneuve", "Lindqvist", "Featherstone", "Podman", "Pulumi",
    "Ansible", "Dagster", "ClickHouse", "Cassandra", "MongoDB", "Splunk", "Nomad", "Vagrant", "Fivetran",
    "Fritzbox", "Zabbix", "Drupal", "Sybase", "Informix", "Couchbase", "clozapine", "sildenafil",
    "omeprazole", "gabapentin", "narcolepsy", "HOXA9", "FOXL2", "KCNQ1",
]  # fmt: skip


class Pair(NamedTuple):
    """A question that is answered, and the same about something else."""

    answered: Examined
    altered: Examined


def run() -> Iterator[Row]:
    """Yield how many of the altered questions are refused, and of those that have an answer."""
    chosen = present([name for name in SETS if not name.endswith("-zh")])
    if not chosen:
        yield absent("questions in which another name stands", f"no set in {folder()}")
        return
    with KnowledgeBase.open() as knowledge:
        for name in chosen:
            collection = read_collection(folder() / name).sampled(QUERIES)
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                pairs = [*_pairs(collection, tools)]
            yield from _rows(name, pairs)


def _pairs(collection: Collection, tools: SearchTools) -> Iterator[Pair]:
    chance = random.Random(SEED)
    held = tools.store.lexical.frequencies([name.casefold() for name in NAMES])[1]
    names = [name for name in NAMES if not held[name.casefold()]]
    for query, text in collection.judged.items():
        answered = ask_one(text, tools)
        right = [hit for hit in answered.answer.hits if collection.qrels[query].get(hit.document.id, 0) > 0]
        word = _rarest(answered.retrieved.query, [hit.chunk.text for hit in right])
        if word:
            name = chance.choice(names)
            name = name.lower() if text.islower() else name
            yield Pair(answered, ask_one(re.sub(rf"\b{re.escape(word)}\b", name, text), tools))


def _rarest(query: Query, texts: Sequence[str]) -> str | None:
    """Return the rarest word of a query that a text holds, as it was typed."""
    typed = [word for word in query.words if re.search(rf"\b{re.escape(word)}\b", query.text)]
    there = [word for word in typed if word.isalpha() and any(contains(text, word) for text in texts)]
    return min(there, key=lambda word: query.frequencies.get(word, 0), default=None)


def _rows(name: str, pairs: Sequence[Pair]) -> Iterator[Row]:
    answered, altered = ([one.judgement for one in side] for side in zip(*pairs, strict=True))
    scores = [[one.confidence_score for one in side] for side in (answered, altered)]
    n = f"n {len(pairs):,} each, AUROC {auroc(*scores):.3f}"
    for what, side in (("with another name", altered), ("that were answered", answered)):
        refused = sum(one.answerable is False for one in side) / len(side)
        yield Row(f"{name}: refused, of those {what}", f"{refused:.3f}", n)
