"""What people type: a slip in a word, a year glued to letters, nonsense. What is found, what is said of it?

    KB_BENCH_DATA=../shared/data python -m benchmarks typed

A question's rarest word that its answer holds is mistyped, or a year becomes FY2022; beside it stands the
question as it was. Of nonsense nothing should be found, and nothing be called answerable.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent, sized
from benchmarks.synthetic import SEED
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import ask_one
from concord.search.legs import Tools
from concord.types import silent

SETS = ("scifact", "datatalks-faq", "squad2-dev")
COUNTS = {kind: sized(full, 3) for kind, full in (("mistyped", 60), ("glued", 30), ("nonsense", 20))}
FORMS = {"mistyped": re.compile("[a-z]{6,}"), "glued": re.compile(r"(?:1[5-9]|20)\d\d")}
FACTS = ("asked", "with hits", "right first", "right within ten", "answerable", "corrected", "suggested")
LETTERS = "bcdfghjklmnpqrstvwxz"

_WORD = re.compile(r"\w+")
Typed = tuple[str, str, str]  # a query's id, a word of it, and what is typed instead


def run() -> Iterator[Row]:
    """Yield how many of each kind are found, and what is said of them."""
    chosen = present(SETS)
    if not chosen:
        yield absent("what people type", f"no development set in {folder()}")
        return
    counts = {kind: (Counter[str](), Counter[str]()) for kind in COUNTS}
    with opened() as knowledge:
        for at, name in enumerate(chosen):
            collection = read_collection(folder() / name)
            with knowledge.measuring.indexed_apart(collection, silent) as tools:
                for kind, (typed, plain) in counts.items():
                    wanted = (COUNTS[kind] - typed["asked"]) // (
                        len(chosen) - at
                    )  # its share of what is left
                    for id, word, instead in _typed(kind, collection, wanted):
                        text, relevant = collection.queries.get(id, word), collection.relevant(id)
                        altered = re.sub(rf"\b{word}\b", instead, text, flags=re.IGNORECASE)
                        typed.update(_said(altered, word, relevant, tools))
                        plain.update(_said(text, word, relevant, tools))
    for kind, (typed, plain) in counts.items():
        for what in FACTS:
            yield Row(f"{kind}: {what}", f"{typed[what]}", f"{plain[what]} as it was")


def _said(text: str, word: str, relevant: Sequence[str], tools: Tools) -> Iterator[str]:
    """Yield what is true of the answer to a query."""
    answer = ask_one(text, tools).answer
    right = [hit.document.id in relevant for hit in answer.hits]
    corrected = word in (answer.note or ""), word in answer.suggestions
    facts = (True, right, any(right[:1]), any(right), answer.answerable, *corrected)
    yield from (name for name, fact in zip(FACTS, facts, strict=True) if fact)


def _typed(kind: str, collection: Collection, wanted: int) -> Iterator[Typed]:
    chance = random.Random(SEED)
    if kind == "nonsense":
        for _ in range(wanted):
            made = "".join(chance.choices(LETTERS, k=chance.randint(5, 9)))
            yield "", made, made
        return
    texts = {
        document.id: {*_words(f"{document.title} {document.text}")} for document in collection.documents()
    }
    holding = Counter(word for words in texts.values() for word in words)
    judged = collection.judged
    for id in chance.sample([*judged], len(judged)):
        held = set().union(*(texts.get(document, set()) for document in collection.relevant(id)))
        words = [word for word in _words(judged[id]) if word in held and FORMS[kind].fullmatch(word)]
        word = min(words, key=holding.__getitem__, default="")
        instead = slip(word, chance) if kind == "mistyped" and word else f"FY{word}"
        if word and wanted > 0 and not holding[instead]:
            wanted -= 1
            yield id, word, instead


def slip(word: str, chance: random.Random) -> str:
    """Return a word with two letters exchanged, or one missing, doubled or mistaken; never the first."""
    at = chance.randrange(1, len(word) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    slips = (f"{before}{after[0]}{letter}{after[1:]}", before + after, f"{before}{letter}{letter}{after}")
    return chance.choice((*slips, f"{before}{chance.choice(LETTERS)}{after}"))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
