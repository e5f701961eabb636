"""`kb get`: a citation becomes the text it stands for."""

from __future__ import annotations

import sys

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse
from concord.core.reports import DocumentSlice, partly_read, sentence
from concord.visible import lines


@command(
    "get",
    "kb get docs/auth.md:12-31",
    "kb get docs/auth.md --whole > auth.txt",
    "kb get 3f2a9c51d07be684 --history",
)
@click.argument("reference", metavar="CITATION|ID")
@click.option("--context", type=int, default=0, metavar="N", help="Also N chunks before and after.")
@click.option("--whole", is_flag=True, help="The whole document that the passage is from.")
@click.option("--history", is_flag=True, help="What it superseded and what superseded it, oldest first.")
def get(flags: Flags, reference: str, context: int, whole: bool, history: bool, as_json: bool) -> None:
    """Read a passage, its neighbours or a whole document.

    Takes what a search printed: a citation, a document id or a chunk id. The text is as it was indexed; when
    the file has changed since, stderr says so.
    """
    if history and (context or whole):
        refuse("--history lists documents: --context and --whole do not go with it")
    if history:
        _show_history(flags, reference, as_json=as_json)
        return
    with opened(flags) as knowledge:
        read = knowledge.get(reference, context=context, whole=whole)
    if as_json:
        from concord.wire import slice_to_json

        output.emit_json(slice_to_json(read))
        return
    output.talk(_header(read), bold=read.citation)
    output.emit(lines(read.text) if output.is_terminal(sys.stdout) else read.text)


def _show_history(flags: Flags, reference: str, *, as_json: bool) -> None:
    from concord.wire import document_to_json, iso_time

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
    parts += [sentence(one) for one in partly_read([read.document])]
    return " · ".join(parts)
