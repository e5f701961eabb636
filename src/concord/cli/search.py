"""`kb search`, `kb explain`, `kb get` and `kb feedback`: what is found, why, what it says, was it good?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from concord.cli import output
from concord.cli.command import (
    NOTHING_FOUND,
    SOME_FAILED,
    Flags,
    command,
    opened,
    refuse,
    run,
    run_with,
    settings_of,
    start_engine,
    tags_option,
)
from concord.cli.words import WORDS, in_words
from concord.core.arguments import Explain, Feedback, Get, Search
from concord.core.reports import DocumentSlice, Slices, partly_read, sentence
from concord.operations import JsonObject
from concord.text.visible import lines, one_line
from concord.types import DOCUMENT_TYPES, FUSION_NAMES, GROUPS, LEVELS, MODES, Answer, Level, Mode, Opinion

_REQUEST_OPTIONS = (
    click.option("--mode", type=click.Choice(MODES), help="Which strategies take part, and how."),
    click.option("--fts-only", is_flag=True, help="Words only (mode fts5): no model is loaded."),
    click.option("--vec-only", is_flag=True, help="Meaning only (mode semantic)."),
    tags_option("Only documents with all of these tags."),
    click.option("--type", type=click.Choice(DOCUMENT_TYPES), help="Only documents of this type."),
    click.option("--source", metavar="SOURCE", help="Only this source."),
    click.option(
        "--path",
        metavar="PATH",
        help="Only this file or folder, as citations name it or on disk; * and ** as in globs.",
    ),
    click.option("--since", metavar="DATE", help="Only what was changed since: 2026-01-31, 7d (ago)."),
    click.option("--until", metavar="DATE", help="Only what was not changed after that."),
    click.option("--top", type=int, metavar="N", help="How many results (setting search.default_top)."),
    click.option("--threshold", type=float, metavar="X", help="Only fused scores of at least X."),
    click.option("--min-score", type=float, metavar="P", help="Only results whose score is at least P."),
    click.option("--fusion", type=click.Choice(FUSION_NAMES), help="How the strategies' lists become one."),
    click.option("--ef-search", type=click.IntRange(1), metavar="N", help="Effort of an approximate index."),
    click.option(
        "--deadline-ms",
        type=float,
        metavar="N",
        help="How long the strategies may take; the answer names late ones; late words are an error.",
    ),
    click.option("--rerank", is_flag=True, help="Let the reader reorder the first ten; takes longer."),
    click.option("--include-superseded", is_flag=True, help="Also what a newer document has replaced."),
)


def request_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that a search and its explanation share: all that decide what is found, and how."""
    for option in reversed(_REQUEST_OPTIONS):  # as if they stood above the function one by one
        function = option(function)
    return function


@command(
    "search",
    'kb search "how does login work" --in ./docs',
    "kb search deploy --tags ops,production --since 7d --top 5",
    """kb search '"connection refused" -docker' --fts-only --json""",
)
@click.argument("query", nargs=-1, required=True)
@click.option("--in", "within", metavar="PATH", help="Index PATH if it is new or changed; search only it.")
@request_options
@click.option(
    "--min-generation",
    type=click.IntRange(0),
    metavar="N",
    help="Wait until the index has this generation, which a sync reports.",
)
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="At most so many tokens of --json.")
@click.option(
    *("--group", "--level", "group"),
    type=click.Choice(GROUPS),
    help="What comes as one result; by default a section where tokens are limited, else a passage.",
)
@click.option("--files", is_flag=True, help="Print the paths of the files alone, for pipes.")
@click.option("--explain", is_flag=True, help="Add the numbers behind each result.")
def search(flags: Flags, query: tuple[str, ...], files: bool, as_json: bool, **given: Any) -> int:
    """Search by words and by meaning.

    Several words need no quotes. Inside the query, "quoted words" are a phrase, AND, OR and NOT combine,
    -word excludes and word* matches beginnings; put -- before a query that begins with a dash.
    """
    if given["within"] is not None and given["source"] is not None:
        refuse("--in and --source exclude each other")
    asked = Search(" ".join(query), mode=take_mode(given), limit=given.pop("top"), **given)
    settings = settings_of(flags)
    found = run_with(settings, "search", asked, must_exist=asked.within is None, value=Answer)
    _show_files(found) if files and not as_json else _show(found, as_json=as_json)
    start_engine(settings)
    return 0 if found.hits else NOTHING_FOUND


