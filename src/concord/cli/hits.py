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
LEAST_TITLE = 12  # characters to which a title may be shortened to make room for headings
INDENT = "    "


class Dress(Struct, frozen=True):
    """How text is coloured: plain if the output is no terminal, or colours are not wanted."""

    strong: Callable[[str], str]
    faint: Callable[[str], str]
    match: Callable[[str], str]
    width: int | None  # None: lines are not wrapped


def show(answer: Answer, *, explain: bool = False) -> None:
    """Print the hits on stdout and what is to be said about them on stderr."""
    dress = _dress()
    if answer.hits:
        light_up = _highlighter(answer.request.text, dress, answer.searched)
        scale = " (uncalibrated)" if answer.calibrated is False else ""
        hits = [_hit(hit, dress, light_up, scale, explain=explain) for hit in answer.hits]
        output.emit("\n\n".join([*_answer(answer, dress), *hits, *_linked(answer, dress)]))
    for line in _remarks(answer, explain=explain):
        output.talk(line)


def _dress() -> Dress:
    width = None
    if output.is_terminal(sys.stdout):
        import shutil

        width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    if not output.colourful(sys.stdout):
        return Dress(str, str, str, width)
    return Dress(
        strong=lambda text: click.style(text, bold=True),
        faint=lambda text: click.style(text, dim=True),
        match=lambda text: click.style(text, fg="yellow", bold=True),
        width=width,
    )


def _answer(answer: Answer, dress: Dress) -> Iterator[str]:
    """Yield the words that answer the question, with where they stand."""
    if span := answer.answer:
        words = "\n".join(dress.match(line) for line in _wrapped(span.text, dress.width))
        yield f"{words}\n{INDENT}{dress.faint(one_line(span.citation))}"


def _linked(answer: Answer, dress: Dress) -> Iterator[str]:
    """Yield what the hits point to."""
    for row in answer.linked:
        where = f"{dress.strong(one_line(row.citation))}  {one_line(row.title)}"
        lines = [f" →  {where}", INDENT + dress.faint(f"{row.kind} in {one_line(row.via)}")]
        lines += [INDENT + line for line in _snippet(row.snippet, dress.width)]
        yield "\n".join(lines + [INDENT + dress.faint(f"warning: {warning}") for warning in row.warnings])


def _hit(hit: Hit, dress: Dress, light_up: Callable[[str], str], scale: str, *, explain: bool) -> str:
    names = list(dict.fromkeys(map(one_line, (hit.document.title, *hit.chunk.heading))))
    room = max(20, (dress.width or MAX_WIDTH) - len(hit.citation) - len(INDENT) - 2)
    lines = [f"{hit.rank:>2}. {dress.strong(one_line(hit.citation))}  {trail(names, room)}"]
    facts = " · ".join(_facts(hit, scale, explain=explain))
    warnings = [f"warning: {warning}" for warning in hit.warnings]
    lines += [INDENT + dress.faint(line) for line in _wrapped(facts, dress.width)]
    lines += [INDENT + light_up(line) for line in _snippet(hit.snippet, dress.width)]
    lines += [INDENT + dress.faint(line) for told in warnings for line in _wrapped(told, dress.width)]
    for under in hit.more or ():
        lines.append(INDENT + dress.faint(f"{one_line(under.citation)} · score {under.passage_score:.4f}"))
        lines += [INDENT + dress.faint(f"warning: {told}") for told in under.warnings]
        lines += [2 * INDENT + light_up(line) for line in _snippet(under.snippet, dress.width)]
    if explain and (numbers := hit.explanation):
        lines += [INDENT + dress.faint(line) for line in (*ranks(numbers), *arithmetic(numbers))]
    return "\n".join(lines)


