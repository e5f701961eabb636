"""`kb note`: what somebody types or pipes in becomes a document without a file; many come and go as files."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from concord.cli import output
from concord.cli.command import Flags, command, opened, refuse, run_with, settings_of, tags_option
from concord.core.arguments import Note, NoteFields, RemoveNote
from concord.core.errors import BadValue
from concord.operations import OPERATIONS
from concord.text.visible import one_line
from concord.types import silent

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase
    from concord.types import Document

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
    if (source, target, gone, given["edit"], given["supersedes"]) == (None,) * 5:
        _keep(flags, text, _fields(given), embed=not no_embed, as_json=as_json)
        return
    is_new = source is not None or given["supersedes"] is not None
    with opened(flags, must_exist=not is_new) as knowledge:
        if source is not None:
            _import(knowledge, source, embed=not no_embed, as_json=as_json)
        elif target is not None:
            _export(knowledge, target, as_json=as_json)
        elif gone is not None:
            _remove(knowledge, gone, as_json=as_json)
        else:
            old = knowledge.document_named(given["supersedes"]) if given["supersedes"] is not None else None
            kept = _kept(knowledge, text, given, old, embed=not no_embed)
            _show(kept, as_json=as_json)
            _tell_what_is_newer(knowledge, kept, old)


def _keep(flags: Flags, text: tuple[str, ...], fields: dict[str, Any], *, embed: bool, as_json: bool) -> None:
    """Keep a note that has nothing to do with those that there are."""
    more = NoteFields(**{name: fields.pop(name) for name in NoteFields.__struct_fields__ if name in fields})
    asked = Note(_content(text), **fields, fields=more, embed=embed)
    kept = run_with(settings_of(flags), "note", asked, must_exist=False)
    del kept["generation"]
    if as_json:
        output.emit_json(kept)
        return
    output.emit(kept["document_id"])
    output.talk(f"kept as {kept['path']}")


def _kept(
    knowledge: KnowledgeBase,
    text: tuple[str, ...],
    given: dict[str, Any],
    old: Document | None,
    *,
    embed: bool,
) -> Document:
    from concord.index.notes import Note as NoteText

    fields = _fields(given)
    if given["edit"] is None:
        supersedes = old.id if old else None
        return knowledge.note(NoteText(_content(text), **fields), supersedes=supersedes, embed=embed)
    changes = {**fields, "content": _content(text)} if text else fields
    if not changes:
        refuse("there is nothing to change: give a text or a field")
    return knowledge.edit_note(given["edit"], embed=embed, **changes)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was said of a note beside its content."""
    fields = {name: given[name] for name in _given()}
    return {**fields, "details": _details(fields["details"])} if "details" in fields else fields


def _given() -> list[str]:
    """Return the fields that were on the command line: one that is given as nothing is emptied."""
    context = click.get_current_context()
    return [name for name in _FIELDS if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def _show(document: Document, *, as_json: bool) -> None:
    if as_json:
        from concord.wire import document_to_json

        output.emit_json(document_to_json(document))
        return
    output.emit(document.id)
    output.talk(f"kept as {document.path}")


def _tell_what_is_newer(knowledge: KnowledgeBase, kept: Document, old: Document | None) -> None:
    from concord.index.notes import superseded_instead

    if old and (newer := superseded_instead(old, knowledge.history(kept.id))):
        told = f"{old.path} ({old.id}) was superseded already"
        output.talk(f"{told}: this supersedes {newer.path} ({newer.id})")


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


def _remove(knowledge: KnowledgeBase, reference: str, *, as_json: bool) -> None:
    gone = OPERATIONS["remove_note"].run(knowledge, RemoveNote(reference), silent)
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
