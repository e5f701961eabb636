"""How much evidence fits into an answer? Passages one by one, beside hits of one section that come as one.

    KB_BENCH_DATA=../shared/data python -m benchmarks budget

Paragraphs are put together to the articles they are from, as in `passages`. Evidence is there if a text of
the right article that is sent, whole or as a snippet, has the words that answer the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.bench_passages import put_together
from benchmarks.development import BY_HAND, folder, opened, present, rows
from benchmarks.measure import Row, absent, sized
from concord.mcp.packing import pack_answer
from concord.quality.collection import read_collection
from concord.quality.evaluate import UNHURRIED_MS
from concord.search.legs import Tools
from concord.search.pipeline import search
from concord.text.json_safe import JsonObject
from concord.types import Group, Request, silent
from concord.wire import answer_to_json

QUERIES = sized(600, 2)
BUDGETS = (500, 1000, 2000, 4000)  # tokens
ABOVE = 2000  # at which more evidence is wanted
FORMS = ("json", "mcp")
KEYS = ("text", "snippet")
GROUPED: tuple[Group, ...] = ("passage", "section")


def run() -> Iterator[Row]:
    """Yield in how many answers the evidence is, by form and budget."""
    if not present((BY_HAND,)):
        yield absent("evidence within a budget", f"no {BY_HAND} in {folder()}")
        return
    answers = {row["_id"]: row.get("answers") or [] for row in rows(BY_HAND, "queries.jsonl")}
    found: dict[tuple[str, int, Group], int] = {}
    asked = 0
    with opened() as knowledge:
        articles, _ = put_together(read_collection(folder() / BY_HAND).sampled(QUERIES))
        with knowledge.measuring.indexed_apart(articles, silent) as tools:
            for query, text in articles.judged.items():
                asked += bool(answers[query])
                for group in GROUPED if answers[query] else ():
                    for key, wire in _sent(text, group, tools):
                        is_there = _is_there(wire, articles.relevant(query), answers[query])
                        found[*key, group] = found.get((*key, group), 0) + is_there
    for form in FORMS:
        for budget in BUDGETS:
            alone, merged = (found.get((form, budget, group), 0) / max(1, asked) for group in GROUPED)
            yield _row(form, budget, asked, alone, merged)


def _sent(text: str, group: Group, tools: Tools) -> Iterator[tuple[tuple[str, int], JsonObject]]:
    answer = search(Request(text, deadline_ms=UNHURRIED_MS, group=group), tools)
    for budget in BUDGETS:
        yield ("json", budget), answer_to_json(answer, max_tokens=budget)
        yield ("mcp", budget), pack_answer(answer, budget).structured


def _is_there(wire: JsonObject, articles: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether a text of the right article that was sent has words that answer the question."""
    hits = [hit for hit in wire["results"] if hit["document_id"] in articles]
    texts = [hit.get(key) or "" for hit in hits for key in KEYS]
    texts += [under.get(key) or "" for hit in hits for under in hit.get("more") or () for key in KEYS]
    return any(answer in text for answer in answers for text in texts)


def _row(form: str, budget: int, asked: int, alone: float, merged: float) -> Row:
    is_met = merged > alone if budget == ABOVE else merged >= alone
    target = "more than alone" if budget == ABOVE else "no less than alone"
    what = f"{form}: evidence within {budget:,} tokens, by section, n {asked:,}"
    return Row(what, f"{merged:.3f}", f"{alone:.3f} alone", target=target, is_met=is_met)
