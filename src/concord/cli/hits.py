"""An answer for people: each result with its citation, who found it and a snippet; then the search itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

from concord.cli import output
from concord.cli.output import styled
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line

MAX_WIDTH = 100  # longer lines are hard to read
FEW_LINES = 6  # of a snippet, which stay as they are
SHORT_LINE = 16  # letters on average, below which the lines of a snippet are a list: code has 20 and more
MOST_FEATURES = 4  # of a relevance that are shown: those that moved it most
INDENT = "    "

Style = Callable[[str], str]


def show(answer: JsonObject, *, explain: bool = False) -> None:
    """Print the results on stdout and what is to be said about them on stderr."""
    if answer["results"]:
        mark = _marker(answer["query"])
        scale = " (uncalibrated)" if answer["calibrated"] is False else ""
        results = (_result(result, mark, scale) for result in answer["results"])
        parts = [*_answer(answer), *results, *map(_linked, answer["linked"])]
        output.emit("\n\n".join("\n".join(lines) for lines in parts))
    for line in _remarks(answer, explain=explain):
        output.talk(line)


def _faint(text: str) -> str:
    return styled(text, dim=True)


def _strong(text: str) -> str:
    return styled(text, bold=True)


def _match(text: str) -> str:
    return styled(text, fg="yellow", bold=True)


def _under(text: str, style: Style) -> list[str]:
    """Return a text in indented lines, at a terminal no wider than it is."""
    if not output.is_terminal(sys.stdout):
        return [INDENT + one_line(text)]
    import shutil
    import textwrap

    width = min(MAX_WIDTH, shutil.get_terminal_size().columns) - len(INDENT)
    return [INDENT + style(line) for line in textwrap.wrap(one_line(text), max(20, width))]


def _snippet(snippet: str, style: Style) -> list[str]:
    """Return a snippet in the lines that it has, indented; many that hold a word each flow together."""
    lines = [line.rstrip() for line in snippet.expandtabs(4).split("\n") if line.strip()]
    if len(lines) > FEW_LINES and len(snippet) < SHORT_LINE * len(lines):
        return _under(" ".join(snippet.split()), style)
    shared = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [part for line in lines for part in _under(line[shared:], style)]


def _warnings(found: JsonObject) -> list[str]:
    return [line for warning in found["warnings"] for line in _under(f"warning: {warning}", _faint)]


def _answer(answer: JsonObject) -> Iterator[list[str]]:
    """Yield the words that answer the question, with where they stand."""
    if span := answer["answer"]:
        words = [line.removeprefix(INDENT) for line in _under(" ".join(span["text"].split()), _match)]
        yield [*words, *_under(span["citation"], _faint)]


def _linked(row: JsonObject) -> list[str]:
    """Return what a result points to."""
    head = f" →  {_strong(one_line(row['citation']))}  {one_line(row['title'])}"
    via = _under(f"{row['kind']} in {row['via']}", _faint)
    return [head, *via, *_snippet(row["snippet"], str), *_warnings(row)]


def _result(result: JsonObject, mark: Style, scale: str) -> list[str]:
    lines = [f"{result['rank']:>2}. {_strong(one_line(result['citation']))}  {_trail(result)}"]
    lines += _under(" · ".join(_facts(result, scale)), _faint)
    lines += _snippet(result["snippet"], mark) + _warnings(result)
    for other in result["more"] or ():
        lines += _under(f"{other['citation']} · score {other['score']:.4f}", _faint)
        lines += _warnings(other) + [INDENT + line for line in _snippet(other["snippet"], mark)]
    if sums := result.get("explanation"):
        ranks = ", ".join(f"{found['strategy']} {found['rank']}" for found in sums["strategies"])
        lines += [INDENT + _faint(f"ranks: {ranks}")]
        lines += [INDENT + _faint(line) for line in arithmetic(sums)]
    return lines


def _trail(result: JsonObject) -> str:
    """Return a title and the headings below it, as much as a line takes."""
    trail = " › ".join(dict.fromkeys(map(one_line, (result["title"], *result["heading"]))))
    return trail if len(trail) <= MAX_WIDTH else f"{trail[: MAX_WIDTH - 1]}…"


def _facts(result: JsonObject, scale: str) -> Iterator[str]:
    """Yield who found a result and how far to trust it; `scale` is what is to be said of its score."""
    families = {"meaning" if name == "semantic" else _family(name) for name in result["found_by"]}
    yield f"{'+'.join(sorted(families, reverse=True))} ({', '.join(result['found_by'])})"
    if result["confidence"]:
        yield f"confidence {result['confidence']}"
    yield f"score {result['score']:.4f}{scale}"
    if result["passage_score"] < result["score"]:
        yield f"this passage alone {result['passage_score']:.4f}"
    if "explanation" in result:
        yield from (f"{name} {score:.4f}" for name, score in result["scores"].items() if score is not None)
        yield f"best rank {result['best_rank']}"
    if result["moved_from"]:
        yield f"moved from {result['moved_from']}"
    yield from state_of(result)
    if section := result["section"]:
        yield f"section lines {section['start_line']}-{section['end_line']} ({section['tokens']:,} tokens)"
    if result["more_in_document"]:
        yield f"{result['more_in_document']} more in this document"
    if result["also_at"]:
        yield "also at " + ", ".join(result["also_at"])


def state_of(found: JsonObject) -> Iterator[str]:
    """Yield what has happened to a document since it was indexed."""
    if found["freshness"] is None:
        yield "its folder is empty or out of reach"
    elif found["freshness"] != "fresh":
        yield f"the file was {found['freshness']} since it was indexed"
    if found["superseded_by"]:
        yield f"superseded by {found['superseded_by']}"


def _family(strategy: str) -> str:
    return "words" if strategy == "names" or strategy.startswith("fts_") else "others"


def _marker(query: str) -> Style:
    """Return what marks the words of a query in a line, in any form that a search finds, in colours."""
    if not output.colourful(sys.stdout):
        return str
    from concord.text.scripts import MARKS, has_marks
    from concord.text.terms import index_terms
    from concord.text.tokens import tokenize
    from concord.text.word_lists import significant

    def tokens(word: str) -> set[str]:
        return {*(() if has_marks(word) else tokenize(word)), *tokenize(index_terms(word))}

    words = re.compile(rf"[\w{MARKS}]+")
    wanted = set().union(*map(tokens, significant(words.findall(query))))
    return lambda line: words.sub(
        lambda word: word[0] if wanted.isdisjoint(tokens(word[0])) else _match(word[0]), line
    )


def missing(answer: JsonObject) -> Iterator[str]:
    """Yield who had no part in an answer, and why."""
    return (f"without {part['strategy']}: {part['reason']}" for part in answer["degraded"])


def _remarks(answer: JsonObject, *, explain: bool) -> Iterator[str]:
    """Yield what there is to say about a search, the summary first."""
    found, omitted = answer["returned"], answer["omitted"]
    count = output.counted(found, "result") if found else "nothing found"
    of = f" of {answer['total_hits']:,} candidates" if answer["total_hits"] > found > 0 else ""
    parts = [f"{count}{of} in {answer['search_time_ms']:.0f} ms", f"mode {answer['mode']}"]
    if answer["confidence"]:
        is_doubtful = answer["calibrated"] is False and found
        doubt = " (uncalibrated: nothing was fitted for this)" if is_doubtful else ""
        parts.append(f"confidence {answer['confidence']}{doubt}")
    yield " · ".join(parts)
    if answer["answerable"] is False and found:
        yield f"nothing here answers this; nearest: {_trail(answer['results'][0])}"
    if omitted["below_threshold"]:
        yield f"{omitted['below_threshold']} below the threshold"
    if omitted["below_min_score"]:
        yield f"{omitted['below_min_score']} below the least score"
    if omitted["deleted"]:
        yield f"{omitted['deleted']} left out: deleted since they were indexed (`kb sync`)"
    yield from missing(answer)
    if explain:
        yield "took " + ", ".join(f"{stage} {took:.1f} ms" for stage, took in answer["timings_ms"].items())
    if answer["note"]:
        yield f"note: {answer['note']}"
    yield from (f"try: {suggestion}" for suggestion in answer["suggestions"])


def number(value: float | None) -> str:
    """Return a number as explanations show it; a dash for none."""
    return "-" if value is None else f"{value:.4f}"


def arithmetic(sums: JsonObject) -> Iterator[str]:
    """Yield the lines that say how a result came by its rank, its score and its label."""
    legs, weights = sums["families"], sums["weights"] or {}
    rows = [{"leg": name, **leg, "weight": weights.get(name)} for name, leg in legs.items()]
    yield from output.columns(rows).splitlines()
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
    if relevance := sums.get("relevance"):
        yield from _relevance(relevance)
    if label := sums.get("label"):
        capped = f", capped from {label['earned']}" if label["capped"] else ""
        yield f"label {label['label']}{capped}: {label['row']}"


def _relevance(sums: JsonObject) -> Iterator[str]:
    """Yield the score, and where it was fitted the log-odds that moved it."""
    if not sums["calibrated"]:
        yield f"relevance {number(sums['relevance'])} (a stand-in: nothing was fitted)"
        return
    features = sorted(sums["features"], key=lambda feature: -abs(feature["added"]))[:MOST_FEATURES]
    shown = (f"{row['name']} {row['value']:.3g} → {row['added']:+.2f}" for row in features)
    yield f"relevance {number(sums['relevance'])} (calibrated for {sums['evidence']})"
    yield f"log-odds from {sums['intercept']:+.2f}: {', '.join(shown)}, …"
