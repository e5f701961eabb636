"""`kb search`: flags become a request, an answer becomes text or JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, tags_option
from concord.cli.faults import NOTHING_FOUND
from concord.cli.words import WORDS
from concord.search.fuse import FUSIONS
from concord.types import DOCUMENT_TYPES, MODES, Answer, Mode, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from concord.knowledge import KnowledgeBase


def _moment(ctx: click.Context, parameter: click.Parameter, given: str | None) -> float | None:
    if given is None:
        return None
    from concord.core.values import moment

    return moment(given, now=time.time(), is_end=parameter.name == "until")


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
    click.option(
        "--since", metavar="DATE", callback=_moment, help="Only what was changed since: 2026-01-31, 7d (ago)."
    ),
    click.option("--until", metavar="DATE", callback=_moment, help="Only what was not changed after that."),
    click.option("--top", type=int, metavar="N", help="How many results (setting search.default_top)."),
    click.option("--threshold", type=float, metavar="X", help="Only fused scores of at least X."),
    click.option("--min-score", type=float, metavar="P", help="Only results whose score is at least P."),
    click.option(
        "--fusion", type=click.Choice(sorted(FUSIONS)), help="How the strategies' lists become one."
    ),
    click.option("--ef-search", type=click.IntRange(1), metavar="N", help="Effort of an approximate index."),
    click.option(
        "--deadline-ms",
        type=float,
        metavar="N",
        help="How long the strategies may take; the answer names late ones; late words are an error.",
    ),
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
@click.option("--explain", is_flag=True, help="Add the numbers behind each result.")
def search(flags: Flags, query: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Search by words and by meaning.

    Several words need no quotes. Inside the query, "quoted words" are a phrase, AND, OR and NOT combine,
    -word excludes and word* matches beginnings; put -- before a query that begins with a dash.
    """
    within, mode = given.pop("within"), take_mode(given)
    with opened(flags, must_exist=within is None) as knowledge:
        request = Request(" ".join(query), mode=mode, **given)
        if within is not None:
            request = _scoped(request, within, knowledge)
        answer = knowledge.ask(request)
    _show(answer, as_json=as_json)
    return 0 if answer.hits else NOTHING_FOUND


def take_mode(given: dict[str, Any]) -> Mode | None:
    """Return the mode that the flags ask for, and take these flags out of all that were given."""
    mode: Mode | None = given.pop("mode")
    fts_only, vec_only = given.pop("fts_only"), given.pop("vec_only")
    shorthands: tuple[tuple[Mode, bool], ...] = (("fts5", fts_only), ("semantic", vec_only))
    asked = {name for name, is_on in shorthands if is_on} | ({mode} if mode else set())
    if len(asked) > 1:
        refuse("--fts-only, --vec-only and --mode exclude each other")
    return asked.pop() if asked else None


def _scoped(request: Request, within: str, knowledge: KnowledgeBase) -> Request:
    """Bring a path up to date and return the request confined to it."""
    from concord.cli.progress import progress_shown

    if request.source is not None:
        refuse("--in and --source exclude each other")
    mode = request.mode or knowledge.settings["search.mode"]
    with progress_shown() as progress:
        scope = knowledge.ensure(within, embed=mode != "fts5", progress=progress)
    if scope.path is not None and request.path is not None:
        refuse("--path works with --in only where --in is a whole source")
    return replace(request, source=scope.source, path=scope.path or request.path)


def _show(answer: Answer, *, as_json: bool) -> None:
    explain = answer.request.explain
    if as_json:
        from concord.wire import answer_in_words, answer_to_json

        answer = answer_in_words(answer, WORDS)
        output.emit_json(answer_to_json(answer, max_tokens=answer.request.max_tokens, explain=explain))
        return
    from concord.cli.hits import show

    show(answer, explain=explain)
