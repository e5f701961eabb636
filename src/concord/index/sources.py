"""What is a source called, and which source does a name or a path mean?

A name is unique, for people; a prefix is unique, at the head of citations.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.core.arguments import MAX_ABOUT
from concord.core.errors import Action, BackendDown, BadValue, Hint, NotFound, UsageError
from concord.core.reports import Removal
from concord.core.working_folder import placed
from concord.text.clean import encodable
from concord.types import Source, Trust, silent

if TYPE_CHECKING:
    from pathlib import Path

    from concord.core.protocols import Progress
    from concord.store.contract import Catalog, Store


NOTES_NAME = "notes"
UNREAD = -1  # a modification time that no file has: the next sync reads the file, whatever its own says
EVERY_FILE = ("**",)  # given as patterns, it removes the earlier ones
TRIES = 3  # attempts to store a source while others store theirs


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """Return an existing path, absolute and without links."""
    from pathlib import Path  # late: a search of one source loads this module, too, and names no path

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
    from concord.files.walk import walk  # late: a search of one source walks nowhere

    walk(path, patterns, max_bytes=0)  # refuses now what every later sync would have to refuse
    _check_likeness(path, patterns)

    def wanted(known: Sequence[Source]) -> Source:
        same = next((source for source in known if source.path == str(path)), None)
        if same is None:
            return new_source(path, known, name=name, patterns=patterns, tags=tags, trust=trust, about=about)
        labels = tuple(dict.fromkeys(tags)) or same.tags
        _take_back(set(same.tags) - set(labels), same, catalog)
        return replace(
            same,
            name=name or same.name,
            patterns=kept_patterns(patterns) if patterns else same.patterns,
            tags=labels,
            trust="untrusted" if trust == "untrusted" else same.trust,
            about=same.about if about is None else in_a_line(about),
        )

    return _stored(catalog, wanted)


def kept_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns to remember: none if those given let every file through."""
    return () if tuple(patterns) == EVERY_FILE else tuple(patterns)


def _check_likeness(path: Path, patterns: Sequence[str]) -> None:
    """Refuse patterns that match no file although there are files: a typo would empty the source."""
    from concord.files.walk import count_unlike

    unlike = count_unlike(path, patterns, max_bytes=sys.maxsize) if patterns and path.is_dir() else 0
    if unlike:
        raise BadValue(
            f"no file in {path} is like {', '.join(patterns)}, and {unlike:,} are there",
            hint="check the pattern: *.md, docs/ or src/**/*.py; '**' takes every file",
        )


def _take_back(labels: set[str], source: Source, catalog: Catalog) -> None:
    """Remove tags that a source no longer has from its documents, and have the next sync read those again.

    A file may give itself the same tag, which only reading it shows.
    """
    from concord.core.batches import batched  # late: only a change of tags needs them
    from concord.index.batch import UPDATED_AT_ONCE
    from concord.store.contract import Select

    def kept(tags: Sequence[str]) -> tuple[str, ...]:
        return tuple(tag for tag in tags if tag not in labels)

    if not labels:
        return
    changed = (
        replace(document, tags=kept(document.tags), mtime_ns=UNREAD, file_hash="")
        for document in catalog.documents(Select(source_id=source.id))
        if labels.intersection(document.tags)
    )
    for group in batched(changed, UPDATED_AT_ONCE):
        catalog.update_documents(group)


def notes_source(catalog: Catalog) -> Source:
    """Return the source that notes are kept in, stored when there is none."""

    def wanted(known: Sequence[Source]) -> Source:
        return next((source for source in known if source.kind == "notes"), None) or _new_notes(known)

    return _stored(catalog, wanted)


def new_source(
    path: Path,
    existing: Sequence[Source],
    *,
    name: str | None = None,
    patterns: Sequence[str] = (),
    tags: Sequence[str] = (),
    trust: Trust = "trusted",
    about: str | None = None,
) -> Source:
    """Return a new source for a folder or file."""
    names = {source.name for source in existing}
    if name in names:
        raise BadValue(
            f"a source called {name!r} exists already",
            hint=Hint(Action.NAME, "give {name}, or {sync} that one"),
        )
    if name == NOTES_NAME and path.name != NOTES_NAME:
        raise BadValue(f"{name!r} is what your notes are called", hint=Hint(Action.NAME, "give {name}"))
    return Source(
        id=_new_id(),
        name=name or _first_free(_tails(path), lambda tried: tried not in names),
        path=str(path),
        kind="directory" if path.is_dir() else "file",
        prefix=_first_free(_tails(path), _apart_from(existing)),
        patterns=kept_patterns(patterns),
        tags=tuple(dict.fromkeys(tags)),
        trust=trust,
        created_at=time.time(),
        about=in_a_line(about or ""),
    )


