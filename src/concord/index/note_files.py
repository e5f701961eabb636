"""Notes as files: JSON, JSON lines, and Markdown with front matter. What is written is read back the same.

.json    one note, or a list of notes
.jsonl   a note on each line
.md      one note: its content, under front matter that holds the rest
folder   any of these, at any depth

Files of other programs are taken too: `name` is a title, `text` is content, and keys that mean nothing to us
become details. Written front matter is YAML whose values are JSON, so that any program can read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from concord.core.errors import BadValue, NotFound
from concord.core.filesystem import replace_file
from concord.index.notes import KeptNote, Note, slug
from concord.text.document import split_front_matter
from concord.types import Json

ENDINGS = (".json", ".jsonl", ".md")
MAX_ID = 200  # characters
_SYNONYMS = {"text": "content", "name": "title", "alias": "aliases"}  # in files of other programs
_LISTS = {"tags", "highlights", "aliases"}
_HEAD = re.compile(r"---\n((?:[a-z_]+: .*\n)*)---\n")


class _About(Struct):
    """What a file says of a note beside what is in it."""

    id: str | int | None = None
    changed_at: str = ""
    superseded_by: str | None = None


_KEYS = {*Note.__struct_fields__, *_About.__struct_fields__}


def read_notes(place: str | os.PathLike[str]) -> list[KeptNote]:
    """Return the notes in a file, or in all files of a folder, by name."""
    path = Path(place)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file())
    elif path.is_file():
        files = [path]
    else:
        raise NotFound(f"{path} does not exist", hint="check the spelling")
    return [note for file in files for note in _read_file(file)]


def write_notes(notes: Iterable[KeptNote], place: str | os.PathLike[str]) -> int:
    """Write notes to a file by its ending, or as Markdown into a folder; return how many there were.

    A file is replaced whole or not at all.
    """
    path = Path(place)
    is_file = bool(path.suffix) and not path.is_dir()
    if is_file and path.suffix.lower() not in ENDINGS:
        raise BadValue(f"notes cannot be written as {path.suffix}", hint="use .jsonl, .json, .md or a folder")
    try:
        return _write_file(list(notes), path) if is_file else _write_folder(notes, path)
    except OSError as fault:
        raise BadValue(f"cannot write {path}: {fault.strerror}", hint="choose another place") from fault


def note_to_json(kept: KeptNote) -> dict[str, Json]:
    """Return a note with all of its keys."""
    changed_at = datetime.fromtimestamp(round(kept.changed_at * 1e6) / 1e6, UTC).isoformat()
    note: dict[str, Json] = to_builtins(kept.note)
    return {"id": kept.id, **note, "changed_at": changed_at, "superseded_by": kept.superseded_by}


def note_from_json(given: Any, where: str, now: float) -> KeptNote:
    """Return the note that an object describes; errors say `where` the object is from."""
    if not isinstance(given, dict):
        raise BadValue(f"{where} is not a note", hint="a note is a JSON object with a key content")
    named = {_SYNONYMS.get(key, key): value for key, value in given.items() if value is not None}
    fields = {key: named[key] for key in _KEYS.intersection(named)}
    fields |= {key: [fields[key]] for key in _LISTS.intersection(fields) if isinstance(fields[key], str)}
    try:
        note = convert({"content": "", **fields}, Note, strict=False)
        about = convert(fields, _About)
    except ValidationError as fault:
        raise BadValue(f"{where} is not a note: {fault}", hint="mend it, or leave it out") from fault
    unknown = {key: value for key, value in named.items() if key not in _KEYS}
    note = replace(note, title=note.title or None, details={**unknown, **note.details})
    note_id = "" if about.id is None else str(about.id)
    if len(note_id) > MAX_ID or not note_id.isprintable():
        raise BadValue(
            f"the id of {where} cannot be one", hint=f"a line of at most {MAX_ID} characters, or none"
        )
    if not note_id:  # the same note has the same id again, and is imported once
        said = json.dumps(note_to_json(KeptNote("", note, 0.0)), sort_keys=True, default=str)
        note_id = hashlib.sha256(said.encode()).hexdigest()[:16]
    changed_at = _moment(about.changed_at, where) if about.changed_at else now
    return KeptNote(note_id, note, changed_at, about.superseded_by)


def note_to_markdown(kept: KeptNote) -> str:
    """Return a note as Markdown: its content exactly, under a head of everything else that it has."""
    said = {name: value for name, value in note_to_json(kept).items() if value and name != "content"}
    head = "".join(f"{name}: {_json(value)}\n" for name, value in said.items())
    return f"---\n{head}---\n{kept.note.content}"


def note_from_markdown(text: str, where: str, now: float) -> KeptNote:
    """Return the note in a Markdown file; the first heading or words stand in for a missing title."""
    if own := _HEAD.match(text):
        with suppress(ValueError):  # then others wrote it
            pairs = (line.split(": ", 1) for line in own[1].split("\n")[:-1])
            head = {name: json.loads(value) for name, value in pairs}
            return note_from_json({**head, "content": text[own.end() :]}, where, now)
    foreign = split_front_matter(text.replace("\r\n", "\n"))
    said = {**foreign.details, "tags": list(foreign.tags)}
    content = foreign.text.strip("\n") + "\n" if foreign.text.strip("\n") else ""
    return note_from_json({"title": foreign.title or "", **said, "content": content}, where, now)


def _read_file(path: Path) -> Iterator[KeptNote]:
    try:
        text = path.read_bytes().decode("utf-8-sig", "surrogatepass")
        now = path.stat().st_mtime
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="it has to be a text file in UTF-8") from fault
    if path.suffix.lower() == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                where = f"line {number} of {path}"
                yield note_from_json(_loaded(line, where), where, now)
    elif path.suffix.lower() == ".json":
        given = _loaded(text, str(path))
        for number, note in enumerate(given if isinstance(given, list) else [given], 1):
            yield note_from_json(note, f"note {number} of {path}", now)
    else:
        yield note_from_markdown(text, str(path), now)


def _write_file(notes: list[KeptNote], path: Path) -> int:
    ending = path.suffix.lower()
    if ending == ".md" and len(notes) != 1:
        raise BadValue(
            f"one Markdown file cannot hold {len(notes)} notes", hint="export into a folder, or .jsonl"
        )
    if ending == ".md":
        text = note_to_markdown(notes[0])
    elif ending == ".json":
        text = json.dumps([note_to_json(kept) for kept in notes], ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(f"{_json(note_to_json(kept))}\n" for kept in notes)
    replace_file(path, _encoded(text))
    return len(notes)


def _write_folder(notes: Iterable[KeptNote], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for kept in notes:
        digest = hashlib.sha256(kept.id.encode("utf-8", "replace")).hexdigest()
        path = folder / f"{slug(kept.note.title or '')}-{digest[:12]}.md"
        replace_file(path, _encoded(note_to_markdown(kept)), wait=False)  # they may be thousands
        count += 1
    return count


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _loaded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise BadValue(f"{where} is not JSON: {fault}", hint="mend it, or leave it out") from fault


def _moment(value: Any, where: str) -> float:
    try:
        read = datetime.fromisoformat(str(value))
    except ValueError as fault:
        raise BadValue(f"changed_at of {where} is not a date", hint="such as 2026-11-16T00:05:00Z") from fault
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
