"""Which document has replaced which, to go by what they say of themselves?

Front matter says it (`superseded_by: 0007-queues.md`, `supersedes: [3]`), and so does the status of a
decision record (`Superseded by [ADR-7](0007-queues.md)`). Another document is named by its path, by a link,
by the name or the number of its file, or by its title. Who names nobody that is there, or more than one, has
said nothing: a document is hidden from searches only where it is clear which one holds instead.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from concord.types import Document, Json

_BY = frozenset({"superseded_by", "replaced_by"})
_OF = frozenset({"supersedes", "replaces"})
_STATUS = "status"
_REPLACED = re.compile(r"\W{0,9}(?:super[sc]eded|replaced)\s+by\b:?\s*(\S.{0,300})", re.IGNORECASE)
_LINK = re.compile(r"\[[^\]\n]{0,200}\]\(\s*<?([^)>\s]{1,300})|\[\[([^\]|#\n]{1,200})")
_NUMBERED = re.compile(r"(?:[a-z]{1,12}[_-]?)?(\d{1,9})(?!\d)", re.IGNORECASE)  # 0007-queues, adr-7
# ADR-0007, 7. Queues; not the year of a day
_NUMBER = re.compile(r"(?:[a-z]{1,12}[\s_-]?)?#?(\d{1,9})(?:$|[.:)]?\s)", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_LABEL = re.compile(r"[*+-]?\s*[*_]{0,2}status\b[*_:\s]{1,9}", re.IGNORECASE)
_SEARCHED_LINES = 100  # a status stands near the top
_SEARCHED_WIDTH = 500


def declares(details: Mapping[str, Json]) -> bool:
    """Whether a document says that another has replaced it, or that it has replaced another."""
    return any(_named(details, _BY)) or any(_named(details, _OF))


def status_of(text: str) -> str | None:
    """Return the status of a decision record in Markdown, where that says by what it was replaced."""
    is_status = False  # whether the section is
    for line in text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]:
        line = line[:_SEARCHED_WIDTH].strip()
        if heading := _HEADING.match(line):
            is_status = heading[1].strip("# ").casefold() == _STATUS
        label = _LABEL.match(line)
        if (is_status or label) and (said := _REPLACED.match(line[label.end() if label else 0 :])):
            return said[0]
    return None


def successors(documents: Sequence[Document], root: str) -> dict[str, str]:
    """Return by document id which document has replaced it, among those of a source; `root` is its prefix."""
    names, found = _Names(documents, root), dict[str, str]()
    for document in documents:
        for name in _named(document.details, _OF):
            if (old := names.meant(name, document)) and old != document.id:
                found[old] = document.id
        for name in _named(document.details, _BY):
            if (new := names.meant(name, document)) and new != document.id:
                found[document.id] = new
    return {old: new for old, new in found.items() if not _leads_back(old, found)}


def _named(details: Mapping[str, Json], keys: frozenset[str]) -> Iterator[str]:
    """Yield what details name under such keys, and if it is about who came after, in the status."""
    for key, value in details.items():
        wanted = key.casefold().replace("-", "_").replace(" ", "_")
        if wanted in keys:
            yield from _texts(value)
        elif wanted == _STATUS and keys is _BY and (said := _REPLACED.match(str(value))):
            yield said[1]


def _texts(value: Json) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str | int) and not isinstance(one, bool) and str(one).strip():
            yield str(one).strip()


def _leads_back(start: str, found: Mapping[str, str]) -> bool:
    """Whether documents replace each other in a circle: then none of them would be left."""
    at, passed = found.get(start), {start}
    while at is not None and at not in passed:
        passed.add(at)
        at = found.get(at)
    return at is not None


class _Names:
    """By what a document can be named."""

    def __init__(self, documents: Iterable[Document], root: str) -> None:
        self._root = root
        self._by_path: dict[str, str] = {}
        self._by_name: defaultdict[str, set[str]] = defaultdict(set)
        self._by_number: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for document in documents:
            folder, name = posixpath.split(document.path)
            stem = posixpath.splitext(name)[0]
            self._by_path[document.path] = document.id
            for known in {name.casefold(), stem.casefold(), document.title.casefold()}:
                self._by_name[known].add(document.id)
            if number := _NUMBERED.match(stem):
                self._by_number[folder, int(number[1])].add(document.id)

    def meant(self, text: str, document: Document) -> str | None:
        """Return the one document that another names so."""
        link = _LINK.search(text)
        name = (link[1] or link[2]).replace("%20", " ").strip() if link else text.strip("\"'`<> ")
        return self._at(name.partition("#")[0], document.path) or self._called(name, document.path)

    def _at(self, path: str, base: str) -> str | None:
        """Return what stands at a path: one from the folder of the document, or from that of the source."""
        for start in (posixpath.dirname(base), self._root):
            place = posixpath.normpath(f"{start}/{path}")
            if known := self._by_path.get(place) or self._by_path.get(f"{place}.md"):
                return known
        return None

    def _called(self, name: str, base: str) -> str | None:
        found = self._by_name.get(name.casefold()) or set()
        if not found and (number := _NUMBER.match(name)):
            found = self._by_number.get((posixpath.dirname(base), int(number[1]))) or set()
        return next(iter(found)) if len(found) == 1 else None
