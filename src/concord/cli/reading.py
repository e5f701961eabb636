"""`kb get`, `kb links`, `kb related` and `kb feedback`: what a document says, and what is around it."""

from __future__ import annotations

import sys

import click

from concord.cli import hits, output
from concord.cli.command import SOME_FAILED, Flags, command, opened, refuse, run
from concord.core.arguments import Feedback, Get, Links, Related
from concord.text.json_safe import JsonObject
from concord.text.visible import lines
from concord.types import LEVELS, Level, Opinion


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
    flags: Flags, references: tuple[str, ...], level: Level | None, context: int, whole: bool, history: bool
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
        _show_history(flags, references[0])
        return 0
    asked = Get(citations=references, level=level, context=context, whole=whole)
    found: JsonObject = run(flags, "get", asked)
    flags.show(found, _show_read)
    return SOME_FAILED if found.get("unread") else 0


def _show_read(found: JsonObject) -> None:
    for read in (found, *found.get("further", ())):
        headings = " › ".join(dict.fromkeys((read["title"], *read["heading"])))
        head = [f"{read['citation']}  {headings}", *hits.state_of(read)]
        output.talk(" · ".join(head), bold=read["citation"])
        for told, paths in (("links to", read["links"]), ("linked from", read["backlinks"])):
            if paths:
                output.talk(f"{told} {', '.join(paths)}")
        output.emit(lines(read["text"]) if output.is_terminal(sys.stdout) else read["text"])
    for missing in found.get("unread", ()):
        output.talk(f"not read: {missing['citation']} ({missing['reason']})")


def _show_history(flags: Flags, reference: str) -> None:
    from concord.wire import document_to_json

    with opened(flags) as knowledge:
        history = [document_to_json(document) for document in knowledge.history(reference)]
    heads = {"modified_at": "changed", "document_id": "document", "title": "title"}
    more = {"superseded_by": "superseded by"}
    flags.show({"history": history}, lambda _: output.listed(history, {**heads, **more}, "no history"))


@command("links", "kb links docs/auth.md", "kb links", "kb links docs/auth.md --json")
@click.argument("document", metavar="[CITATION|ID]", required=False)
def links(flags: Flags, document: str | None) -> None:
    """List what a document links to, what links to it, and which of its links are broken.

    Without a document: the broken links of all. A link is broken if it names a page that is not indexed.
    Links are those of Markdown, wikis, HTML and Org, relations in front matter, imports of code, and mentions
    of another document's title.
    """
    none = "no links" if document else "no broken links"
    flags.show(run(flags, "links", Links(document)), lambda found: _show_links(found, none))


def _show_links(found: JsonObject, none: str) -> None:
    marks = {"→": found["out"], "←": found["back"], "broken": found["broken"]}
    rows = [
        {"mark": mark, "at": end["path"] or end["target"], **end}
        for mark, ends in marks.items()
        for end in ends
    ]
    heads = {"mark": "", "kind": "kind", "at": "document", "text": "said as", "citation": "in"}
    output.listed(rows, heads, none)


@command("related", "kb related docs/auth.md", "kb related docs/auth.md --top 5 --json")
@click.argument("document", metavar="CITATION|ID")
@click.option("--top", type=click.IntRange(1, 50), default=10, metavar="N", help="How many at most (10).")
def related(flags: Flags, document: str, top: int) -> None:
    """List the documents nearest to one, by the mean of their vectors and by links, and why."""
    flags.show(run(flags, "related", Related(document, top)), _show_related)


def _show_related(found: JsonObject) -> None:
    heads = {"score": "score", "path": "document", "title": "title", "cosine": "alike"}
    more = {"links_to_it": "linked from this", "linked_from_it": "links to this"}
    output.listed(found["related"], {**heads, **more}, "nothing is near it")


@command(
    "feedback",
    'kb feedback docs/auth.md:12-31 good --query "how does login work"',
    'kb feedback docs/old.md bad --query "how does login work"',
    "kb feedback 3f2a9c51d07be684 bad --json",
)
@click.argument("reference", metavar="CITATION|ID")
@click.argument("opinion", type=click.Choice(("good", "bad")))
@click.option("--query", metavar="Q", default="", help="What was asked; without it nothing can be learnt.")
def feedback(flags: Flags, reference: str, opinion: Opinion, query: str) -> None:
    """Record whether a result was good or bad for a query.

    Kept in the store, and nowhere else. It never moves a result by itself: `kb calibrate` fits confidence to
    it, `kb eval` and `kb stats` show it. A second opinion on the same document and query replaces the first.
    """
    given = run(flags, "feedback", Feedback(reference, opinion, query))
    about = f" for {given['query']!r}" if given["query"] else ""
    flags.show(given, lambda _: output.talk(f"{given['citation']} is {given['opinion']}{about}"))