def trail(names: Sequence[str], most: int) -> str:
    """Return a title and the headings below it in so many characters; of a long title the end goes first."""
    title, *below = names
    rest = "".join(f" › {name}" for name in below)
    return _cut(_cut(title, max(LEAST_TITLE, most - len(rest))) + rest, most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _facts(hit: Hit, scale: str, *, explain: bool) -> Iterator[str]:
    """Yield who found a hit and how far to trust it; `scale` is what is to be said of its score."""
    families = {_family(name) for name in hit.found_by}
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
    if hit.section:
        of_lines = f"lines {hit.section.start_line}-{hit.section.end_line}"
        yield f"section {of_lines} ({hit.section.tokens:,} tokens)"
    if hit.more_in_document:
        yield f"{hit.more_in_document} more in this document"
    if hit.also_at:
        yield "also at " + ", ".join(map(one_line, hit.also_at))


def _family(strategy: str) -> str:
    if strategy == "semantic":
        return "meaning"
    return "words" if strategy == "names" or strategy.startswith("fts_") else "others"


def _snippet(snippet: str, width: int | None) -> list[str]:
    """Return a snippet as the lines that it has; many short ones flow together."""
    lines = [line.rstrip() for line in snippet.expandtabs(4).split("\n") if line.strip()]
    if len(lines) > MOST_LINES:
        return _wrapped(snippet, width)
    shared = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [part for line in lines for part in _wrap(line[shared:], width)]


def _wrapped(text: str, width: int | None) -> list[str]:
    return _wrap(" ".join(text.split()), width)


def _wrap(line: str, width: int | None) -> list[str]:
    line = one_line(line)
    if width is None:
        return [line]
    import textwrap

    return textwrap.wrap(line, max(20, width - len(INDENT)))


def _highlighter(query: str, dress: Dress, searched: Sequence[str]) -> Callable[[str], str]:
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

    def is_wanted(word: str) -> bool:
        return not wanted.isdisjoint(tokens(word)) or any(contains(word, form) for form in searched)

    return lambda line: words.sub(
        lambda found: dress.match(found[0]) if is_wanted(found[0]) else found[0], line
    )


def missing(degraded: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield who had no part in an answer, and why."""
    return (f"without {part['strategy']}: {in_words(part['reason'])}" for part in degraded)


def _doubt(answer: Answer) -> str:
    """Return that no probability stands behind the labels of an answer."""
    return (
        " (uncalibrated: nothing was fitted for this)" if answer.calibrated is False and answer.hits else ""
    )


def _remarks(answer: Answer, *, explain: bool) -> Iterator[str]:
    """Yield what there is to say about a search, the summary first."""
    found = len(answer.hits)
    count = "nothing found" if not found else f"{found} result{'s' * (found != 1)}"
    of = f" of {answer.total_hits:,} candidates" if answer.total_hits > found > 0 else ""
    parts = [f"{count}{of} in {answer.search_time_ms:.0f} ms", f"mode {answer.mode}"]
    if answer.confidence:
        parts.append(f"confidence {answer.confidence}{_doubt(answer)}")
    yield " · ".join(parts)
    if answer.answerable is False and found:
        names = map(one_line, (answer.hits[0].document.title, *answer.hits[0].chunk.heading))
        yield f"nothing here answers this; nearest: {trail([*dict.fromkeys(names)], MAX_WIDTH)}"
    if dropped := answer.omitted.get("below_threshold"):
        yield f"{dropped} below the threshold"
    if unlikely := answer.omitted.get("below_min_score"):
        yield f"{unlikely} below the least score"
    if gone := answer.omitted.get("deleted"):
        yield f"{gone} left out: deleted since they were indexed (`kb sync`)"
    yield from missing({"strategy": part.strategy, "reason": part.reason} for part in answer.degraded)
    if explain:
        yield "took " + ", ".join(f"{stage} {took:.1f} ms" for stage, took in answer.timings_ms.items())
    if answer.note:
        yield f"note: {in_words(answer.note)}"
    yield from (f"try: {suggestion}" for suggestion in answer.suggestions)


MOST_FEATURES = 4  # of a relevance that are shown: those that moved it most

Arithmetic = Mapping[str, Any]


def ranks(sums: Arithmetic) -> list[str]:
    """Return the lines that say who found a result."""
    rows = ((found["strategy"], str(found["rank"])) for found in sums["strategies"])
    return output.table(("strategy", "rank"), rows).splitlines()


def arithmetic(sums: Arithmetic) -> list[str]:
    """Return the lines that say how a result came by its rank, its score and its label."""
    lines = output.table(("leg", "rank", "score", "weight", "adds"), _legs(sums)).splitlines()
    lines.append(_sum(sums))
    if close := sums.get("closeness"):
        lines.append(f"closeness: {close:.0%} of the query's neighbouring words stand together in it")
    if sums.get("name"):
        lines.append("name: it defines what the query names, so it comes first")
    if "ranked" in sums and sums["ranked"] != sums["fused"]:
        lines.append(f"with boosts and reranking: {number(sums['ranked'])}")
    if "relevance" in sums:
        lines.extend(_relevance(sums["relevance"]))
    if "label" in sums:
        capped = f", capped from {sums['label']['earned']}" if sums["label"]["capped"] else ""
        lines.append(f"label {sums['label']['label']}{capped}: {sums['label']['row']}")
    return lines


def number(value: float | None) -> str:
    """Return a number as the tables show it; a dash for none."""
    return "-" if value is None else f"{value:.4f}"


def _legs(sums: Arithmetic) -> Iterator[tuple[str, ...]]:
    weights = sums["weights"] or {}
    for name, leg in sums["families"].items():
        yield (
            name,
            str(leg["rank"] or "-"),
            number(leg["score"]),
            number(weights.get(name)),
            number(leg["added"]),
        )


def _sum(sums: Arithmetic) -> str:
    added = " + ".join(number(leg["added"]) for leg in sums["families"].values())
    product = f"({added}) × {sums['factor']:.4f}" if sums["factor"] != 1 else added
    gain = f" + {sums['gain']:.4f}" if sums["gain"] else ""
    return f"{sums['fusion']}: {product}{gain} = {number(sums['fused'])}; agreement {sums['agreement']:.2f}"


def _relevance(sums: Arithmetic) -> Iterator[str]:
    """Yield the score, and what moved it: log-odds where it was fitted, plain values where not."""
    kind = f"calibrated for {sums['evidence']}" if sums["calibrated"] else "a stand-in: nothing was fitted"
    yield f"relevance {sums['relevance']:.4f} ({kind})"
    if sums["calibrated"]:
        features = sorted(sums["features"], key=lambda feature: -abs(feature["added"]))[:MOST_FEATURES]
        shown = ", ".join(
            f"{feature['name']} {feature['value']:.3g} → {feature['added']:+.2f}" for feature in features
        )
        yield f"log-odds from {sums['intercept']:+.2f}: {shown}, …"
