"""Where `kb_add_source` may read: an agent chooses the path, so whoever started the server draws the line.

The folder in which the server was started is allowed to its own organisation, because that is where its
client works. What `mcp.roots` lists besides is allowed to everybody or, as `ORG=PATH`, to one organisation.
The root of the file system never is by default: several desktop clients start their servers there. A server
that others reach over the network has `mcp.roots` alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from concord.core.errors import BadValue, NotFound
from concord.core.values import without_org
from concord.index.sources import absolute_path

HINT = "set mcp.roots (KB_MCP_ROOTS) to the folders that may be indexed, or let a person add it with kb"


class Root(NamedTuple):
    """A folder that may be indexed, without links, and for which organisation."""

    path: Path
    org: str | None = None  # None means all


def allowed_roots(configured: str, started_in: Path | None, org: str) -> tuple[Root, ...]:
    """Return the folders that may be indexed, the configured ones first; `org` is the server's own.

    Raises:
        NotFound: a configured one does not exist.
    """
    given = [_configured(part) for part in configured.split(os.pathsep) if part.strip()]
    return (*given, *(Root(folder, org) for folder in _working_folder(started_in)))


def roots_of(org: str, roots: Sequence[Root]) -> tuple[Path, ...]:
    """Return the folders that an organisation may index."""
    return tuple(dict.fromkeys(root.path for root in roots if root.org in (None, org)))


def permitted(path: str, roots: Sequence[Path]) -> Path:
    """Return a path that may be indexed, without links; a relative one is looked for under each root in turn.

    Raises:
        BadValue: it lies outside.
        NotFound: there is nothing there.
    """
    if "\0" in path:
        raise BadValue("a path cannot hold a null character", hint="give the path of a folder or file")
    given = Path(os.path.expanduser(path))  # unlike Path's own, it leaves an unknown ~name as it is
    for found in _existing(root / given for root in roots):
        if any(found.is_relative_to(root) for root in roots):
            return found
    raise _refusal(path, given, roots)


def _configured(entry: str) -> Root:
    org, path = without_org(entry)
    return Root(absolute_path(path), org)


def _existing(candidates: Iterable[Path]) -> Iterator[Path]:
    for candidate in candidates:
        try:
            yield absolute_path(candidate)
        except NotFound:
            continue


def _refusal(path: str, given: Path, roots: Sequence[Path]) -> BadValue | NotFound:
    """Say that it is not there, or outside; nobody learns whether something outside is there."""
    allowed = ", ".join(map(str, roots)) or "none"
    if any(Path(os.path.normpath(root / given)).is_relative_to(root) for root in roots):
        return NotFound(
            f"there is no {path!r} in the folders that may be indexed", hint=f"they are: {allowed}"
        )
    return BadValue(f"{path!r} is outside the folders that may be indexed ({allowed})", hint=HINT)


def _working_folder(started_in: Path | None) -> Iterator[Path]:
    if started_in is not None and (folder := started_in.resolve()) != Path(folder.anchor):
        yield folder
