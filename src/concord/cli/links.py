"""`kb links` and `kb related`: what is around a document?"""

from __future__ import annotations

from collections.abc import Iterator

import click

from concord.cli import output
from concord.cli.command import Flags, command, run
from concord.core.arguments import Links, Related
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line


@command("links", "kb links docs/auth.md", "kb links", "kb links docs/auth.md --json")
@click.argument("document", metavar="[CITATION|ID]", required=False)
def links(flags: Flags, document: str | None, as_json: bool) -> None:
    """List what a document links to, what links to it, and which of its links are broken.

    Without a document: the broken links of all. A link is broken if it names a page that is not indexed.
    Links are those of Markdown, wikis, HTML and Org, relations in front matter, imports of code, and mentions
    of another document's title.
    """
    found = run(flags, "links", Links(document))
    if as_json:
        output.emit_json(found)
        return
    rows = [*_rows("→", found["out"]), *_rows("←", found["back"]), *_rows("broken", found["broken"])]
    if rows:
        output.emit(output.table(("", "kind", "document", "said as", "in"), rows))
    else:
        output.talk("no links" if document else "no broken links")


def _rows(mark: str, ends: list[JsonObject]) -> Iterator[tuple[str, ...]]:
    for end in ends:
        where = end["path"] or end["target"]
        yield mark, end["kind"], one_line(where), one_line(end["text"]), one_line(end["citation"])


@command("related", "kb related docs/auth.md", "kb related docs/auth.md --top 5 --json")
@click.argument("document", metavar="CITATION|ID")
@click.option("--top", type=click.IntRange(1, 50), default=10, metavar="N", help="How many at most (10).")
def related(flags: Flags, document: str, top: int, as_json: bool) -> None:
    """List the documents nearest to one, by the mean of their vectors and by links, and why."""
    found = run(flags, "related", Related(document, top))
    if as_json:
        output.emit_json(found)
    elif not found["related"]:
        output.talk("nothing is near it")
    else:
        rows = [
            (f"{row['score']:.2f}", one_line(row["path"]), one_line(row["title"]), "; ".join(_reasons(row)))
            for row in found["related"]
        ]
        output.emit(output.table(("score", "document", "title", "because"), rows))


def _reasons(row: JsonObject) -> Iterator[str]:
    if row["cosine"] is not None:
        yield f"alike {row['cosine']:.2f}"
    if row["links_to_it"]:
        yield f"linked from this ({', '.join(row['links_to_it'])})"
    if row["linked_from_it"]:
        yield f"links to this ({', '.join(row['linked_from_it'])})"