def in_a_line(text: str) -> str:
    """Return what is said of a source, as it is kept.

    Raises:
        BadValue: it is too long to be sent with every list of sources.
    """
    line = encodable(" ".join(text.split()))
    if len(line) > MAX_ABOUT:
        raise BadValue(f"what is said of a source has {len(line):,} characters", hint=f"at most {MAX_ABOUT}")
    return line


def glob_under(source: Source, path: Path) -> str | None:
    """Return the path filter for a file or folder inside a source; None for all of it."""
    if source.path is None or source.kind == "file" or str(path) == source.path:
        return None
    inside = source.path_of(path.relative_to(source.path).as_posix())
    return path_filter(inside, is_folder=path.is_dir())


def path_filter(path: str, *, is_folder: bool) -> str:
    """Return the glob that lets one document through, or all that lie below a folder."""
    glob = path.replace("*", "?")  # globs have no escapes: a star in a name may be any one character
    return glob + "/**" if is_folder else glob


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


def _new_notes(existing: Sequence[Source]) -> Source:
    names = {source.name for source in existing}
    is_apart = _apart_from(existing)
    name = _first_free(_numbered(NOTES_NAME), lambda tried: tried not in names and is_apart(tried))
    return Source(_new_id(), name, None, "notes", name, created_at=time.time())


def _apart_from(existing: Sequence[Source]) -> Callable[[str], bool]:
    """Return a test whether no other source has, or may get, a document below a prefix."""
    taken = [source.prefix + "/" for source in existing]

    def is_apart(tried: str) -> bool:
        mine = tried + "/"
        return not any(other.startswith(mine) or mine.startswith(other) for other in taken)

    return is_apart


def _first_free(candidates: Iterator[str], is_free: Callable[[str], bool]) -> str:
    return next(filter(is_free, candidates))


def _tails(path: Path) -> Iterator[str]:
    """Yield docs, project/docs, home/project/docs … : ever longer ends of a path, then docs-2, docs-3 …"""
    parts = path.parts[1:] or ("root",)
    ends = ("/".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
    return chain(ends, _numbered(parts[-1]))


def _numbered(name: str) -> Iterator[str]:
    return chain([name], (f"{name}-{n}" for n in count(2)))


def _new_id() -> str:
    import secrets  # late: only a new source needs it

    return secrets.token_hex(6)


_TRY_AGAIN = "nothing was removed: see that it runs and that vectors.url is right, then try again"


def remove(
    store: Store, source: Source, wait_s: float, *, force: bool = False, progress: Progress = silent
) -> Removal:
    """Delete a source with all that came from it, vectors first: these may be kept on another server."""
    if source.kind == "notes" and not force:
        _refuse_to_lose(source, store.catalog.count(source.id).documents)
    from concord.index.lock import removal_lock  # late: a search of one source takes no lock

    # A sync under way would store what it still holds after everything else has been deleted.
    with removal_lock(source.id, store, wait_s):
        progress("remove", 0, None)  # whoever does not want it any more after waiting can still say so
        vectors = _delete_vectors(store, source.id)
        documents = store.catalog.remove_source(source.id)
    store.maintain(silent)
    return Removal(source, documents, vectors)


def _delete_vectors(store: Store, source_id: str) -> int:
    """Delete the vectors of a source, of every model; return how many there were."""
    try:
        indexes = [store.models.index(model.identity) for model in store.catalog.snapshot().models]
        return sum(index.delete_source(source_id) for index in indexes)
    except BackendDown as fault:
        if not store.outbox.home().url:  # the store's own fault, and its own advice
            raise
        # What a vector store advises is for those who search.
        raise BackendDown(fault.message, hint=_TRY_AGAIN) from fault


def _counted(notes: int) -> str:
    return "1 note" if notes == 1 else f"{notes:,} notes"


def _refuse_to_lose(source: Source, notes: int) -> None:
    if notes:
        raise UsageError(
            f"what {source.name!r} holds is in no file: {_counted(notes)} would be gone for good",
            hint=Hint(
                Action.NOTE_REMOVE,
                "{note_remove} removes one; {note_export} saves them all, then {remove_with_notes}",
                source=source.name,
            ),
        )
