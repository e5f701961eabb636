"""`kb note`: what somebody types or pipes in becomes a document without a file; many come and go as files."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click
from click.core import ParameterSource

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, run, tags_option
from concord.core.arguments import EditNote, Note, NoteFields, RemoveNote
from concord.core.errors import BadValue
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line


@command(
    "note",
    'kb note "the staging password is rotated on Mondays" --tags ops --alias "key rotation"',
    'kb note "rotated on Fridays now" --supersedes 3f2a9c51d07be684',
    "kb note --export notes.jsonl",
)
@click.argument("text", nargs=-1, metavar="[TEXT | -]")
@click.option("--title", metavar="T", help="Its title (default: its first words).")
@tags_option("Its tags.")
@click.option(
    "--details", metavar="JSON", help="An object of further facts; all values in it are searchable."
)
@click.option("--summary", metavar="S", help="A short summary of it.")
@click.option("--context", metavar="S", help="Where it comes from or what it belongs to.")
@click.option("--highlight", "highlights", metavar="S", multiple=True, help="A point to stress; repeatable.")
@click.option("--alias", "aliases", metavar="S", multiple=True, help="Another name for it; repeatable.")
@click.option(
    "--supersedes", metavar="ID", help="The document that it replaces in searches: id, path or citation."
)
@click.option(
    "--edit", metavar="ID", help="Change this note in place: the text and the fields that are given."
)
@click.option("--remove", metavar="ID", help="Delete this note for good: id, path or citation.")
@click.option(
    "--import", "source", metavar="PATH", help="Import notes from a .json, .jsonl or .md file, or a folder."
)
@click.option(
    "--export",
    "target",
    metavar="PATH",
    help="Export all notes to a .json, .jsonl or .md file, or a folder; - is stdout.",
)
@click.option("--no-embed", is_flag=True, help="Searchable by words now, by meaning after `kb sync`.")
def note(flags: Flags, text: tuple[str, ...], no_embed: bool, **given: Any) -> None:
    """Keep a note, change or delete one; import or export many.

    Without TEXT, or with -, the text is read from stdin. Prints the note's id, which `kb get`, --edit,
    --remove and --supersedes take. Exporting notes and importing them again loses nothing.
    """
    source, target, gone = given.pop("source"), given.pop("target"), given.pop("remove")
    edited, superseded = given.pop("edit"), given.pop("supersedes")
    if sum(value is not None for value in (source, target, gone, edited, superseded)) > 1:
        refuse("--import, --export, --remove, --edit and --supersedes exclude each other")
    fields = _fields(given)
    if (source or target or gone) and (text or fields):
        refuse("--import, --export and --remove take no text and no fields")
    if source is not None:
        _import(flags, source, embed=not no_embed)
    elif target is not None:
        _export(flags, target)
    elif gone is not None:
        flags.show(run(flags, "remove_note", RemoveNote(gone)), _show_removed)
    elif edited is not None:
        changes = {**fields, "content": _content(text)} if text else fields
        _show(flags, run(flags, "edit_note", EditNote(edited, embed=not no_embed, **changes)))
    else:
        names = NoteFields.__struct_fields__
        more = NoteFields(**{name: fields.pop(name) for name in names if name in fields})
        kept = Note(_content(text), **fields, fields=more, supersedes=superseded, embed=not no_embed)
        _show(flags, run(flags, "note", kept, must_exist=False))


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was on the command line of a note beside its text: a field given as nothing is emptied."""
    context = click.get_current_context()
    fields = {
        name: value
        for name, value in given.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return {**fields, "details": _details(fields["details"])} if "details" in fields else fields


def _show(flags: Flags, kept: JsonObject) -> None:
    kept.pop("generation")
    if flags.as_json:
        output.emit_json(kept)
        return
    output.emit(kept["document_id"])
    output.talk(f"kept as {kept['path']}")


def _show_removed(gone: JsonObject) -> None:
    output.emit(f"✓ Removed note: {one_line(gone['title'])} ({gone['path']})")
    for path in gone["brought_back"]:
        output.talk(f"{path} is found again: the note superseded it")


def _import(flags: Flags, source: str, *, embed: bool) -> None:
    with opened(flags, must_exist=False) as knowledge:
        done = knowledge.import_notes(source, embed=embed)
        wire = {**done._asdict(), "generation": knowledge.generation}
    line = f"{done.added:,} notes added, {done.changed:,} changed, {done.unchanged:,} unchanged"
    flags.show(wire, lambda _: output.emit(line))


def _export(flags: Flags, target: str) -> None:
    with opened(flags) as knowledge:
        if target != "-":
            count = knowledge.export_notes(target)
            line = f"{output.counted(count, 'note')} written to {target}"
            flags.show({"exported": count, "path": target}, lambda _: output.talk(line))
            return
        from concord.index.note_files import note_to_json

        for kept in knowledge.notes():
            output.emit(json.dumps(note_to_json(kept)))


def _content(text: tuple[str, ...]) -> str:
    if not text and output.is_terminal(sys.stdin):
        refuse("there is no text to keep")
    is_piped = not text or text == ("-",)
    given = sys.stdin.buffer.read() if is_piped else os.fsencode(" ".join(text))
    try:
        return given.decode("utf-8")
    except UnicodeDecodeError as fault:  # a note is in no file: letters that are lost here are lost for good
        raise BadValue(
            f"the text is not UTF-8 (byte {fault.start + 1})",
            hint="convert it first, such as with `iconv -f latin1 -t utf-8`",
        ) from fault


def _details(given: str) -> dict[str, Any]:
    hint = """an object, such as '{"ticket": 42}'"""
    try:
        details = json.loads(given or "{}")
    except ValueError as fault:
        raise BadValue(f"--details is not JSON: {fault}", hint=hint) from fault
    if not isinstance(details, dict):
        raise BadValue("--details must be a JSON object", hint=hint)
    return details
