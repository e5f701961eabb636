"""An answer for people: each hit with its citation, who found it and a snippet; then the search itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from concord.cli import output
from concord.cli.words import in_words
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.types import Answer, Hit

MAX_WIDTH = 100  # longer lines are hard to read
MOST_LINES = 6  # of a snippet
MOST_FEATURES = 4  # of a relevance that are shown: those that moved it most
LEAST_TITLE = 12  # characters to which a title may be shortened to make room for headings
INDENT = "    "

Arithmetic = Mapping[str, Any]
Style = Callable[[str], str]


class Dress(Struct, frozen=True):
    """How text is coloured and wrapped: not at all where the output is no terminal."""

    strong: Style = str
    faint: Style = str
    match: Style = str
    width: int | None = None

    def under(self, text: str, style: Style) -> list[str]:
        """Return a text in indented lines."""
        return [INDENT + style(line) for line in self.wrap(" ".join(text.split()))]

    def snippet(self, snippet: str, style: Style) -> list[str]:
        """Return a snippet in the lines that it has, indented; many short ones flow together."""
        lines = [line.rstrip() for line in snippet.expandtabs(4).split("\n") if line.strip()]
        if len(lines) > MOST_LINES:
            return self.under(snippet, style)
        shared = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        return [INDENT + style(part) for line in lines for part in self.wrap(line[shared:])]

    def wrap(self, line: str) -> list[str]:
        """Return a line in as many as the terminal needs."""
        if self.width is None:
            return [one_line(line)]
        import textwrap

        return textwrap.wrap(one_line(line), max(20, self.width - len(INDENT)))


def show(answer: Answer, *, explain: bool = False) -> None:
    """Print the hits on stdout and what is to be said about them on stderr."""
    if answer.hits:
        dress = _dress()
        light_up = _highlighter(answer.request.text, dress, answer.searched)
        scale = " (uncalibrated)" if answer.calibrated is False else ""
        hits = [_hit(hit, dress, light_up, scale, explain=explain) for hit in answer.hits]
        output.emit("\n\n".join([*_answer(answer, dress), *hits, *_linked(answer, dress)]))
    for line in _remarks(answer, explain=explain):
        output.talk(line)


def _dress() -> Dress:
    if not output.is_terminal(sys.stdout):
        return Dress()
    import shutil

    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    if not output.colourful(sys.stdout):
        return Dress(width=width)
    return Dress(
        strong=lambda text: click.style(text, bold=True),
        faint=lambda text: click.style(text, dim=True),
        match=lambda text: click.style(text, fg="yellow", bold=True),
        width=width,
    )


def _answer(answer: Answer, dress: Dress) -> Iterator[str]:
    """Yield the words that answer the question, with where they stand."""
    if span := answer.answer:
        words = [dress.match(line) for line in dress.wrap(" ".join(span.text.split()))]
        yield "\n".join([*words, INDENT + dress.faint(one_line(span.citation))])


def _linked(answer: Answer, dress: Dress) -> Iterator[str]:
    """Yield what the hits point to."""
    for row in answer.linked:
        lines = [f" →  {dress.strong(one_line(row.citation))}  {one_line(row.title)}"]
        lines += [
            INDENT + dress.faint(f"{row.kind} in {one_line(row.via)}"),
            *dress.snippet(row.snippet, str),
        ]
        yield "\n".join([*lines, *(INDENT + dress.faint(f"warning: {told}") for told in row.warnings)])


def _hit(hit: Hit, dress: Dress, light_up: Style, scale: str, *, explain: bool) -> str:
    room = max(20, (dress.width or MAX_WIDTH) - len(hit.citation) - len(INDENT) - 2)
    lines = [f"{hit.rank:>2}. {dress.strong(one_line(hit.citation))}  {_trail(hit, room)}"]
    lines += dress.under(" · ".join(_facts(hit, scale, explain=explain)), dress.faint)
    lines += dress.snippet(hit.snippet, light_up)
    for warning in hit.warnings:
        lines += dress.under(f"warning: {warning}", dress.faint)
    for under in hit.more or ():
        lines.append(INDENT + dress.faint(f"{one_line(under.citation)} · score {under.passage_score:.4f}"))
        lines += [INDENT + dress.faint(f"warning: {told}") for told in under.warnings]
        lines += [INDENT + line for line in dress.snippet(under.snippet, light_up)]
    if explain and (sums := hit.explanation):
        found_by = ((found["strategy"], str(found["rank"])) for found in sums["strategies"])
        ranks = output.table(("strategy", "rank"), found_by).splitlines()
        lines += [INDENT + dress.faint(line) for line in (*ranks, *arithmetic(sums))]
    return "\n".join(lines)


def _trail(hit: Hit, most: int) -> str:
    """Return a title and the headings below it in so many characters; of a long title the end goes first."""
    title, *below = dict.fromkeys(map(one_line, (hit.document.title, *hit.chunk.heading)))
    rest = "".join(f" › {name}" for name in below)
    return _cut(_cut(title, max(LEAST_TITLE, most - len(rest))) + rest, most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _facts(hit: Hit, scale: str, *, explain: bool) -> Iterator[str]:
    """Yield who found a hit and how far to trust it; `scale` is what is to be said of its score."""
    families = {"meaning" if name == "semantic" else _family(name) for name in hit.found_by}
    yield f"{'+'.join(sorted(families, reverse=True))} ({', '.join(hit.found_by)})"
    if hit.confidence:
        yield f"confidence {hit.confidence}"
    yield f"score {hit.score:.4f}{scale}"
    if hit.passage_score < hit.score:
        yield f"this passage alone {hit.passage_score:.4f}"
    if explain:
        yield from (f"{name} {score:.4f}" for name, score in hit.scores.items() if score is not None)
        yield f"best rank {hit.best_rank}"
    if hit.moved_from:
        yield f"moved from {hit.moved_from}"
    if hit.freshness not in (None, "fresh"):
        yield f"the file was {hit.freshness} since it was indexed"
    if hit.document.superseded_by:
        yield f"superseded by {hit.document.superseded_by}"
    if section := hit.section:
        yield f"section lines {section.start_line}-{section.end_line} ({section.tokens:,} tokens)"
    if hit.more_in_document:
        yield f"{hit.more_in_document} more in this document"
    if hit.also_at:
        yield "also at " + ", ".join(map(one_line, hit.also_at))


def _family(strategy: str) -> str:
    return "words" if strategy == "names" or strategy.startswith("fts_") else "others"


def _highlighter(query: str, dress: Dress, searched: Sequence[str]) -> Style:
    """Return a function that highlights the words of the query in a line, or those found in their place."""
    if dress.match is str:
        return str
    import re

    from concord.text.held import contains
    from concord.text.scripts import MARKS, has_marks
    from concord.text.terms import index_terms
    from concord.text.tokens import tokenize
    from concord.text.word_lists import significant

    def tokens(word: str) -> set[str]:
        parts = () if has_marks(word) else tokenize(word)
        return {*parts, *tokenize(index_terms(word))}

    words = re.compile(rf"[\w{MARKS}]+")
    wanted = {token for word in significant(words.findall(query)) for token in tokens(word)}

    def lit(found: re.Match[str]) -> str:
        word = found[0]
        is_wanted = not wanted.isdisjoint(tokens(word)) or any(contains(word, form) for form in searched)
        return dress.match(word) if is_wanted else word

    return lambda line: words.sub(lit, line)


def missing(degraded: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield who had no part in an answer, and why."""
    return (f"without {part['strategy']}: {in_words(part['reason'])}" for part in degraded)


