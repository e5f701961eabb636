"""`kb get`: a citation becomes the text it stands for."""

from __future__ import annotations

import sys

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened
from concord.types import Passage
from concord.visible import lines


@command(
    "get",
    "kb get docs/auth.md:12-31",
    "kb get docs/auth.md:12-31 --context 1",
    "kb get docs/auth.md --whole > auth.txt",
)
@click.argument("reference", metavar="CITATION|ID")
@click.option("--context", type=int, default=0, metavar="N", help="Also N chunks before and after.")
@click.option("--whole", is_flag=True, help="The whole document that the passage is from.")
def get(flags: Flags, reference: str, context: int, whole: bool, as_json: bool) -> None:
    """Read a passage, its neighbours or a whole document.

    Takes what a search printed: a citation, a document id or a chunk id. The text is as it was indexed; when
    the file has changed since, stderr says so.
    """
    with opened(flags) as knowledge:
        passage = knowledge.get(reference, context=context, whole=whole)
    if as_json:
        from concord.wire import passage_to_json

        output.emit_json(passage_to_json(passage))
        return
    output.talk(_header(passage), bold=passage.citation)
    output.emit(lines(passage.text) if output.is_terminal(sys.stdout) else passage.text)


def _header(passage: Passage) -> str:
    headings = " › ".join(dict.fromkeys((passage.document.title, *passage.heading)))
    parts = [f"{passage.citation}  {headings}"]
    if passage.freshness != "fresh":
        parts.append(f"the file was {passage.freshness} since it was indexed")
    if passage.document.superseded_by:
        parts.append(f"superseded by {passage.document.superseded_by}")
    return " · ".join(parts)
