"""What people type: a slip in a word, a year glued to letters, nonsense. What is found, what is said of it?

    KB_BENCH_DATA=../shared/data python -m benchmarks typed

A question's rarest word that its answer holds is mistyped, or a year becomes FY2022; beside it stands the
question as it was. Of nonsense nothing should be found, and nothing be called answerable.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import SEED
from concord.answering.tools import SearchTools
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import ask_one
from concord.types import Answer, silent

SETS = ("squad2-dev", "datatalks-faq", "scifact")
MISTYPED, GLUED, NONSENSE = (sized(full, 2) for full in (60, 30, 20))  # in all sets together
LETTERS, SHORTEST = "bcdfghjklmnpqrstvwxz", 6

_WORD = re.compile(r"\w+")


class Typed(NamedTuple):
    """A question, one word of it typed otherwise."""

    query_id: str
    question: str
    word: str
    instead: str


def run() -> Iterator[Row]:
    """Yield what is found and said, beside what it is for the question as it was."""
    chosen = present(SETS)
    if not chosen:
        yield absent("what people type", f"no development set in {folder()}")
        return
    counts = {kind: (Counter[str](), Counter[str]()) for kind in ("mistyped", "glued")}
    nonsense = Counter[str]()
    with opened() as knowledge:
        for at, name in enumerate(chosen):
            collection = read_collection(folder() / name)
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                for kind, some in _typed(collection, len(chosen)).items():
                    _count(counts[kind], some, collection, tools)
                if not at:
                    nonsense = _of_nonsense(tools)
    for kind, (altered, plain) in counts.items():
        for what in ("asked", "right first", "right within ten", "answerable", "corrected"):
            yield Row(f"{kind}: {what}", f"{altered[what]}", f"{plain[what]} as it was")
    for what in ("asked", "with hits", "answerable"):
        yield Row(f"nonsense: {what}", f"{nonsense[what]}")


def _typed(collection: Collection, sets: int) -> dict[str, list[Typed]]:
    """Return a share of the questions with a slip in a word, and of those with a glued year."""
    chance = random.Random(SEED)
    texts = {one.id: {*_words(f"{one.title} {one.text}")} for one in collection.documents()}
    holding = Counter(word for words in texts.values() for word in words)
    kinds: dict[str, tuple[int, re.Pattern[str], Callable[[str], str]]] = {
        "mistyped": (MISTYPED, re.compile(rf"[a-z]{{{SHORTEST},}}"), lambda word: slip(word, chance)),
        "glued": (GLUED, re.compile(r"(?:1[5-9]|20)\d\d"), "FY{}".format),
    }
    found: dict[str, list[Typed]] = {}
    for kind, (wanted, form, alter) in kinds.items():
        some = found.setdefault(kind, [])
        for id, question in sorted(collection.sampled(2000).judged.items(), key=lambda _: chance.random()):
            held = set().union(*(texts.get(document, set()) for document in collection.relevant(id)))
            words = [word for word in _words(question) if word in held and form.fullmatch(word)]
            rarest = min(words, key=holding.__getitem__, default=None)
            if rarest and not holding[instead := alter(rarest)] and len(some) < wanted // sets:
                some.append(Typed(id, question, rarest, instead))
    return found


def slip(word: str, chance: random.Random) -> str:
    """Return a word with two letters exchanged, or one missing, doubled or mistaken; never the first."""
    at = chance.randrange(1, len(word) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    slips = (f"{before}{after[0]}{letter}{after[1:]}", before + after, f"{before}{letter}{letter}{after}")
    return chance.choice((*slips, f"{before}{chance.choice(LETTERS)}{after}"))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _count(
    counts: tuple[Counter[str], Counter[str]],
    typed: Sequence[Typed],
    collection: Collection,
    tools: SearchTools,
) -> None:
    for one in typed:
        altered = re.sub(rf"\b{one.word}\b", one.instead, one.question, flags=re.IGNORECASE)
        for count, text in zip(counts, (altered, one.question), strict=True):
            answer = ask_one(text, tools).answer
            count.update(_said(answer, collection.relevant(one.query_id)))
            count["corrected"] += one.word in answer.sought


def _said(answer: Answer, relevant: Sequence[str]) -> Counter[str]:
    right = [hit.document.id in relevant for hit in answer.hits]
    true = {
        "asked": True,
        "with hits": bool(right),
        "right first": any(right[:1]),
        "right within ten": any(right),
        "answerable": answer.answerable,
    }
    return Counter(what for what, is_so in true.items() if is_so)


def _of_nonsense(tools: SearchTools) -> Counter[str]:
    chance = random.Random(SEED)
    count = Counter[str]()
    for _ in range(NONSENSE):
        words = (
            "".join(chance.choices(LETTERS, k=chance.randint(5, 9))) for _ in range(chance.randint(1, 3))
        )
        count.update(_said(ask_one(" ".join(words), tools).answer, ()))
    return count
