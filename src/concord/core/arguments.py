"""What operations take: fields that are documented and limited for those who send JSON.

An interface may offer fewer of them, and has its own words for the actions that a text names, as in a hint.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from concord.types import DocumentType, Group, Json, Level, Mode, Opinion, Trust

MAX_TEXT = 10_000  # characters of a query or a name: whoever sends more has pasted a document
MAX_NOTE = 1_000_000
MAX_ABOUT = 300  # characters of what is said of a source: it goes along with every list and answer
MIN_TOKENS = 500  # one result with its citation, in the frame that every answer has
MAX_TOKENS = 25_000  # where clients cut what a tool says
OWN_PAIRS = 300  # questions asked of one's own documents: enough for a difference of .05 to be seen
MOST_READ = 50  # documents in one call
DEFAULT_TOKENS = 2_400  # an answer that nobody asked to be longer stays under 2,500


def doc(text: str) -> Meta:
    """Return the documentation of a field."""
    return Meta(description=text)


Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Filled = Annotated[str, Meta(min_length=1)]
FilledText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
NoteText = Annotated[str, Meta(min_length=1, max_length=MAX_NOTE)]
Title = Annotated[str, Meta(max_length=500)]
Few = Annotated[int, Meta(ge=1, le=50)]
Tokens = Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKENS)]
Cursor = Annotated[Text | None, doc("next_cursor of the last page, to read on.")]
Named = Annotated[FilledText, doc("A document_id, a path or a citation.")]
NoteNamed = Annotated[FilledText, doc("The note's document_id.")]
Details = Annotated[
    dict[str, Json],
    Meta(description="Further facts, as deep as needed.", extra_json_schema={"additionalProperties": True}),
]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What an operation takes; a name that it does not know is a mistake of the caller."""


class Search(Arguments, frozen=True):
    """What to search for, and where."""

    query: Annotated[
        FilledText, doc('A question, keywords or a "quoted phrase". AND, OR, NOT, -word and prefix* work.')
    ]
    mode: Annotated[
        Mode | None,
        doc("auto weighs words and meaning by the query; fts5 is words only, semantic meaning only."),
    ] = None
    limit: Annotated[Few | None, doc("At most so many results.")] = None
    tags: Annotated[tuple[Filled, ...], doc("Only documents that have all of these tags.")] = ()
    type: Annotated[DocumentType | None, doc("Only documents of this type.")] = None
    source: Annotated[Text | None, doc("Only this source (see {list}).")] = None
    path: Annotated[
        Text | None, doc("Only this file, folder or glob: docs/auth.md, docs/ or docs/**/*.md.")
    ] = None
    since: Annotated[
        Text | None,
        doc(
            "Only files changed since then: 2026-01-31, or 7d for the last week (h, d, w, y). "
            "A date mentioned in a text belongs in the query."
        ),
    ] = None
    until: Annotated[Text | None, doc("Only files not changed after that, as since.")] = None
    deadline_ms: Annotated[
        Annotated[float, Meta(gt=0, le=10_000)] | None,
        doc("Answer within this time with what has been found."),
    ] = None
    max_tokens: Annotated[
        Tokens | None, doc(f"The answer is never longer than this; default {DEFAULT_TOKENS}.")
    ] = None
    include_superseded: Annotated[bool, doc("Also search documents that a newer one supersedes.")] = False
    min_generation: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc("Wait until the index has this generation (of {sync}, {note}); 'note' says if not."),
    ] = None
    within: str | None = None  # a path that is indexed first, if it is new or changed; only it is searched
    threshold: float | None = None
    min_score: float | None = None
    fusion: str | None = None
    ef_search: int | None = None
    explain: bool = False
    rerank: bool = False
    reader: bool = True
    group: Group | None = None


class Explain(Search, frozen=True, kw_only=True):
    """What to explain the place of, in the answer to which search."""

    reference: str


class Get(Arguments, frozen=True):
    """What to read, and how much of it."""

    citation: Annotated[
        Text | None,
        doc("A citation from {search} (docs/auth.md:12-31, report.pdf:p3), a path for all of it, or a glob."),
    ] = None
    citations: Annotated[
        Annotated[tuple[FilledText, ...], Meta(max_length=MOST_READ)], doc("Several of these, read at once.")
    ] = ()
    document_id: Annotated[Text | None, doc("Instead: a document_id.")] = None
    level: Annotated[
        Level | None,
        doc(
            "How much of it: the passage, its section, the whole document, or the document's outline "
            "(headings with lines and tokens, to choose what to read)."
        ),
    ] = None
    context: Annotated[int, Meta(ge=0, le=50), doc("So many neighbouring passages either side.")] = 0
    max_tokens: Annotated[
        Tokens | None, doc(f"The page is never longer than this; default {DEFAULT_TOKENS}.")
    ] = None
    cursor: Cursor = None
    whole: bool = False


