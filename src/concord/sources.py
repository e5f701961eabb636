"""What becomes a source, and under which name: unique for people, unique at the head of citations."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from concord.errors import BadValue, NotFound
from concord.types import Source, Trust

NOTES_NAME = "notes"


def absolute_path(path: str | os.PathLike[str]) -> Path:
    """Return an existing path, absolute and without links.

    Raises:
        NotFound: there is nothing there.
    """
    given = Path(path).expanduser()
    try:
        return given.resolve(strict=True)
    except (OSError, RuntimeError) as fault:  # RuntimeError: a loop of links, before Python 3.13
        raise NotFound(
            f"{given} does not exist", hint="check the spelling; paths are relative to where you are"
        ) from fault


def new_source(
    path: Path,
    existing: Sequence[Source],
    *,
    name: str | None = None,
    patterns: Sequence[str] = (),
    tags: Sequence[str] = (),
    trust: Trust = "trusted",
) -> Source:
    """Return a new source for a folder or file.

    Raises:
        BadValue: the name is taken, or the path is neither a folder nor a file.
    """
    if not (path.is_dir() or path.is_file()):
        raise BadValue(
            f"{path} is neither a folder nor a file", hint="only folders and regular files can be indexed"
        )
    if name is not None and name in {source.name for source in existing}:
        raise BadValue(
            f"a source called {name!r} exists already", hint="give another --name, or `kb sync` that one"
        )
    prefix = _first_free(_tails(path), {source.prefix for source in existing})
    return Source(
        id=secrets.token_hex(6),
        name=name or _first_free(_tails(path), {source.name for source in existing}),
        path=str(path),
        kind="directory" if path.is_dir() else "file",
        prefix=prefix,
        patterns=tuple(patterns),
        tags=tuple(dict.fromkeys(tags)),
        trust=trust,
        created_at=time.time(),
    )


def notes_source(existing: Sequence[Source]) -> Source:
    """Return a new source to keep notes in."""
    taken = {source.prefix for source in existing} | {source.name for source in existing}
    name = _first_free(iter([NOTES_NAME]), taken)
    return Source(secrets.token_hex(6), name, None, "notes", name, created_at=time.time())


def holder(path: Path, sources: Sequence[Source]) -> Source | None:
    """Return the source that has this path for its root, else the innermost one that contains it."""
    holding = [source for source in sources if source.path and path.is_relative_to(source.path)]
    return max(holding, key=lambda source: len(source.path or ""), default=None)


def file_of(source: Source, document_path: str) -> Path | None:
    """Return where a document's file is; None for notes."""
    if source.path is None:
        return None
    if source.kind == "file":
        return Path(source.path)
    return Path(source.path, document_path.removeprefix(source.prefix + "/"))


def _tails(path: Path) -> Iterator[str]:
    """Yield docs, project/docs, home/project/docs … : ever longer ends of a path, then numbered ones."""
    parts = path.parts[1:] or ("root",)
    for start in range(len(parts) - 1, -1, -1):
        yield str(PurePosixPath(*parts[start:]))


def _first_free(candidates: Iterator[str], taken: Collection[str]) -> str:
    last = ""
    for last in candidates:
        if last not in taken:
            return last
    return next(name for n in range(2, len(taken) + 3) if (name := f"{last}-{n}") not in taken)
