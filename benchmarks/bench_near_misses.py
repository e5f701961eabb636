"""Questions that almost have an answer: are they told from those that have one?

    KB_BENCH_DATA=../shared/data python -m benchmarks near_misses

By hand: questions that people wrote about a paragraph which does not answer them (SQuAD 2.0), of the articles
that no reader was trained on. Left out: the same questions, asked once more when the
documents that answer them are gone. Swapped: the rarest word that question and answer share is replaced by a
name that the collection does not hold, or a number by another. Foreign: questions of other collections. All
are judged by the calibration that ships. `refused at 5 %` is the share refused by the cut that refuses 5 % of
the questions that have an answer among their hits. KB_BENCH_SETS names sets, KB_BENCH_QUERIES says how many
questions are asked, and KB_READER_ENABLED=false measures without the reader.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.development import (
    BY_HAND,
    SETS,
    folder,
    opened,
    present,
    rewritten,
    rows,
    strangers,
    unshared,
)
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import SEED
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, foreign_queries, read_collection
from concord.quality.evaluate import ask, ask_one, ask_own
from concord.quality.metrics import answerability, reliability
from concord.search.judge import Verdict
from concord.search.legs import Tools
from concord.search.pipeline import Examined
from concord.text.held import contains
from concord.types import Query, silent

QUERIES = int(os.environ.get("KB_BENCH_QUERIES", sized(300, 4)))  # of each set and kind
LEFT_OUT = 0.15  # of the documents, at most
OWN_REFUSED = 0.05
LOST = 0.01  # of AUROC, at most
TODAY: Mapping[str, Mapping[str, float]] = {  # AUROC at 9482f1c
    "squad2-dev": {"kept": 0.644},
    "scifact": {"foreign": 0.995, "swapped": 0.820, "left out": 0.790},
    "cranfield": {"foreign": 1.000, "swapped": 0.871, "left out": 0.581},
    "cosqa-dev": {"foreign": 0.987, "swapped": 0.976, "left out": 0.647},
    "k8s-anchor": {"foreign": 1.000, "swapped": 0.997, "left out": 0.586},
    "datatalks-faq": {"foreign": 0.996, "swapped": 0.856, "left out": 0.863},
    "xquad-en": {"foreign": 0.996, "swapped": 0.902, "left out": 0.990},
    "xquad-de": {"foreign": 0.999, "swapped": 0.827, "left out": 0.962},
    "xquad-zh": {"foreign": 1.000, "left out": 0.967},
}
HEADS = f"{'near misses':24}    n  own        AUROC      refused  own refused  ref. at 5 %          ECE"
NAMES = [
    "Wuppertal", "Ljubljana", "Saskatoon", "Montevideo", "Winnipeg", "Tbilisi", "Reykjavik", "Gdansk",
    "Cuxhaven", "Kigali", "Spokane", "Tromso", "Kowalczyk", "Abernathy", "Petrossian", "Nakagawa",
    "Halvorsen", "Castellanos", "Okonkwo", "Villeneuve", "Lindqvist", "Featherstone", "Podman", "Pulumi",
    "Ansible", "Dagster", "ClickHouse", "Cassandra", "MongoDB", "Splunk", "Nomad", "Vagrant", "Fivetran",
    "Fritzbox", "Zabbix", "Drupal", "Sybase", "Informix", "Couchbase", "clozapine", "sildenafil",
    "omeprazole", "gabapentin", "narcolepsy", "HOXA9", "FOXL2", "KCNQ1",
]  # fmt: skip


class Told(NamedTuple):
    """What was said of questions that have an answer among their hits, and of near misses."""

    what: str
    own: Sequence[Verdict]
    near: Sequence[Verdict]


def run() -> Iterator[Row]:
    """Print how each kind is told apart, and yield what was promised."""
    wanted = os.environ.get("KB_BENCH_SETS", ",".join([BY_HAND, *SETS])).split(",")
    chosen = present(wanted)
    if not chosen:
        yield absent("near misses", f"no development set in {folder()}")
        return
    print(HEADS, flush=True)
    with opened() as knowledge:
        for told in (told for name in chosen for told in _told(name, knowledge) if told.near):
            found = answerability(told.own, told.near)
            sides = ((told.own, True), (told.near, False))
            ece = reliability((said.confidence_score, true) for side, true in sides for said in side).ece
            refused = (found.foreign_flagged, found.own_flagged, _refused_at(OWN_REFUSED, told))
            figures = "".join(f"{figure:13.3f}" for figure in (found.auroc, *refused, ece))
            print(f"{told.what:24}{found.foreign:5}{found.own:5}{figures}", flush=True)
            name, _, kind = told.what.partition(", ")
            least, auroc = TODAY.get(name, {}).get(kind, LOST) - LOST, found.auroc
            yield Row(f"{told.what}: AUROC", f"{auroc:.3f}", target=f"≥ {least:.3f}", is_met=auroc >= least)


def _refused_at(share: float, told: Told) -> float:
    """Return how many near misses are refused by a cut that refuses this share of the others."""
    own = sorted(said.confidence_score for said in told.own)
    cut = own[int(share * len(own))] if own else 1.0
    return sum(said.confidence_score < cut for said in told.near) / max(1, len(told.near))


def _told(name: str, knowledge: KnowledgeBase) -> Iterator[Told]:
    if name == BY_HAND:
        yield from _by_hand(knowledge)
        return
    whole = unshared(read_collection(folder() / name))
    kept, lost = left_out(whole)
    with knowledge.measuring.indexed_apart(whole, silent) as tools:
        foreign = foreign_queries(strangers(name, present(SETS)), QUERIES)
        asked = [text for texts in foreign.values() for text in texts]
        yield Told(f"{name}, foreign", _answered(whole.sampled(QUERIES), tools), _asked(asked, tools))
        pairs = [] if name.endswith("-zh") else [*_swapped(whole.sampled(QUERIES), tools)]
        yield Told(f"{name}, swapped", [one for one, _ in pairs], [other for _, other in pairs])
        answered = _answered(lost, tools)
    with knowledge.measuring.indexed_apart(kept, silent) as tools:
        yield Told(f"{name}, left out", answered, _asked([*lost.judged.values()], tools))


def _answered(collection: Collection, tools: Tools) -> list[Verdict]:
    return [question.verdict for question in ask_own(collection, tools, silent) if any(question.relevant)]


def _asked(texts: Sequence[str], tools: Tools) -> list[Verdict]:
    return [question.verdict for question in ask(texts, tools, silent)]


def _by_hand(knowledge: KnowledgeBase) -> Iterator[Told]:
    """Yield what is said of the articles that no reader was trained on, and print how it answers them."""
    whole = read_collection(folder() / BY_HAND)
    answered, near = (
        [row for row in rows(BY_HAND, name) if row.get("kept_from_training")]
        for name in ("queries.jsonl", "unanswerable.jsonl")
    )
    own = replace(whole, queries={row["_id"]: row["text"] for row in answered}).sampled(2 * QUERIES)
    some = random.Random(SEED).sample(near, min(2 * QUERIES, len(near)))
    with knowledge.measuring.indexed_apart(whole, silent) as tools:
        found = {id: ask_one(text, tools) for id, text in own.judged.items()}
        missed = [ask_one(row["text"], tools) for row in some]
    judged = {id: {*own.relevant(id)} for id in found}
    right = [
        id for id, one in found.items() if not judged[id].isdisjoint(h.document.id for h in one.answer.hits)
    ]
    _print_spans(own, found, missed, {row["_id"]: row.get("answers", ()) for row in answered})
    yield Told(f"{BY_HAND}, kept", [found[id].shown for id in right], [question.shown for question in missed])


def _print_spans(
    own: Collection,
    found: Mapping[str, Examined],
    missed: Sequence[Examined],
    answers: Mapping[str, Sequence[str]],
) -> None:
    """Print how well the words that the reader points at agree with the answers."""
    first, shown = list[float](), list[float]()
    for id, one in found.items():
        top = one.shown.judged[:1]
        if top and (read := top[0].passage.reading) and top[0].passage.document.id in own.relevant(id):
            first.append(_f1(top[0].passage.chunk.text[read.start : read.end], answers[id]))
        if span := one.answer.answer:
            shown.append(_f1(span.text, answers[id]))
    wrongly = sum(question.answer.answer is not None for question in missed) / max(1, len(missed))
    if first:
        print(f"answer spans: F1 {mean(first):.3f} of {len(first)} whose first passage is right", end="")
        print(f"; shown for {len(shown) / len(found):.3f} of the questions with an answer", end="")
        print(f" (F1 {mean(shown or [0.0]):.3f}) and for {wrongly:.3f} of the near misses", flush=True)


def _f1(said: str, answers: Sequence[str]) -> float:
    """Return the F1 of words with the answer that is most alike, as SQuAD measures it."""
    return max((_overlap(_words(said), _words(answer)) for answer in answers), default=0.0)


def _words(text: str) -> Counter[str]:
    plain = re.sub(r"[^\w\s]", "", text.lower())
    return Counter(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def _overlap(said: Counter[str], meant: Counter[str]) -> float:
    return 2 * (said & meant).total() / max(1, said.total() + meant.total())


def left_out(collection: Collection) -> tuple[Collection, Collection]:
    """Return a collection without the documents that answer some questions, and these questions."""
    entries = {entry.id: entry for entry in collection.documents()}
    gone: set[str] = set()
    for id in collection.sampled(QUERIES).judged:
        more = gone | {*collection.relevant(id)}
        gone = more if len(more) <= LEFT_OUT * len(entries) else gone
    lost = {id: text for id, text in collection.judged.items() if gone.issuperset(collection.relevant(id))}
    rest = [entry for id, entry in entries.items() if id not in gone]
    kept = rewritten(collection, f"{collection.folder.name}-left-out", rest)
    return kept, replace(collection, queries=lost).sampled(QUERIES)


def _swapped(collection: Collection, tools: Tools) -> Iterator[tuple[Verdict, Verdict]]:
    """Yield what is said of each question that is answered, and of the same about something else."""
    chance = random.Random(SEED)
    held = tools.store.words.frequencies([name.casefold() for name in NAMES])[1]
    names = [name for name in NAMES if not held[name.casefold()]]
    for query, text in collection.judged.items():
        answered = ask_one(text, tools)
        right = [hit for hit in answered.answer.hits if hit.document.id in collection.relevant(query)]
        word = _rarest(answered.query, [hit.chunk.text for hit in right])
        if word:
            other = str(int(word) + 7) if word.isdecimal() else chance.choice(names)
            other = other.lower() if text.islower() else other
            altered = re.sub(rf"\b{re.escape(word)}\b", other, text)
            yield answered.verdict, ask_one(altered, tools).verdict


def _rarest(query: Query, texts: Sequence[str]) -> str | None:
    """Return the rarest word or number of a query that a text holds, as it was typed."""
    typed = [word for word in query.words if re.search(rf"\b{re.escape(word)}\b", query.text)]
    there = [word for word in typed if word.isalnum() and any(contains(text, word) for text in texts)]
    return min(there, key=lambda word: query.frequencies.get(word, 0), default=None)
