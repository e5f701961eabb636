"""How long does a search take? Each mode asked as a caller would ask it, and percentiles of what that took.

The model is loaded before, and no query's vector is remembered from another mode: a caller asks once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from concord.answering.tools import SearchTools
from concord.protocols import Progress
from concord.quality.percentiles import Latency, percentiles
from concord.search import search
from concord.types import Mode, Request

SAMPLE = 50  # queries asked in each mode: a median holds, and six modes take seconds


class Way(NamedTuple):
    """How a caller asks for a mode of the evaluation: by search mode and fusion."""

    mode: Mode
    fusion: str | None = None


WAYS: Mapping[str, Way] = {
    "bm25": Way("fts5"),
    "semantic": Way("semantic"),
    "rrf": Way("hybrid"),
    "adaptive": Way("auto", "adaptive"),
    "dominant": Way("auto", "dominant"),
    "auto": Way("auto"),
}


def by_mode(
    texts: Sequence[str], tools: SearchTools, progress: Progress, deadline_ms: float
) -> dict[str, Latency]:
    """Ask some of the queries in every mode that there are strategies for, and return how long each takes.

    Each query is asked in all modes, one after the other, so that a busy machine slows all modes alike.
    """
    some = _spread(texts)
    ways = {name: way for name, way in WAYS.items() if way.mode != "semantic" or tools.similarity}
    took_ms: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        warm_up(some, tools, deadline_ms, way)
    for done, text in enumerate(some, 1):
        for name, way in ways.items():
            took_ms[name].append(_ask(text, tools, deadline_ms, way))
        progress("timing", done, len(some))
    return {name: percentiles(took) for name, took in took_ms.items()}


def warm_up(texts: Sequence[str], tools: SearchTools, deadline_ms: float, way: Way = WAYS["auto"]) -> None:
    """Load everything that the first search would load, and forget the vectors of queries."""
    for text in texts[:1]:
        _ask(text, tools, deadline_ms, way)
    _forget_queries(tools)


def _ask(text: str, tools: SearchTools, deadline_ms: float, way: Way) -> float:
    """Return how long a query takes whose vector is not cached."""
    _forget_queries(tools)
    request = Request(text, mode=way.mode, fusion=way.fusion, deadline_ms=deadline_ms)
    return search(request, _words_alone(tools) if way.mode == "fts5" else tools).search_time_ms


def _forget_queries(tools: SearchTools) -> None:
    if tools.similarity:
        tools.similarity.forget()


def _spread(texts: Sequence[str]) -> Sequence[str]:
    """Return a few items spread evenly over a list: neighbours are often alike."""
    return texts[:: -(-len(texts) // SAMPLE)] if texts else texts


def _words_alone(tools: SearchTools) -> SearchTools:
    """Return the tools of a search by words: no model, and no calibration of one."""
    words = [one for one in tools.strategies if one.family == "lexical"]
    return replace(tools, strategies=words, similarity=None, calibration=None, reranker=None)
