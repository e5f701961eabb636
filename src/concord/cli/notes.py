"""`kb note`: what somebody types or pipes in becomes a document without a file."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, tags_option
from concord.errors import BadValue


@command(
    "note",
    'kb note "the staging password is rotated on Mondays" --tags ops',
    "git log -5 | kb note - --title 'recent changes'",
    'kb note "rotated on Fridays now" --supersedes 3f2a9c51d07be684',
)
@click.argument("text", nargs=-1, metavar="[TEXT | -]")
@click.option("--title", metavar="T", help="Its title; the first words stand in.")
@tags_option("Its tags.")
@click.option("--details", metavar="JSON", help="An object of further fields to keep with it.")
@click.option("--supersedes", metavar="ID", help="The document that it replaces in searches.")
@click.option("--no-embed", is_flag=True, help="Searchable by words now, by meaning after `kb sync`.")
def note(flags: Flags, text: tuple[str, ...], as_json: bool, no_embed: bool, **given: Any) -> None:
    """Keep a note.

    With - or with nothing, the text is read from stdin. Prints the id of the new document, which `kb get`
    reads and a later note can supersede.
    """
    from concord.notes import Note

    kept = Note(_content(text), given["title"], given["tags"], _details(given["details"]))
    with opened(flags) as knowledge:
        document = knowledge.note(kept, supersedes=given["supersedes"], embed=not no_embed)
    if as_json:
        from concord.wire import document_to_json

        output.emit_json(document_to_json(document))
        return
    output.emit(document.id)
    output.talk(f"kept as {document.path}")


def _content(text: tuple[str, ...]) -> str:
    if text and text != ("-",):
        return " ".join(text)
    if not text and output.is_terminal(sys.stdin):
        refuse("there is no text to keep")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _details(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    hint = """an object, such as '{"ticket": 42}'"""
    try:
        details = json.loads(given)
    except ValueError as fault:
        raise BadValue(f"--details is not JSON: {fault}", hint=hint) from fault
    if not isinstance(details, dict):
        raise BadValue("--details must be a JSON object", hint=hint)
    return details
