"""What a document says of itself, what is embedded of it, and which other document has replaced it.

Front matter, in YAML or TOML, that does not parse is content, never an error. It is made fit for JSON, and
what grows out of proportion (a YAML alias bomb) is not read at all.

It may say what has replaced a document (`superseded_by: 0007-queues.md`, `supersedes: [3]`), and so may the
status of a decision record (`Superseded by [ADR-7](0007-queues.md)`, `Accepted, supersedes ADR-3`). Others
are named by path, link, title, or the name or number of a file. A name that fits no document, or several,
counts for nothing: a document is hidden from searches only where it is clear which one holds instead.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from itertools import accumulate
from typing import Any, NamedTuple

from concord.text.tokens import pattern
from concord.types import Document, Json

MAX_CHARACTERS = 16_384  # of front matter: what is longer is a document that begins with a rule
_MAX_WEIGHT = 4 * MAX_CHARACTERS  # values and their characters, once every alias is written out
_MAX_DEPTH = 50
_DEEP_LIST = pattern(r"(?:[-?][ \t]+){50}")
_BRACKET = pattern(r"[\[\]{}]")
_YAML = pattern(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_TOML = pattern(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$\n?", re.DOTALL | re.MULTILINE)

# Bytes, because the tokens of a byte-level model are bounded by them: room for a title and a few headings.
# Of 7,153 texts with headers (Kubernetes' documentation, the standard library, Chinese paragraphs), in chunks
# of at most 448 tokens, the longest had 481 tokens; the model's window holds 510.
MAX_HEADER_BYTES = 280
_MAX_TITLE_BYTES = 200
_MAX_LABEL_BYTES = 80
_SEPARATOR = " > "

_BY = frozenset({"superseded_by", "replaced_by"})
_OF = frozenset({"supersedes", "replaces"})
# What a status says, alone or after something else: Accepted, supersedes ADR-3 · Deprecated. Replaced by …
_SAID = r"(?:^|[.,;:(–—-])\W{{0,9}}{}\b[*_]{{0,2}}:?[*_\s]{{0,9}}(\S.{{0,300}})"
_REPLACED = pattern(_SAID.format(r"(?:super[sc]eded|replaced)\s+by"), re.IGNORECASE)
_REPLACES = pattern(_SAID.format(r"(?:super[sc]edes|replaces)"), re.IGNORECASE)
# What a record says that holds not yet, or never will: it has replaced nothing.
_PENDING = pattern(
    r"\W{0,9}(?:draft|proposed|proposal|pending|rejected|declined|withdrawn|rfc|wip|tbd|not\s|to\s+be\s|on\s+hold"
    r"|deferred|postponed|abandoned|(?:in|under)\s+(?:review|discussion|progress|consideration|development))\b",
    re.IGNORECASE,
)
_PARTLY = pattern(r"\b(?:partly|partially|in\s+part|teilweise|zum\s+teil)\b", re.IGNORECASE)
_LINK = pattern(r"\[[^\]\n]{0,200}\]\(\s*<?([^)>\s]{1,300})|\[\[([^\]|#\n]{1,200})")
_WHOLE_LINK = pattern(r"\[[^\]\n]{0,200}\]\([^()\n]{1,300}\)|\[\[[^\]\n]{1,300}\]\]")
_LISTED = pattern(r"\s*[,;&]\s*|\s+(?:and|und)\s+", re.IGNORECASE)
_SEVERAL = pattern(r"\s(?:and|or|und|oder)\s|&", re.IGNORECASE)
_QUOTES = " \"'`<>*_"
_AROUND = _QUOTES + ".,;:"
_ASIDE = pattern(r"[,;(]|\.\s|\s[–—-]\s")  # after which a status says something else
# 0007-queues, adr-7; neither a day (2024-01-05-standup) nor a number within a word (utf8, v2)
_NUMBERED = pattern(r"(?!(?:19|20)\d\d-\d\d)(?:([a-z]{2,12})[_-])?(\d{1,6})(?=[_. -]|$)", re.IGNORECASE)
# 7, ADR-0007, 7. Queues
_NUMBER = pattern(r"(?:([a-z]{2,12})[ _-]?)?(\d{1,6})(?:[.:)]\s.*)?", re.IGNORECASE)
# What may stand before a number that the name of a file has alone.
_RECORDS = frozenset({"adr", "decision", "kep", "no", "pep", "record", "rfc"})
_HEADING = pattern(r"#{1,6}\s+(.*)")
_LABEL = pattern(r"[*+-]?\s*[*_]{0,2}status\b[*_:\s]{1,9}", re.IGNORECASE)
# **Supersedes:** ADR-3, beside the status
_OWN_LABEL = pattern(
    r"[*+-]?\s*[*_]{0,2}(?:(?:super[sc]eded|replaced)\s+by|super[sc]edes|replaces)[*_]{0,2}:", re.IGNORECASE
)
_SEARCHED_LINES = 100  # a status stands near the top
_SEARCHED_WIDTH = 500


class FrontMatter(NamedTuple):
    """What the head of a file says of it, and the file without that head."""

    text: str  # as many lines as before: those of the front matter are empty now
    block: str = ""  # the lines that are empty now
    title: str | None = None
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = {}


def split_front_matter(text: str) -> FrontMatter:
    """Take the front matter, if there is any, from a text whose lines end in a plain newline."""
    block = (_YAML.match(text, 0, MAX_CHARACTERS) or _TOML.match(text, 0, MAX_CHARACTERS)) if text else None
    values = _read(block) if block else None
    if block is None or values is None:
        return FrontMatter(text)
    rest = "\n" * block[0].count("\n") + text[block.end() :]
    title = values.pop("title", None)
    tags = [tag for key in ("tags", "tag", "keywords") for tag in _tags(values.pop(key, None))]
    return FrontMatter(rest, block[0], _line(title) or None, tuple(dict.fromkeys(tags)), values)


def _read(block: re.Match[str]) -> dict[str, Json] | None:
    """Return what a block says, or None when it says nothing that can be understood."""
    import tomllib  # late: few files have front matter

    try:
        plain = _Plain().value(tomllib.loads(block[1]) if block[0][0] == "+" else _load_yaml(block[1]))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None  # all that PyYAML's constructors are known to raise on values that only look like theirs
    return plain if isinstance(plain, dict) else None


def _load_yaml(text: str) -> Any:
    import yaml  # 15 ms, and many trees have no front matter

    # libyaml recurses in C, where too deep is a crash, and its time grows with the square.
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(text))
    if max(depths, default=0) > _MAX_DEPTH or _DEEP_LIST.search(text):
        raise ValueError("nested more deeply than front matter is")
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as fault:
        raise ValueError from fault


class _Plain:
    """Turns parsed values into what JSON can say, and stops when there are too many of them."""

    def __init__(self) -> None:
        self.weight = 0

    def value(self, value: Any, depth: int = 0) -> Json:
        self.weight += 1 + (len(value) if isinstance(value, str) else 0)
        if self.weight > _MAX_WEIGHT or depth > _MAX_DEPTH:
            raise ValueError("more values than front matter has")
        if isinstance(value, Mapping):
            return {str(key): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth + 1) for item in value]
        if isinstance(value, date | time):  # a datetime is a date
            return value.isoformat()
        if value is None or isinstance(value, bool | int | str | float):
            return str(value) if isinstance(value, float) and not math.isfinite(value) else value
        raise ValueError(f"{type(value).__name__} has no place in front matter")


def _line(value: Json) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _tags(value: Json) -> list[str]:
    """Return tags given as a list or as one line: commas part them, else spaces."""
    if isinstance(value, str):
        value = value.split("," if "," in value else None)
    items = value if isinstance(value, list) else [value]
    return [tag for item in items if (tag := _line(item).lstrip("#"))]


def embeddable_text(title: str, heading: Sequence[str], text: str, tags: Sequence[str] = ()) -> str:
    """Return what is embedded for a chunk: a short header that says where it stands, then its text.

    Tags are those of a note, and come last.
    """
    labels = _cut(" ".join(f"#{tag}" for tag in tags), _MAX_LABEL_BYTES)
    return "\n\n".join(part for part in (header(title, heading, text), text, labels) if part)


def header(title: str, heading: Sequence[str], text: str) -> str:
    """Return the title and the headings that a chunk stands under.

    The last heading is left out where the text begins with it: said twice, the name of a section or a
    function hides what it is about.
    """
    first_line = text.lstrip().partition("\n")[0].casefold()
    unsaid = heading[:-1] if heading and heading[-1].casefold() in first_line else heading
    path: list[str] = []
    for part in filter(None, (" ".join(part.split()) for part in (title, *unsaid))):
        if not path or part.casefold() != path[-1].casefold():
            path.append(part)
    return _header(path)


def embedded_tags(document: Document) -> tuple[str, ...]:
    """Return the tags that are embedded with each text of a document: a note's own, and none of a file's."""
    return document.tags if document.type == "note" else ()


def _header(path: list[str]) -> str:
    """Join a path within the limit: the title says what it is about and the last headings what in it."""
    if not path:
        return ""
    title = _cut(path[0], _MAX_TITLE_BYTES)
    room = MAX_HEADER_BYTES - _bytes(title)
    inner: list[str] = []
    for part in reversed(path[1:]):
        room -= len(_SEPARATOR)
        part = part if inner else _cut(part, room)
        room -= _bytes(part)
        if room < 0:
            break
        inner.append(part)
    return _SEPARATOR.join((title, *reversed(inner)))


def _cut(text: str, limit: int) -> str:
    """Shorten to a number of bytes, at a space where there is one in the second half."""
    if _bytes(text) <= limit:
        return text
    short = text.encode(errors="surrogatepass")[: limit - len("…".encode())].decode(errors="ignore")
    head = short.rpartition(" ")[0]
    return (head if 2 * len(head) >= len(short) else short).rstrip() + "…"


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


class NoteText(NamedTuple):
    """All that is said in a note, in the order in which it is read and embedded."""

    content: str
    summary: str = ""
    context: str = ""
    highlights: Sequence[str] = ()
    aliases: Sequence[str] = ()
    details: Mapping[str, Json] = {}


def note_text(note: NoteText) -> str:
    """Return the one text of a note, which is cut, searched by words and embedded; empty if it says nothing.

    Title and tags are not in it: both indexes know them for every chunk.
    """
    parts = [
        note.summary,
        note.content,
        note.context,
        "\n".join(f"- {highlight.strip()}" for highlight in note.highlights if highlight.strip()),
        ", ".join(alias.strip() for alias in note.aliases if alias.strip()),
        "\n".join(detail_lines(note.details)),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def detail_lines(value: Json, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every value inside nested details on a line of its own, after the names that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from detail_lines(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from detail_lines(inner, path)
    elif value is not None and str(value).strip():
        shown = str(value).lower() if isinstance(value, bool) else str(value).strip()
        yield f"{' '.join(path)}: {shown}" if path else shown


def declares(details: Mapping[str, Json]) -> bool:
    """Whether a document says that another has replaced it, or that it has replaced another."""
    return any(_named(details, _BY)) or any(_named(details, _OF))


def status_of(text: str) -> str | None:
    """Return what the status of a decision record says of others, a line each, if anything.

    A text with several statuses is a list of records, not a record, and one without says of things what
    replaces which (`Replaces: Redis`); a status in a listing is an example.
    """
    lines: list[str] = []
    statuses, headings, is_status = 0, 0, False  # whether the section is one
    for line in _prose(text):
        if heading := _HEADING.match(line):
            headings, is_status = headings + 1, heading[1].strip("# ").casefold() == "status"
            statuses += is_status
        elif label := _LABEL.match(line):
            statuses += 1
            lines += [line[label.end() :]] if headings <= 1 else []
        elif is_status or headings <= 1 and _OWN_LABEL.match(line):
            lines.append(line)
    naming = [line for line in lines if _REPLACED.search(line) or _REPLACES.search(line)]
    if not naming or statuses != 1:
        return None
    return "\n".join(line for line in lines if line in naming or _PENDING.match(line))


def _prose(text: str) -> Iterator[str]:
    """Yield the first lines that are in no listing."""
    is_listing = False
    for line in text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]:
        line = line[:_SEARCHED_WIDTH].strip()
        if line.startswith(("```", "~~~")):
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
        if new := names.meant(_named(document.details, _BY), document):
            said[document.id] |= new
        for old in names.meant(_named(document.details, _OF), document):
            claimed[old].add(document.id)
    named = {**claimed, **said}.items()
    replaced = {old: new for old, (new, *others) in named if new != old and not others}
    circular = _circular(replaced)
    return {old: new for old, new in replaced.items() if old not in circular}


def _named(details: Mapping[str, Json], keys: frozenset[str]) -> Iterator[str]:
    """Yield the names that details have under such keys, and those that the status has.

    What is only proposed, or was rejected, has replaced nothing, and what is replaced in part still holds.
    """
    values = {key.casefold().replace("-", "_").replace(" ", "_"): value for key, value in details.items()}
    status = str(values.get("status", "")).split("\n")
    if keys is _OF and any(map(_PENDING.match, status)):
        return
    for key in values.keys() & keys:
        yield from _texts(values[key])
    replacing = _REPLACED if keys is _BY else _REPLACES
    whole = (line for line in status if not _PARTLY.search(line))
    for match in filter(None, map(replacing.search, whole)):
        name = match[1] if match[1].count(")") <= match[1].count("(") else match[1].rpartition(")")[0]
        parts = _LISTED.split(name.strip(_AROUND))
        is_list = all(_WHOLE_LINK.fullmatch(part) or _NUMBER.fullmatch(part) for part in parts)
        yield from parts if is_list and keys is _OF else [name]  # only links or numbers are a list


def _texts(value: Json) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str | int) and not isinstance(item, bool) and str(item).strip():
            yield str(item).strip()


def _circular(replaced: Mapping[str, str]) -> set[str]:
    """Return the documents that lead into a circle."""
    ends: dict[str, bool] = {}  # whether a way from here comes to an end
    for start in replaced:
        way: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in ends and at not in way:
            way[at] = None
            at = replaced.get(at)
        ends |= dict.fromkeys(way, at is None or ends.get(at, False))
    return {document for document, does_end in ends.items() if not does_end}


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

    def meant(self, names: Iterable[str], document: Document) -> set[str]:
        """Return the documents that another names so."""
        return {known for name in names if (known := self._meant(name, posixpath.dirname(document.path)))}

    def _meant(self, text: str, folder: str) -> str | None:
        links = [(link[1] or link[2]).replace("%20", " ").strip() for link in _LINK.finditer(text)]
        if len(links) > 1:
            return None
        name = links[0].partition("#")[0] if links else text.lstrip(_QUOTES).rstrip(_AROUND)
        return self._at(name, folder) or self._called(name, folder)

    def _at(self, path: str, folder: str) -> str | None:
        """Return the document at a path, relative to the folder of the naming document or of the source."""
        for start in (folder, self._root):
            place = posixpath.normpath(f"{start}/{path}")
            if known := self._by_path.get(place) or self._by_path.get(f"{place}.md"):
                return known
        return None

    def _called(self, name: str, folder: str) -> str | None:
        if documents := self._by_name.get(name.casefold()):
            return next(iter(documents)) if len(documents) == 1 else None
        if _SEVERAL.search(name):
            return None
        short = _ASIDE.split(name, 1)[0].strip(_AROUND)
        number = _NUMBER.fullmatch(name) or _NUMBER.fullmatch(short)
        return self._numbered(number, folder) if number else None

    def _numbered(self, number: re.Match[str], folder: str) -> str | None:
        """Return the only file of a folder with that number, and with the word before it, if there is one."""
        before = (number[1] or "").casefold()
        documents = [
            document
            for prefix, document in self._by_number.get((folder, int(number[2])), ())
            if not before or prefix == before or not prefix and before in _RECORDS
        ]
        return documents[0] if len(documents) == 1 else None
