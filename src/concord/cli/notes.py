"""`kb note`: what somebody types or pipes in becomes a document without a file; many come and go as files."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, run, run_with, settings_of, tags_option
from concord.core.arguments import EditNote, Note, NoteFields, RemoveNote
from concord.core.errors import BadValue
from concord.operations import JsonObject
from concord.text.visible import one_line

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase

_FIELDS = ("title", "tags", "details", *NoteFields.__struct_fields__)


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
def note(flags: Flags, text: tuple[str, ...], as_json: bool, no_embed: bool, **given: Any) -> None:
    """Keep a note, change or delete one; import or export many.

    Without TEXT, or with -, the text is read from stdin. Prints the note's id, which `kb get`, --edit,
    --remove and --supersedes take. Exporting notes and importing them again loses nothing.
    """
    source, target, gone = given.pop("source"), given.pop("target"), given.pop("remove")
    if sum(value is not None for value in (source, target, gone, given["edit"], given["supersedes"])) > 1:
        refuse("--import, --export, --remove, --edit and --supersedes exclude each other")
    if (source or target or gone) and (text or _given()):
        refuse("--import, --export and --remove take no text and no fields")
    if source is not None or target is not None:
        with opened(flags, must_exist=source is None) as knowledge:
            if source is not None:
                _import(knowledge, source, embed=not no_embed, as_json=as_json)
            elif target is not None:
                _export(knowledge, target, as_json=as_json)
    elif gone is not None:
        _show_removed(run(flags, "remove_note", RemoveNote(gone)), as_json=as_json)
    else:
        _show(_kept(flags, text, given, embed=not no_embed), as_json=as_json)


def _kept(flags: Flags, text: tuple[str, ...], given: dict[str, Any], *, embed: bool) -> JsonObject:
    """Keep a note, or change the one that is named."""
    fields = _fields(given)
    if given["edit"] is not None:
        changes = {**fields, "content": _content(text)} if text else fields
        return run(flags, "edit_note", EditNote(given["edit"], embed=embed, **changes))
    more = NoteFields(**{name: fields.pop(name) for name in NoteFields.__struct_fields__ if name in fields})
    asked = Note(_content(text), **fields, fields=more, supersedes=given["supersedes"], embed=embed)
    kept: JsonObject = run_with(settings_of(flags), "note", asked, must_exist=False)
    return kept


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was said of a note beside its content."""
    fields = {name: given[name] for name in _given()}
    return {**fields, "details": _details(fields["details"])} if "details" in fields else fields


def _given() -> list[str]:
    """Return the fields that were on the command line: one that is given as nothing is emptied."""
    context = click.get_current_context()
    return [name for name in _FIELDS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def _show(kept: JsonObject, *, as_json: bool) -> None:
    remark, _ = kept.pop("remark", None), kept.pop("generation")
    if as_json:
        output.emit_json(kept)
        return
    output.emit(kept["document_id"])
    output.talk(f"kept as {kept['path']}")
    if remark:
        output.talk(remark)


def _import(knowledge: KnowledgeBase, source: str, *, embed: bool, as_json: bool) -> None:
    done = knowledge.import_notes(source, embed=embed)
    if as_json:
        output.emit_json({**done._asdict(), "generation": knowledge.generation})
    else:
        output.emit(f"{done.added:,} notes added, {done.changed:,} changed, {done.unchanged:,} unchanged")


def _export(knowledge: KnowledgeBase, target: str, *, as_json: bool) -> None:
    if target == "-":
        from concord.index.note_files import note_to_json

        for kept in knowledge.notes():
            output.emit(json.dumps(note_to_json(kept)))
        return
    count = knowledge.export_notes(target)
    if as_json:
        output.emit_json({"exported": count, "path": target})
    else:
        output.talk(f"{count:,} notes written to {target}")


def _show_removed(gone: JsonObject, *, as_json: bool) -> None:
    if as_json:
        output.emit_json(gone)
        return
    output.emit(f"✓ Removed note: {one_line(gone['title'])} ({gone['path']})")
    for path in gone["brought_back"]:
        output.talk(f"{one_line(path)} is found again: the note superseded it")


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
