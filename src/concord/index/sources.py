"""What is a source called, and which source does a name or a path mean?

A name is unique, for people; a prefix is unique, at the head of citations.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from msgspec.structs import replace

from concord.core.arguments import MAX_ABOUT
from concord.core.batches import batched
from concord.core.errors import Action, BadValue, Hint, NotFound
from concord.core.places import placed
from concord.files.walk import count_unlike, walk
from concord.index.documents import UPDATED_AT_ONCE
from concord.store.contract import Catalog, Select
from concord.text.clean import encodable
from concord.types import Source, Trust

NOTES_NAME = "notes"
UNREAD = -1  # a modification time that no file has: the next sync reads the file, whatever its own says
EVERY_FILE = ("**",)  # given as patterns, it removes the earlier ones
TRIES = 3  # attempts to store a source while others store theirs


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """Return an existing path, absolute and without links."""
    if not os.fspath(path):  # which Path takes for the working folder; probably a variable was not set
        raise NotFound("an empty path leads nowhere", hint="the folder you are in is `.`")
    try:
        return Path(placed(Path(path).expanduser())).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as fault:  # also a loop of links, nobody's home, a NUL
        raise NotFound(
            f"{os.fspath(path)} does not exist",
            hint="check the spelling; paths are relative to where you are",
        ) from fault


def register(
    path: Path,
    catalog: Catalog,
    *,
    name: str | None = None,
    patterns: Sequence[str] = (),
    tags: Sequence[str] = (),
    trust: Trust = "trusted",
    about: str | None = None,
) -> Source:
    """Store and return the source of a folder or file; options given here replace those of a known source.

    Trust is only ever taken away: adding an untrusted folder again does not make it trusted.
    """
    walk(path, patterns, max_bytes=0)  # refuses now what every later sync would have to refuse
    unlike = count_unlike(path, patterns, max_bytes=sys.maxsize) if patterns and path.is_dir() else 0
    if unlike:  # a typo would empty the source
        raise BadValue(
            f"no file in {path} is like {', '.join(patterns)}, and {unlike:,} are there",
            hint="check the pattern: *.md, docs/ or src/**/*.py; '**' takes every file",
        )

    def wanted(known: Sequence[Source]) -> Source:
        same = next((source for source in known if source.path == str(path)), None)
        source = same or _new_source(path, name, known)
        labels = tuple(dict.fromkeys(tags)) or source.tags
        _take_back(set(source.tags) - set(labels), source, catalog)
        kept = () if tuple(patterns) == EVERY_FILE else tuple(patterns)
        return replace(
            source,
            name=name or source.name,
            patterns=kept if patterns else source.patterns,
            tags=labels,
            trust="untrusted" if trust == "untrusted" else source.trust,
            about=source.about if about is None else _in_a_line(about),
        )

    return _stored(catalog, wanted)


def notes_source(catalog: Catalog) -> Source:
    """Return the source that notes are kept in, stored when there is none."""

    def wanted(known: Sequence[Source]) -> Source:
        return next((source for source in known if source.kind == "notes"), None) or _new_notes(known)

    return _stored(catalog, wanted)


def glob_under(source: Source, path: Path) -> str | None:
    """Return the path filter for a file or folder inside a source; None for all of it."""
    if source.path is None or source.kind == "file" or str(path) == source.path:
        return None
    inside = source.path_of(path.relative_to(source.path).as_posix())
    glob = inside.replace("*", "?")  # globs have no escapes: a star in a name may be any one character
    return glob + "/**" if path.is_dir() else glob


def _stored(catalog: Catalog, wanted: Callable[[Sequence[Source]], Source]) -> Source:
    """Store the source that `wanted` makes of those there are; if another process is first, try again."""
    for left in reversed(range(TRIES)):
        known = catalog.snapshot().sources
        source = wanted(known)
        try:
            if source not in known:
                catalog.put_source(source)
        except BadValue:
            if not left or known == catalog.snapshot().sources:
                raise
        else:
            break
    return source


def _take_back(labels: set[str], source: Source, catalog: Catalog) -> None:
    """Remove tags that a source no longer has from its documents, and have the next sync read those again.

    A file may give itself the same tag, which only reading it shows.
    """
    changed = (
        replace(
            document,
            tags=tuple(tag for tag in document.tags if tag not in labels),
            mtime_ns=UNREAD,
            file_hash="",
        )
        for document in (catalog.documents(Select(source_id=source.id)) if labels else ())
        if labels.intersection(document.tags)
    )
    for group in batched(changed, UPDATED_AT_ONCE):
        catalog.update_documents(group)


def _new_source(path: Path, name: str | None, existing: Sequence[Source]) -> Source:
    """Return a new source for a folder or file."""
    names = {source.name for source in existing}
    if name in names:
        raise BadValue(
            f"a source called {name!r} exists already",
            hint=Hint(Action.NAME, "give {name}, or {sync} that one"),
        )
    if name == NOTES_NAME and path.name != NOTES_NAME:
        raise BadValue(f"{name!r} is what your notes are called", hint=Hint(Action.NAME, "give {name}"))
    is_apart = _apart_from(existing)
    return Source(
        id=secrets.token_hex(6),
        name=name or next(tail for tail in _tails(path) if tail not in names),
        path=str(path),
        kind="directory" if path.is_dir() else "file",
        prefix=next(filter(is_apart, _tails(path))),
        created_at=time.time(),
    )


def _new_notes(existing: Sequence[Source]) -> Source:
    names = {source.name for source in existing}
    is_apart = _apart_from(existing)
    name = next(tried for tried in _numbered(NOTES_NAME) if tried not in names and is_apart(tried))
    return Source(secrets.token_hex(6), name, None, "notes", name, created_at=time.time())


def _in_a_line(text: str) -> str:
    """Return what is said of a source, as it is kept; it is sent with every list of sources."""
    line = encodable(" ".join(text.split()))
    if len(line) > MAX_ABOUT:
        raise BadValue(f"what is said of a source has {len(line):,} characters", hint=f"at most {MAX_ABOUT}")
    return line


def _apart_from(existing: Sequence[Source]) -> Callable[[str], bool]:
    """Return a test whether no other source has, or may get, a document below a prefix."""
    taken = [source.prefix + "/" for source in existing]

    def is_apart(tried: str) -> bool:
        mine = tried + "/"
        return not any(other.startswith(mine) or mine.startswith(other) for other in taken)

    return is_apart


def _tails(path: Path) -> Iterator[str]:
    """Yield docs, project/docs, home/project/docs … : ever longer ends of a path, then docs-2, docs-3 …"""
    parts = path.parts[1:] or ("root",)
    ends = ("/".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
    return chain(ends, _numbered(parts[-1]))


def _numbered(name: str) -> Iterator[str]:
    return chain([name], (f"{name}-{n}" for n in count(2)))