class Outline(Arguments, frozen=True):
    """Which document's headings to list."""

    document_id: Named


class Links(Arguments, frozen=True):
    """Which document's links to list; of none, all that are broken."""

    document_id: Annotated[FilledText | None, doc("A document_id, a path or a citation.")] = None


class Related(Arguments, frozen=True):
    """Which document's neighbours to list."""

    document_id: Named
    limit: Annotated[Few, doc("At most so many.")] = 10


class PageImage(Arguments, frozen=True):
    """Which page of a PDF to draw."""

    document_id: Named
    page: Annotated[int, Meta(ge=1, le=100_000), doc("The number of the page, from 1.")]
    width: Annotated[int, Meta(ge=200, le=2_000), doc("How wide the image is, in pixels.")] = 900
    mark: Annotated[Text | None, doc("A citation: the passage is marked where it is found.")] = None


class Rendered(Arguments, frozen=True):
    """Which part of a document to render."""

    citation: Annotated[FilledText, doc("A citation, a path or a document_id.")]
    start: Annotated[
        Annotated[int, Meta(ge=1)] | None, doc("The line to begin at; default: around the passage.")
    ] = None
    raw: Annotated[bool, doc("Its text as it is, in lines.")] = False


class Add(Arguments, frozen=True):
    """What to index, and how."""

    path: Annotated[FilledText, doc("A folder or file on the server's disk.")]
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        doc("What to call it; default: its folder's name."),
    ] = None
    patterns: Annotated[tuple[Filled, ...], doc("Only files that match one of these globs: **/*.md.")] = ()
    tags: Annotated[tuple[Filled, ...], doc("Tags for all of its documents.")] = ()
    about: Annotated[
        Annotated[str, Meta(max_length=MAX_ABOUT)] | None,
        doc("One line on what is in it, shown where sources are listed; default: as it was."),
    ] = None
    trust: Trust = "trusted"
    embed: bool = True


class List(Arguments, frozen=True):
    """What to list."""

    source: Annotated[Text | None, doc("List this source's documents instead of the sources.")] = None
    cursor: Cursor = None
    orphans: Annotated[bool, doc("List the documents that no other links to.")] = False


class Sync(Arguments, frozen=True):
    """What to bring up to date."""

    source: Annotated[Text | None, doc("Only this one; default: all.")] = None
    sources: tuple[str, ...] = ()
    embed: bool = True


class Remove(Arguments, frozen=True):
    """What to remove from the index."""

    source: Annotated[FilledText, doc("The source's name (see {list}).")]
    force: bool = False


class NoteFields(Arguments, frozen=True):
    """What may be said about a note beside its content; all of it is searchable."""

    summary: Text | None = None
    context: Text | None = None
    highlights: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class Note(Arguments, frozen=True):
    """What to remember."""

    content: Annotated[NoteText, doc("What to remember; Markdown is fine.")]
    title: Annotated[Title | None, doc("Default: its first words.")] = None
    tags: Annotated[tuple[str, ...], doc("Tags to find it by.")] = ()
    details: Details = {}
    fields: Annotated[NoteFields | None, doc("Summary, context, highlights and aliases.")] = None
    supersedes: Annotated[
        Text | None, doc("The note or document that this replaces: a citation, a path or a document_id.")
    ] = None
    embed: bool = True


class EditNote(Arguments, frozen=True):
    """What to change of a note; what is null stays."""

    document_id: NoteNamed
    content: NoteText | None = None
    title: Title | None = None
    tags: tuple[str, ...] | None = None
    details: Details | None = None
    summary: Text | None = None
    context: Text | None = None
    highlights: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    embed: bool = True


class RemoveNote(Arguments, frozen=True):
    """Which note to delete for good."""

    document_id: NoteNamed


class Nothing(Arguments, frozen=True):
    """Nothing is to be said."""


class Feedback(Arguments, frozen=True):
    """Which result was good or bad, and for what query."""

    reference: str
    opinion: Opinion
    query: str = ""


class Judged(Arguments, frozen=True):
    """Which judged collection to ask, and how much of it."""

    folder: str | None = None
    unanswerable: tuple[str, ...] = ()
    split: str | None = None
    limit: int | None = None


class Evaluate(Judged, frozen=True):
    """What to evaluate search on; without a folder or file, on one's own documents."""

    source: str | None = None
    n: int = OWN_PAIRS
    save: str | None = None


class Calibrate(Judged, frozen=True):
    """What to fit confidence to; without a folder, to feedback alone."""

    near_misses: tuple[str, ...] = ()


class Doctor(Arguments, frozen=True):
    """Whether to repair what is found."""

    fix: bool = False


class Backup(Arguments, frozen=True):
    """Where to copy everything to."""

    path: str


class Migrate(Arguments, frozen=True):
    """Which store to copy everything to; None moves the vectors to where the settings say."""

    to: str | None = None
    org: str | None = None
