"""`kb search` and `kb explain`: what is found, and why?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from concord.cli import hits, output
from concord.cli.command import NOTHING_FOUND, Flags, command, refuse, run, tags_option, together
from concord.core.arguments import Explain, Search
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line
from concord.types import DOCUMENT_TYPES, FUSION_NAMES, GROUPS, MODES, Mode

# What the columns of an explanation are called.
STRATEGIES = {"strategy": "strategy", "rank": "rank", "score": "score", "candidate": "votes", "reason": "why"}
WORDS = {"text": "word", "held": "held", "chunks": "in chunks", "pruned": "too frequent"}
# The flags that a search and its explanation share: all that decide what is found, and how.
_request_options = together(
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


@command(
    "search",
    'kb search "how does login work" --in ./docs',
    "kb search deploy --tags ops,production --since 7d --top 5",
    """kb search '"connection refused" -docker' --fts-only --json""",
)
@click.argument("query", nargs=-1, required=True)
@click.option("--in", "within", metavar="PATH", help="Index PATH if it is new or changed; search only it.")
@_request_options
@click.option(
    "--min-generation",
    type=click.IntRange(0),
    metavar="N",
    help="Wait until the index has this generation, which a sync reports.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="At most so many tokens of --json; the best hit stays.",
)
@click.option(
    *("--group", "--level", "group"),
    type=click.Choice(GROUPS),
    help="What comes as one result; by default a section where tokens are limited, else a passage.",
)
@click.option("--files", is_flag=True, help="Print the paths of the files alone, for pipes.")
@click.option("--explain", is_flag=True, help="Add the numbers behind each result.")
def search(flags: Flags, query: tuple[str, ...], files: bool, **given: Any) -> int:
    """Search by words and by meaning.

    Several words need no quotes. Inside the query, "quoted words" are a phrase, AND, OR and NOT combine,
    -word excludes and word* matches beginnings; put -- before a query that begins with a dash.
    """
    if given["within"] is not None and given["source"] is not None:
        refuse("--in and --source exclude each other")
    asked = Search(" ".join(query), mode=_take_mode(given), limit=given.pop("top"), **given)
    asked = asked if flags.as_json else replace(asked, max_tokens=None)  # people are shown no whole texts
    answer: JsonObject = run(flags, "search", asked, must_exist=asked.within is None)
    flags.show(answer, _show_files if files else partial(hits.show, explain=asked.explain))
    if flags.settings["engine.start"] != "never":
        from concord.engine import client

        client.start(flags.settings, wait_s=0)  # for the next search; this one does not wait
    return 0 if answer["results"] else NOTHING_FOUND


def _take_mode(given: dict[str, Any]) -> Mode | None:
    """Return the mode that the flags ask for, and take these flags out of all that were given."""
    mode: Mode | None = given.pop("mode")
    fts_only, vec_only = given.pop("fts_only"), given.pop("vec_only")
    asked: set[Mode] = {"fts5"} if fts_only else set()
    asked |= {"semantic"} if vec_only else set()
    asked |= {mode} if mode else set()
    if len(asked) > 1:
        refuse("--fts-only, --vec-only and --mode exclude each other")
    return asked.pop() if asked else None


def _show_files(answer: JsonObject) -> None:
    """Print each file once, the best first; what is in no file has its citation path."""
    paths = (result["file"] or result["path"] for result in answer["results"])
    if found := "\n".join(map(one_line, dict.fromkeys(paths))):
        output.emit(found)


@command(
    "explain",
    'kb explain "how does login work" docs/auth.md:12-31',
    "kb explain deploy docs/ops/deploy.md --tags production",
    'kb explain "token lifetime" docs/auth.md --json',
)
@click.argument("query")
@click.argument("reference", metavar="CITATION|ID")
@_request_options
def explain(flags: Flags, query: str, reference: str, **given: Any) -> None:
    """Tell why a passage ranks where it does for a query, or does not.

    Give the flags of the search that surprised you, --source for its --in. Every strategy is asked for a
    thousand chunks, so that a passage far down still has a rank; of a whole document, the chunk that came
    nearest is explained.
    """
    mode, limit = _take_mode(given), given.pop("top")
    asked = Explain(query, mode=mode, limit=limit, reference=reference, **given)
    flags.show(run(flags, "explain", asked), lambda told: output.emit("\n".join(_explained(told))))


def _explained(told: JsonObject) -> Iterator[str]:
    yield f"{one_line(told['citation'])}  {one_line(told['title'])}"
    yield f"{told['why']}\n"
    for rows, heads in ((told["strategies"], STRATEGIES), (told["words"], WORDS)):
        if rows:
            yield output.columns(rows, heads) + "\n"
    fused, number = told["fused"], hits.number
    place = f"{fused['rank'] or 'none'} of {fused['of']:,}"
    scores = f"score {number(fused['score'])}; last result {number(fused['last_score'])}"
    yield f"place after fusion: {place}; {scores}"
    limits = f"threshold {number(fused['threshold'])}, floor {number(fused['floor'])}"
    yield f"reciprocal ranks: {number(fused['rrf'])} ({limits})"
    yield from hits.arithmetic(told["arithmetic"])
    yield from hits.missing(told)