def take_mode(given: dict[str, Any]) -> Mode | None:
    """Return the mode that the flags ask for, and take these flags out of all that were given."""
    mode: Mode | None = given.pop("mode")
    fts_only, vec_only = given.pop("fts_only"), given.pop("vec_only")
    shorthands: tuple[tuple[Mode, bool], ...] = (("fts5", fts_only), ("semantic", vec_only))
    asked = {name for name, is_on in shorthands if is_on} | ({mode} if mode else set())
    if len(asked) > 1:
        refuse("--fts-only, --vec-only and --mode exclude each other")
    return asked.pop() if asked else None


def _show_files(answer: Answer) -> None:
    """Print each file once, the best first; what is in no file has its citation path."""
    paths = (hit.source.file_of(hit.document.path) or hit.document.path for hit in answer.hits)
    if found := "\n".join(map(one_line, dict.fromkeys(paths))):
        output.emit(found)


def _show(answer: Answer, *, as_json: bool) -> None:
    explain = answer.request.explain
    if as_json:
        from concord.wire import answer_in_words, answer_to_json

        answer = answer_in_words(answer, WORDS)
        output.emit_json(answer_to_json(answer, max_tokens=answer.request.max_tokens, explain=explain))
        return
    from concord.cli.hits import show

    show(answer, explain=explain)


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
    mode, limit = take_mode(given), given.pop("top")
    told = run(flags, "explain", Explain(query, mode=mode, limit=limit, reference=reference, **given))
    output.emit_json(told) if as_json else output.emit("\n".join(_explained(in_words(told))))


def _explained(told: JsonObject) -> Iterator[str]:
    from concord.cli.hits import arithmetic, missing

    yield f"{one_line(told['citation'])}  {one_line(told['title'])}"
    yield told["why"]
    yield ""
    yield output.table(
        ("strategy", "rank", "score", ""), (_strategy(ranked, told) for ranked in told["strategies"])
    )
    if told["words"]:
        yield ""
        yield output.table(("word", "held", "in chunks", ""), map(_word, told["words"]))
    yield ""
    yield from _fused(told["fused"])
    yield from arithmetic(told["arithmetic"])
    yield from missing(told["degraded"])


def _strategy(ranked: JsonObject, told: JsonObject) -> tuple[str, str, str, str]:
    from concord.cli.hits import number

    if ranked["reason"]:
        remark = ranked["reason"]
    elif ranked["rank"] is None:
        remark = f"not among its first {told['depth']:,}"
    else:
        remark = "votes" if ranked["candidate"] else f"past the {told['candidates']} that are votes"
    return ranked["strategy"], str(ranked["rank"] or "-"), number(ranked["score"]), remark


def _word(word: JsonObject) -> tuple[str, str, str, str]:
    chunks = "-" if word["chunks"] is None else f"{word['chunks']:,}"
    return word["text"], "yes" if word["held"] else "no", chunks, "too frequent" if word["pruned"] else ""


def _fused(fused: JsonObject) -> Iterator[str]:
    from concord.cli.hits import number

    place = f"{fused['rank']} of {fused['of']}" if fused["rank"] else f"none of {fused['of']}"
    scores = f"score {number(fused['score'])}; last result {number(fused['last_score'])}"
    yield f"place after fusion: {place}; {scores}"
    limits = f"threshold {number(fused['threshold'])}, floor {number(fused['floor'])}"
    yield f"reciprocal ranks: {number(fused['rrf'])} ({limits})"


