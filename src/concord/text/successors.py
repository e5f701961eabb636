"""Which document has replaced which, according to what they say of themselves?

Front matter says it (`superseded_by: 0007-queues.md`, `supersedes: [3]`), and so does the status of a
decision record (`Superseded by [ADR-7](0007-queues.md)`, `Accepted, supersedes ADR-3`). Another document is
named by its path, by a link, by the name or the number of its file, or by its title. A name that fits no
document, or several, counts for nothing: a document is hidden from searches only where it is clear which one
holds instead.
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
# What a status says, alone or after something else: Accepted, supersedes ADR-3 · Deprecated. Replaced by …
_SAID = r"(?:^|[.,;:(–—-])\W{{0,9}}{}\b[*_]{{0,2}}:?[*_\s]{{0,9}}(\S.{{0,300}})"
_REPLACED = re.compile(_SAID.format(r"(?:super[sc]eded|replaced)\s+by"), re.IGNORECASE)
_REPLACES = re.compile(_SAID.format(r"(?:super[sc]edes|replaces)"), re.IGNORECASE)
# What a record says that holds not yet, or never will: it has replaced nothing.
_PENDING = re.compile(
    r"\W{0,9}(?:draft|proposed|proposal|pending|rejected|declined|withdrawn|rfc|wip|tbd|not\s|to\s+be\s|on\s+hold"
    r"|deferred|postponed|abandoned|(?:in|under)\s+(?:review|discussion|progress|consideration|development))\b",
    re.IGNORECASE,
)
_PARTLY = re.compile(r"\b(?:partly|partially|in\s+part|teilweise|zum\s+teil)\b", re.IGNORECASE)
_LINK = re.compile(r"\[[^\]\n]{0,200}\]\(\s*<?([^)>\s]{1,300})|\[\[([^\]|#\n]{1,200})")
_WHOLE_LINK = re.compile(r"\[[^\]\n]{0,200}\]\([^()\n]{1,300}\)|\[\[[^\]\n]{1,300}\]\]")
_LISTED = re.compile(r"\s*[,;&]\s*|\s+(?:and|und)\s+", re.IGNORECASE)
_SEVERAL = re.compile(r"\s(?:and|or|und|oder)\s|&", re.IGNORECASE)
_QUOTES = " \"'`<>*_"
_AROUND = _QUOTES + ".,;:"
_ASIDE = re.compile(r"[,;(]|\.\s|\s[–—-]\s")  # after which a status says something else
# 0007-queues, adr-7; neither a day (2024-01-05-standup) nor a number within a word (utf8, v2)
_NUMBERED = re.compile(r"(?!(?:19|20)\d\d-\d\d)(?:([a-z]{2,12})[_-])?(\d{1,6})(?=[_. -]|$)", re.IGNORECASE)
# 7, ADR-0007, 7. Queues
_NUMBER = re.compile(r"(?:([a-z]{2,12})[ _-]?)?(\d{1,6})(?:[.:)]\s.*)?", re.IGNORECASE)
# What may stand before a number that the name of a file has alone.
_RECORDS = frozenset({"adr", "decision", "kep", "no", "pep", "record", "rfc"})
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_LABEL = re.compile(r"[*+-]?\s*[*_]{0,2}status\b[*_:\s]{1,9}", re.IGNORECASE)
# **Supersedes:** ADR-3, beside the status
_OWN_LABEL = re.compile(
    r"[*+-]?\s*[*_]{0,2}(?:(?:super[sc]eded|replaced)\s+by|super[sc]edes|replaces)[*_]{0,2}:", re.IGNORECASE
)
_FENCES = ("```", "~~~")
_SEARCHED_LINES = 100  # a status stands near the top
_SEARCHED_WIDTH = 500


def declares(details: Mapping[str, Json]) -> bool:
    """Whether a document says that another has replaced it, or that it has replaced another."""
    return any(_named(details, _BY)) or any(_named(details, _OF))


def status_of(text: str) -> str | None:
    """Return what the status of a decision record in Markdown says of others, a line each, if anything.

    A text with several statuses is a list of records, not a record, and one without says of things what
    replaces which (`Replaces: Redis`); a status in a listing is an example.
    """
    said: list[str] = []
    statuses, headings, is_status = 0, 0, False  # whether the section is one
    for line in _prose(text):
        if heading := _HEADING.match(line):
            headings, is_status = headings + 1, heading[1].strip("# ").casefold() == _STATUS
            statuses += is_status
        elif label := _LABEL.match(line):
            statuses += 1
            said += [line[label.end() :]] if headings <= 1 else []
        elif is_status or headings <= 1 and _OWN_LABEL.match(line):
            said.append(line)
    told = [line for line in said if _REPLACED.search(line) or _REPLACES.search(line)]
    if not told or statuses != 1:
        return None
    return "\n".join(line for line in said if line in told or _PENDING.match(line))


def _prose(text: str) -> Iterator[str]:
    """Yield the first lines that are in no listing."""
    is_listing = False
    for line in text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]:
        line = line[:_SEARCHED_WIDTH].strip()
        if line.startswith(_FENCES):
            is_listing = not is_listing
        elif not is_listing:
            yield line


def successors(documents: Sequence[Document], root: str) -> dict[str, str]:
    """Return for documents of a source, by id, which one has replaced each; `root` is the source's prefix.

    In a circle of documents that replace each other none is replaced: none would be left.
    """
    names = _Names(documents, root)
    said: defaultdict[str, set[str]] = defaultdict(set)  # by documents of themselves
    claimed: defaultdict[str, set[str]] = defaultdict(set)  # by those that replace them
    for document in documents:
        for name in _named(document.details, _BY):
            if new := names.meant(name, document):
                said[document.id].add(new)
        for name in _named(document.details, _OF):
            if old := names.meant(name, document):
                claimed[old].add(document.id)
    named = {**claimed, **said}.items()
    found = {old: new for old, (new, *others) in named if new != old and not others}
    circular = _circular(found)
    return {old: new for old, new in found.items() if old not in circular}


def _named(details: Mapping[str, Json], keys: frozenset[str]) -> Iterator[str]:
    """Yield the names that details have under such keys, and those that the status has.

    What is only proposed, or was rejected, has replaced nothing, and what is replaced in part still holds.
    """
    told = {key.casefold().replace("-", "_").replace(" ", "_"): value for key, value in details.items()}
    status = str(told.get(_STATUS, "")).split("\n")
    if keys is _OF and any(map(_PENDING.match, status)):
        return
    for key in told.keys() & keys:
        yield from _texts(told[key])
    saying = _REPLACED if keys is _BY else _REPLACES
    whole = (line for line in status if not _PARTLY.search(line))
    for said in filter(None, map(saying.search, whole)):
        name = said[1] if said[1].count(")") <= said[1].count("(") else said[1].rpartition(")")[0]
        yield from _each(name) if keys is _OF else [name]


def _each(names: str) -> list[str]:
    """Return the names in a list of links or numbers; anything else is one name."""
    parts = _LISTED.split(names.strip(_AROUND))
    is_list = all(_WHOLE_LINK.fullmatch(part) or _NUMBER.fullmatch(part) for part in parts)
    return parts if is_list else [names]


def _texts(value: Json) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str | int) and not isinstance(one, bool) and str(one).strip():
            yield str(one).strip()


def _circular(found: Mapping[str, str]) -> set[str]:
    """Return the documents that lead into a circle."""
    ends: dict[str, bool] = {}  # whether a way from here comes to an end
    for start in found:
        way: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in ends and at not in way:
            way[at] = None
            at = found.get(at)
        ends |= dict.fromkeys(way, at is None or ends.get(at, False))
    return {one for one, does_end in ends.items() if not does_end}


class _Names:
    """By what a document can be named."""

    def __init__(self, documents: Iterable[Document], root: str) -> None:
        self._root = root
        self._by_path: dict[str, str] = {}
        self._by_name: defaultdict[str, set[str]] = defaultdict(set)
        self._by_number: defaultdict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
        for document in documents:
            folder, name = posixpath.split(document.path)
            stem = posixpath.splitext(name)[0]
            self._by_path[document.path] = document.id
            for known in {name.casefold(), stem.casefold(), document.title.casefold()}:
                self._by_name[known].add(document.id)
            if number := _NUMBERED.match(stem):
                self._by_number[folder, int(number[2])].add(((number[1] or "").casefold(), document.id))

    def meant(self, text: str, document: Document) -> str | None:
        """Return the one document that another names so."""
        links = [(link[1] or link[2]).replace("%20", " ").strip() for link in _LINK.finditer(text)]
        if len(links) > 1:
            return None
        name = links[0].partition("#")[0] if links else text.lstrip(_QUOTES).rstrip(_AROUND)
        return self._at(name, document.path) or self._called(name, document.path)

    def _at(self, path: str, base: str) -> str | None:
        """Return the document at a path, relative to the folder of the naming document or of the source."""
        for start in (posixpath.dirname(base), self._root):
            place = posixpath.normpath(f"{start}/{path}")
            if known := self._by_path.get(place) or self._by_path.get(f"{place}.md"):
                return known
        return None

    def _called(self, name: str, base: str) -> str | None:
        if found := self._by_name.get(name.casefold()):
            return next(iter(found)) if len(found) == 1 else None
        if _SEVERAL.search(name):
            return None
        short = _ASIDE.split(name, 1)[0].strip(_AROUND)
        number = _NUMBER.fullmatch(name) or _NUMBER.fullmatch(short)
        return self._numbered(number, posixpath.dirname(base)) if number else None

    def _numbered(self, number: re.Match[str], folder: str) -> str | None:
        """Return the only file of a folder with that number, and with the word before it, if there is one."""
        before = (number[1] or "").casefold()
        found = [
            one
            for prefix, one in self._by_number.get((folder, int(number[2])), ())
            if not before or prefix == before or not prefix and before in _RECORDS
        ]
        return found[0] if len(found) == 1 else None