def _remarks(answer: Answer, *, explain: bool) -> Iterator[str]:
    """Yield what there is to say about a search, the summary first."""
    found, omitted = len(answer.hits), answer.omitted
    count = output.counted(found, "result") if found else "nothing found"
    of = f" of {answer.total_hits:,} candidates" if answer.total_hits > found > 0 else ""
    parts = [f"{count}{of} in {answer.search_time_ms:.0f} ms", f"mode {answer.mode}"]
    if answer.confidence:
        is_doubtful = answer.calibrated is False and found
        doubt = " (uncalibrated: nothing was fitted for this)" if is_doubtful else ""
        parts.append(f"confidence {answer.confidence}{doubt}")
    yield " · ".join(parts)
    if answer.answerable is False and found:
        yield f"nothing here answers this; nearest: {_trail(answer.hits[0], MAX_WIDTH)}"
    if dropped := omitted.get("below_threshold"):
        yield f"{dropped} below the threshold"
    if unlikely := omitted.get("below_min_score"):
        yield f"{unlikely} below the least score"
    if gone := omitted.get("deleted"):
        yield f"{gone} left out: deleted since they were indexed (`kb sync`)"
    yield from missing({"strategy": part.strategy, "reason": part.reason} for part in answer.degraded)
    if explain:
        yield "took " + ", ".join(f"{stage} {took:.1f} ms" for stage, took in answer.timings_ms.items())
    if answer.note:
        yield f"note: {in_words(answer.note)}"
    yield from (f"try: {suggestion}" for suggestion in answer.suggestions)


def number(value: float | None) -> str:
    """Return a number as the tables show it; a dash for none."""
    return "-" if value is None else f"{value:.4f}"


def arithmetic(sums: Arithmetic) -> Iterator[str]:
    """Yield the lines that say how a result came by its rank, its score and its label."""
    legs, weights = sums["families"], sums["weights"] or {}
    rows = (
        (name, str(leg["rank"] or "-"), *map(number, (leg["score"], weights.get(name), leg["added"])))
        for name, leg in legs.items()
    )
    yield from output.table(("leg", "rank", "score", "weight", "adds"), rows).splitlines()
    added = " + ".join(number(leg["added"]) for leg in legs.values())
    product = f"({added}) × {sums['factor']:.4f}" if sums["factor"] != 1 else added
    gain = f" + {sums['gain']:.4f}" if sums["gain"] else ""
    yield f"{sums['fusion']}: {product}{gain} = {number(sums['fused'])}; agreement {sums['agreement']:.2f}"
    if close := sums.get("closeness"):
        yield f"closeness: {close:.0%} of the query's neighbouring words stand together in it"
    if sums.get("name"):
        yield "name: it defines what the query names, so it comes first"
    if "ranked" in sums and sums["ranked"] != sums["fused"]:
        yield f"with boosts and reranking: {number(sums['ranked'])}"
    if "relevance" in sums:
        yield from _relevance(sums["relevance"])
    if label := sums.get("label"):
        capped = f", capped from {label['earned']}" if label["capped"] else ""
        yield f"label {label['label']}{capped}: {label['row']}"


def _relevance(sums: Arithmetic) -> Iterator[str]:
    """Yield the score, and what moved it: log-odds where it was fitted, plain values where not."""
    kind = f"calibrated for {sums['evidence']}" if sums["calibrated"] else "a stand-in: nothing was fitted"
    yield f"relevance {sums['relevance']:.4f} ({kind})"
    if sums["calibrated"]:
        features = sorted(sums["features"], key=lambda feature: -abs(feature["added"]))[:MOST_FEATURES]
        shown = (f"{row['name']} {row['value']:.3g} → {row['added']:+.2f}" for row in features)
        yield f"log-odds from {sums['intercept']:+.2f}: {', '.join(shown)}, …"
