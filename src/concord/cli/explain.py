"""`kb explain`: why a passage ranked where it did, or did not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.arithmetic import arithmetic, number
from concord.cli.command import Flags, command, opened
from concord.cli.hits import missing
from concord.cli.search import request_options, take_mode
from concord.cli.words import in_words
from concord.visible import one_line

if TYPE_CHECKING:
    from concord.search.explain import Explanation, Known, StrategyRank


@command(
    "explain",
    'kb explain "how does login work" docs/auth.md:12-31',
    "kb explain deploy docs/ops/deploy.md --tags production",
    'kb explain "token lifetime" docs/auth.md --json',
)
@click.argument("query")
@click.argument("reference", metavar="CITATION|ID")
@request_options
def explain(flags: Flags, query: str, reference: str, as_json: bool, **given: Any) -> None:
    """Tell why a passage ranks where it does for a query, or does not.

    Give the flags of the search that surprised you, --source for its --in. Every strategy is asked for a
    thousand chunks, so that a passage far down still has a rank; of a whole document, the chunk that came
    nearest is explained.
    """
    mode = take_mode(given)
    with opened(flags) as knowledge:
        told = knowledge.explain(query, reference, mode=mode, **given)
    if as_json:
        from concord.wire import explanation_to_json

        output.emit_json(explanation_to_json(told))
    else:
        output.emit("\n".join(_lines(told)))


def _lines(told: Explanation) -> Iterator[str]:
    known = told.known
    yield f"{one_line(told.citation)}  {one_line(told.document.title)}"
    yield in_words(told.why)
    yield ""
    yield output.table(("strategy", "rank", "score", ""), (_row(one, known) for one in known.strategy_ranks))
    if known.words:
        yield ""
        yield output.table(("word", "held", "in chunks", ""), _words(known))
    yield ""
    yield from _fused(told)
    yield from arithmetic(told.arithmetic)
    yield from missing(told.answer)


def _row(one: StrategyRank, known: Known) -> tuple[str, str, str, str]:
    if one.reason:
        remark = in_words(one.reason)
    elif one.rank is None:
        remark = f"not among its first {known.depth:,}"
    else:
        remark = "votes" if one.is_candidate else f"past the {known.candidates} that are votes"
    return one.strategy, str(one.rank or "-"), number(one.score), remark


def _words(known: Known) -> Iterator[tuple[str, str, str, str]]:
    for word in known.words:
        chunks = "-" if word.chunks is None else f"{word.chunks:,}"
        yield word.text, "yes" if word.is_held else "no", chunks, "too frequent" if word.is_pruned else ""


def _fused(told: Explanation) -> Iterator[str]:
    fused = told.known.fused
    place = f"{fused.rank} of {fused.of}" if fused.rank else f"none of {fused.of}"
    yield f"place after fusion: {place}; score {number(fused.score)}; last result {number(fused.last_score)}"
    limits = f"threshold {number(fused.threshold)}, floor {number(fused.floor)}"
    yield f"reciprocal ranks: {number(fused.rrf)} ({limits})"
