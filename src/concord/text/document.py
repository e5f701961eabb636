"""What a document says of itself, what is embedded of it, and which other document has replaced it.

Front matter, in YAML or TOML, that does not parse is content, never an error. It is made fit for JSON, and
what grows out of proportion (a YAML alias bomb) is not read at all.

It may say what has replaced a document (`superseded_by: 0007-queues.md`, `supersedes: [3]`), and so may the
status of a decision record (`Superseded by ADR 7`). Others are named by path, link, title, or the name or
number of a file. A name that fits no document, or several, counts for nothing: a document is hidden from
searches only where it is clear which one holds instead.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from itertools import accumulate, islice
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

_BY = ("superseded_by", "replaced_by")
_OF = ("supersedes", "replaces")
_LONGEST_CHAIN = 100  # of documents that replace one another; what goes on longer may as well be a circle
_LINK = pattern(r"\[[^\]\n]{0,200}\]\(\s*<?([^)>\s#]{1,300})[^)]*\)|\[\[([^\]|#\n]{1,200})[^\]\n]*\]\]")
_STATUS = pattern(r"\W{0,9}(?:status\W{1,9})?super[sc]eded by[*_:\s]{1,9}([^\n]{1,200})", re.IGNORECASE)
_NUMBERED = pattern(  # 0007-queues.md, and not 2024-01-05-standup.md
    r"(?!(?:19|20)\d\d-\d\d)(?:(?:adr|decision|rfc)[ _-]?)?0{0,9}(\d{1,6})(?=[_. -]|$)", re.IGNORECASE
)
_SEARCHED_LINES = 100  # a status stands near the top


class FrontMatter(NamedTuple):
    """What the head of a file says of it, and the file without that head."""

    text: str  # as many lines as before: those of the front matter are empty now
    block: str = ""
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
        values = tomllib.loads(block[1]) if block[0][0] == "+" else _load_yaml(block[1])
        plain = _plain(values, iter(range(_MAX_WEIGHT)))
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


def _plain(value: Any, weights: Iterator[int], depth: int = 0) -> Json:
    """Return a parsed value as JSON can say it; `weights` end when there are too many values."""
    size = 1 + (len(value) if isinstance(value, str) else 0)
    if depth > _MAX_DEPTH or len([*islice(weights, size)]) < size:
        raise ValueError("more values than front matter has")
    if isinstance(value, Mapping):
        return {str(key): _plain(item, weights, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, weights, depth + 1) for item in value]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if value is None or isinstance(value, bool | int | str | float):
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value
    raise ValueError(f"{type(value).__name__} has no place in front matter")


def _line(value: Json) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _tags(value: Json) -> list[str]:
    """Return tags given as a list or as one line: commas part them, else spaces."""
    items = value.split("," if "," in value else None) if isinstance(value, str) else _listed(value)
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
    if not path:
        return ""
    # Within the limit the title says what it is about and the last headings what in it.
    title, *inner = _cut(path[0], _MAX_TITLE_BYTES), *path[1:]
    while _bytes(joined := _SEPARATOR.join((title, *inner))) > MAX_HEADER_BYTES:
        room = MAX_HEADER_BYTES - _bytes(title) - len(_SEPARATOR)
        inner = inner[1:] or [_cut(inner[0], room)]
    return joined


def embedded_tags(document: Document) -> tuple[str, ...]:
    """Return the tags that are embedded with each text of a document: a note's own, and none of a file's."""
    return document.tags if document.type == "note" else ()


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
    """Return the line of a decision record that says what has replaced it: below its title, or as its status.

    Below other headings such a line is about something else: one record in a list of them, an example.
    """
    headings, is_status = 0, False
    for line in text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]:
        if line.startswith("#"):
            headings, is_status = headings + 1, line.strip("# ").casefold() == "status"
        elif (headings < 2 or is_status) and (found := _STATUS.match(line)):
            return found[0].strip()
    return None


def successors(documents: Sequence[Document], root: str) -> dict[str, str]:
    """Return for documents of a source, by id, which one has replaced each; `root` is the source's prefix.

    In a circle of documents that replace each other none is replaced: none would be left.
    """
    called: defaultdict[str, set[str]] = defaultdict(set)  # a name that several have is nobody's
    for document in documents:
        folder, file = posixpath.split(document.path)
        number = _NUMBERED.match(file)
        names = (file, posixpath.splitext(file)[0], document.title)
        places = (document.path, document.path.removesuffix(".md"))
        numbers = [f"{folder}//{int(number[1])}"] if number else []
        for name in (*map(str.casefold, names), *places, *numbers):
            called[name].add(document.id)

    def meant(document: Document, keys: Sequence[str]) -> Iterator[str]:
        folder = posixpath.dirname(document.path)
        for name in _named(document.details, keys):
            number = _NUMBERED.fullmatch(name)
            # A path is relative to the naming document, or to the source.
            forms = [posixpath.normpath(f"{start}/{name}") for start in (folder, root)]
            forms += [name.casefold(), f"{folder}//{int(number[1])}" if number else ""]
            known = next((called[form] for form in forms if form in called), ())
            yield from known if len(known) == 1 else ()

    said: defaultdict[str, set[str]] = defaultdict(set)  # by documents of themselves
    claimed: defaultdict[str, set[str]] = defaultdict(set)  # by those that replace them
    for document in documents:
        for new in meant(document, _BY):
            said[document.id].add(new)
        for old in meant(document, _OF):
            claimed[old].add(document.id)
    named = {**claimed, **said}.items()
    replaced = {old: new for old, (new, *others) in named if new != old and not others}
    return {old: new for old, new in replaced.items() if _ends(new, replaced)}


def _named(details: Mapping[str, Json], keys: Sequence[str]) -> Iterator[str]:
    """Yield the names that details have under such keys; of a link, what it points to."""
    values = {key.casefold().replace("-", "_").replace(" ", "_"): value for key, value in details.items()}
    status = _STATUS.match(str(values.get("status", ""))) if keys is _BY else None
    for value in [*(value for key in keys for value in _listed(values.get(key))), status and status[1]]:
        if isinstance(value, str | int) and value is not True:
            name, links = str(value).strip(" \"'`<>*").rstrip("*_.,;: "), _LINK.findall(str(value))
            name = "".join(links[0]).replace("%20", " ").strip() if len(links) == 1 else name
            yield from [name] * bool(name)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _ends(document: str | None, replaced: Mapping[str, str]) -> bool:
    """Whether the documents that replace each other from here on come to an end."""
    for _ in range(_LONGEST_CHAIN):
        document = replaced.get(document or "")
        if document is None:
            return True
    return False