@command(
    "get",
    "kb get docs/auth.md:12-31 --level section",
    "kb get 'docs/adr/*.md' notes/login.md:3-9",
    "kb get 3f2a9c51d07be684 --history",
)
@click.argument("references", nargs=-1, required=True, metavar="CITATION|ID|GLOB...")
@click.option(
    "--level", type=click.Choice(LEVELS), help="How much of it to read; an outline is headings and lines."
)
@click.option("--context", type=int, default=0, metavar="N", help="Also N chunks before and after.")
@click.option("--whole", is_flag=True, help="The same as --level document.")
@click.option("--history", is_flag=True, help="What it superseded and what superseded it, oldest first.")
def get(
    flags: Flags,
    references: tuple[str, ...],
    level: Level | None,
    context: int,
    whole: bool,
    history: bool,
    as_json: bool,
) -> int:
    """Read a passage, its neighbours, its section or a whole document; or several of them.

    Takes what a search printed: a citation, a document id or a chunk id; or a glob over paths. The text is as
    it was indexed; when the file has changed since, stderr says so. Of several, what cannot be read is told
    and the rest is read (exit status 3).
    """
    if history and (level or context or whole or len(references) > 1):
        refuse("--history is of one document: --level, --context, --whole and others do not go with it")
    if whole and level not in (None, "document"):
        refuse("--whole and --level exclude each other")
    if history:
        _show_history(flags, references[0], as_json=as_json)
        return 0
    asked = Get(citations=references, level=level, context=context, whole=whole)
    found: Slices = run_with(settings_of(flags), "get", asked, value=Slices)
    if as_json:
        from concord.wire import slices_to_json

        output.emit_json(slices_to_json(found))
    else:
        for read in found.read:
            output.talk(_header(read), bold=read.citation)
            for told, paths in (("links to", read.links), ("linked from", read.backlinks)):
                if paths:
                    output.talk(f"{told} {', '.join(paths)}")
            output.emit(lines(read.text) if output.is_terminal(sys.stdout) else read.text)
        for name, reason in found.unread:
            output.talk(f"not read: {name} ({in_words(reason)})")
    return SOME_FAILED if found.unread else 0


def _show_history(flags: Flags, reference: str, *, as_json: bool) -> None:
    from concord.core.values import iso_time
    from concord.wire import document_to_json

    with opened(flags) as knowledge:
        documents = knowledge.history(reference)
    if as_json:
        output.emit_json({"history": [document_to_json(document) for document in documents]})
        return
    heads = ("changed", "document", "title", "superseded by")
    rows = [(iso_time(d.mtime_ns / 1e9) or "", d.id, d.title, d.superseded_by or "") for d in documents]
    output.emit(output.table(heads, rows))


def _header(read: DocumentSlice) -> str:
    headings = " › ".join(dict.fromkeys((read.document.title, *read.heading)))
    parts = [f"{read.citation}  {headings}"]
    if read.freshness not in ("fresh", None):
        parts.append(f"the file was {read.freshness} since it was indexed")
    if read.document.superseded_by:
        parts.append(f"superseded by {read.document.superseded_by}")
    parts += [sentence(part) for part in partly_read([read.document])]
    return " · ".join(parts)


@command(
    "feedback",
    'kb feedback docs/auth.md:12-31 good --query "how does login work"',
    'kb feedback docs/old.md bad --query "how does login work"',
    "kb feedback 3f2a9c51d07be684 bad --json",
)
@click.argument("reference", metavar="CITATION|ID")
@click.argument("opinion", type=click.Choice(("good", "bad")))
@click.option("--query", metavar="Q", default="", help="What was asked; without it nothing can be learnt.")
def feedback(flags: Flags, reference: str, opinion: Opinion, query: str, as_json: bool) -> None:
    """Record whether a result was good or bad for a query.

    Kept in the store, and nowhere else. It never moves a result by itself: `kb calibrate` fits confidence to
    it, `kb eval` and `kb stats` show it. A second opinion on the same document and query replaces the first.
    """
    given = run(flags, "feedback", Feedback(reference, opinion, query))
    if as_json:
        output.emit_json(given)
    else:
        about = f" for {given['query']!r}" if given["query"] else ""
        output.talk(f"{given['citation']} is {given['opinion']}{about}")
