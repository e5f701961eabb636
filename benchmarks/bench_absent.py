"""Questions in the right language about what is not there: are they told from those that have an answer?

    KB_BENCH_DATA=../shared/data python -m benchmarks absent

Each second article of the paragraphs in three languages is indexed, and the questions about all of them are
asked. A model finds every text of a language that it does not read near to every question in it, so these
are harder to tell than questions from another collection. Nothing was promised; rows are to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from benchmarks.development import folder, present
from benchmarks.measure import Row, absent
from benchmarks.synthetic import cache_folder
from concord.knowledge import KnowledgeBase
from concord.quality.collection import Collection, read_collection
from concord.quality.evaluate import ask, ask_own
from concord.quality.reliability import answerability
from concord.types import silent

SETS = ("xquad-en", "xquad-de", "xquad-zh")
QUERIES = 400  # of each half


def run() -> Iterator[Row]:
    """Yield how many questions are refused that have no answer, and that have one."""
    chosen = present(SETS)
    if not chosen:
        yield absent("questions about what is not there", f"no set of articles in {folder()}")
        return
    with KnowledgeBase.open() as knowledge:
        for name in chosen:
            kept, left_out = halves(read_collection(folder() / name), cache_folder() / "halves" / name)
            with knowledge.measuring.indexed_apart(kept, silent) as tools:
                own = [one.judgement for one in ask_own(kept, tools, silent) if any(one.relevant)]
                others = ask([*left_out.judged.values()], tools, silent)
            found = answerability(own, [one.judgement for one in others])
            n = f"n {found.foreign:,} and {found.own:,}, AUROC {found.auroc:.3f}"
            yield Row(f"{name}: refused, of what is not there", f"{found.foreign_flagged:.3f}", n)
            yield Row(f"{name}: refused, of what was found", f"{found.own_flagged:.3f}", n)


def halves(collection: Collection, place: Path) -> tuple[Collection, Collection]:
    """Return the questions about each second article with these articles, and those about the others."""
    (place / "qrels").mkdir(parents=True, exist_ok=True)
    with (place / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for one in collection.documents():
            if _is_kept(one.id):
                file.write(json.dumps({"_id": one.id, "title": one.title, "text": one.text}) + "\n")
    kept, left_out = (
        {
            id: text
            for id, text in collection.judged.items()
            if all(_is_kept(document) == half for document in collection.qrels[id])
        }
        for half in (True, False)
    )
    whole = replace(collection, folder=place)
    return (
        replace(whole, queries=kept).sampled(QUERIES),
        replace(whole, queries=left_out).sampled(QUERIES),
    )


def _is_kept(document: str) -> bool:
    """Whether the article is one of those that are indexed: ids are ARTICLE-PARAGRAPH."""
    article = document.partition("-")[0]
    return not article.isdigit() or int(article) % 2 == 0
