"""The table of operations: what a knowledge base can be asked to do, whoever asks.

An interface turns what it was given into an operation's arguments, runs it, and shows the JSON it returns.
Fields are documented and limited for those who send JSON; an interface may offer fewer of them, and has its
own words for the actions that a text names, as in a hint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from concord.core.errors import BadValue, UsageError
from concord.types import DocumentType, Json, Mode, Opinion, Trust

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.knowledge import KnowledgeBase
    from concord.types import Answer, Document, Request

JsonObject = dict[str, Any]

MAX_TEXT = 10_000  # characters of a query or a name: whoever sends more has pasted a document
MAX_NOTE = 1_000_000
MIN_TOKENS = 500  # one result with its citation, in the frame that every answer has
MAX_TOKENS = 25_000  # where clients cut what a tool says
DEFAULT_TOKENS = 2_400  # an answer that nobody asked to be longer stays under 2,500
MOST_LISTED = 200  # documents in one page of a list: more than ever fit


def doc(text: str) -> Meta:
    """Return the documentation of a field."""
    return Meta(description=text)


Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Filled = Annotated[str, Meta(min_length=1)]
FilledText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Tokens = Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKENS)]
Cursor = Annotated[Text | None, doc("next_cursor of the last page, to read on.")]


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
    limit: Annotated[Annotated[int, Meta(ge=1, le=50)] | None, doc("At most so many results.")] = None
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


class Explain(Search, frozen=True, kw_only=True):
    """What to explain the place of, in the answer to which search."""

    reference: str


class Get(Arguments, frozen=True):
    """What to read, and how much of it."""

    citation: Annotated[
        Text | None,
        doc("A citation from {search} (docs/auth.md:12-31, report.pdf:p3), or a path for all of it."),
    ] = None
    document_id: Annotated[Text | None, doc("Instead: a document_id.")] = None
    context: Annotated[int, Meta(ge=0, le=50), doc("So many neighbouring passages either side.")] = 0
    max_tokens: Annotated[
        Tokens | None, doc(f"The page is never longer than this; default {DEFAULT_TOKENS}.")
    ] = None
    cursor: Cursor = None
    whole: bool = False


class Add(Arguments, frozen=True):
    """What to index, and how."""

    path: Annotated[FilledText, doc("A folder or file on the server's disk.")]
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        doc("What to call it; default: its folder's name."),
    ] = None
    patterns: Annotated[tuple[Filled, ...], doc("Only files that match one of these globs: **/*.md.")] = ()
    tags: Annotated[tuple[Filled, ...], doc("Tags for all of its documents.")] = ()
    trust: Trust = "trusted"
    embed: bool = True


class List(Arguments, frozen=True):
    """What to list."""

    source: Annotated[Text | None, doc("List this source's documents instead of the sources.")] = None
    cursor: Cursor = None


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

    content: Annotated[
        str, Meta(min_length=1, max_length=MAX_NOTE), doc("What to remember; Markdown is fine.")
    ]
    title: Annotated[Annotated[str, Meta(max_length=500)] | None, doc("Default: its first words.")] = None
    tags: Annotated[tuple[str, ...], doc("Tags to find it by.")] = ()
    details: Annotated[
        dict[str, Json],
        Meta(
            description="Further facts, as deep as needed.", extra_json_schema={"additionalProperties": True}
        ),
    ] = {}
    fields: Annotated[NoteFields | None, doc("Summary, context, highlights and aliases.")] = None
    supersedes: Annotated[
        Text | None, doc("The note or document that this replaces: a citation, a path or a document_id.")
    ] = None
    embed: bool = True


class Nothing(Arguments, frozen=True):
    """Nothing is to be said."""


class Feedback(Arguments, frozen=True):
    """Which result was good or bad, and for what query."""

    reference: str
    opinion: Opinion
    query: str = ""


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
    vectors: str | None = None


class Operation(NamedTuple):
    """One row of the table."""

    name: str
    arguments: type[Arguments]
    run: Callable[[KnowledgeBase, Any, Progress], JsonObject]
    effect: Literal["read", "write", "destroy"]
    summary: str
    is_long: bool = False  # it may take minutes, and reports its progress


def request_of(args: Search, kb: KnowledgeBase, progress: Progress) -> Request:
    """Return the request of a search; a path to search within is brought up to date first.

    Raises:
        UsageError: the path is a part of a source, and another path was given besides.
    """
    from concord.types import Request

    source, path = args.source, args.path
    if args.within is not None:
        mode = args.mode or kb.settings["search.mode"]
        scope = kb.ensure(args.within, embed=mode != "fts5", progress=progress)
        if scope.path is not None and path is not None:
            raise UsageError("a path can be given besides only where all of a source is searched")
        source, path = scope.source, scope.path or path
    same = {name: getattr(args, name) for name in Request.__struct_fields__ if hasattr(args, name)}
    moments = {"since": _moment(args.since), "until": _moment(args.until, is_end=True)}
    return Request(
        **{**same, **moments, "text": args.query, "top": args.limit, "source": source, "path": path}
    )


def _moment(given: str | None, *, is_end: bool = False) -> float | None:
    if not given:
        return None
    from concord.text.moments import moment

    return moment(given, now=time.time(), is_end=is_end)


def answer(kb: KnowledgeBase, args: Search, progress: Progress, *, wait_for_model: bool = True) -> Answer:
    """Return the answer to a search, for those who show it in another form than JSON."""
    return kb.ask(request_of(args, kb, progress), wait_for_model=wait_for_model)


def _search(kb: KnowledgeBase, args: Search, progress: Progress) -> JsonObject:
    from concord.wire import answer_to_json

    return answer_to_json(answer(kb, args, progress), max_tokens=args.max_tokens, explain=args.explain)


def _explain(kb: KnowledgeBase, args: Explain, progress: Progress) -> JsonObject:
    from msgspec.structs import asdict

    from concord.wire import explanation_to_json

    options = asdict(request_of(args, kb, progress))
    return explanation_to_json(kb.explain(options.pop("text"), args.reference, **options))


def _get(kb: KnowledgeBase, args: Get, progress: Progress) -> JsonObject:
    from concord.reading.budget import BYTES_PER_TOKEN
    from concord.wire import slice_to_json

    if args.max_tokens is not None or args.cursor is not None:
        return page(kb, args, (args.max_tokens or DEFAULT_TOKENS) * BYTES_PER_TOKEN)
    return slice_to_json(kb.get(_reference(kb, args), context=args.context, whole=args.whole))


def page(kb: KnowledgeBase, args: Get, max_bytes: int) -> JsonObject:
    """Return a page of a document, whose text has at most so many bytes."""
    from concord.text.injection import slice_warnings
    from concord.wire import slice_to_json

    reference = "" if args.cursor else _reference(kb, args)
    read = kb.page(reference, max_bytes=max_bytes, context=args.context, cursor=args.cursor)
    warnings = list(slice_warnings(read.slice))
    return {**slice_to_json(read.slice), "warnings": warnings, "next_cursor": read.next_cursor}


def _reference(kb: KnowledgeBase, args: Get) -> str:
    """Return what to read.

    Raises:
        BadValue: nothing is named, or a citation and an id that stand for different documents.
    """
    if args.citation and args.document_id:
        cited, named = kb.document_named(args.citation), kb.document_named(args.document_id)
        if cited.id != named.id:
            raise BadValue(
                f"'citation' is of {cited.path} ({cited.id}), but 'document_id' of {named.path} ({named.id})",
                hint="give one of them",
            )
    return args.citation or args.document_id or ""


def _list(kb: KnowledgeBase, args: List, progress: Progress) -> JsonObject:
    """Return all sources, or a source and a page of its documents."""
    from concord.wire import document_to_json
    from concord.wire_reports import report_to_json

    after = args.cursor or ""
    if args.source is None:
        rows = [report_to_json(summary) for summary in kb.sources()]
        return {
            "sources": [row for row in rows if row["source"] > after],
            "documents": None,
            "total": len(rows),
        }
    summary = kb.source(args.source)
    following = (document for document in kb.documents(args.source) if document.path > after)
    documents = [document_to_json(document, summary.source) for document in islice(following, MOST_LISTED)]
    return {
        "sources": [report_to_json(summary)],
        "documents": documents,
        "total": summary.counts.documents,
    }


def _add(kb: KnowledgeBase, args: Add, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    done = kb.add(
        args.path,
        name=args.name,
        patterns=args.patterns,
        tags=args.tags,
        trust=args.trust,
        embed=args.embed,
        progress=progress,
    )
    return report_to_json(done)


def _sync(kb: KnowledgeBase, args: Sync, progress: Progress) -> JsonObject:
    from concord.wire_reports import sync_reports_to_json

    names = [args.source] if args.source else args.sources
    return sync_reports_to_json(kb.sync(names, embed=args.embed, progress=progress))


def _remove(kb: KnowledgeBase, args: Remove, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    return report_to_json(kb.remove(args.source, force=args.force, progress=progress))


def _stats(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    """Return the state, and beside what `--json` tells what there is to do about it."""
    from concord.wire_reports import report_to_json

    found = kb.stats()
    return {**report_to_json(found), "problems": list(found.problems)}


def keep_note(kb: KnowledgeBase, args: Note) -> Document:
    """Keep a note."""
    from concord.index.notes import Note as NoteText  # with all that cuts text: late

    fields = args.fields or NoteFields()
    note = NoteText(
        args.content,
        args.title,
        args.tags,
        args.details,
        summary=fields.summary or "",
        context=fields.context or "",
        highlights=fields.highlights,
        aliases=fields.aliases,
    )
    old = kb.document_named(args.supersedes) if args.supersedes else None
    return kb.note(note, supersedes=old.id if old else None, embed=args.embed)


def _note(kb: KnowledgeBase, args: Note, progress: Progress) -> JsonObject:
    from concord.wire import document_to_json

    return {**document_to_json(keep_note(kb, args)), "generation": kb.generation}


def _feedback(kb: KnowledgeBase, args: Feedback, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    return report_to_json(kb.feedback(args.reference, args.opinion, query=args.query))


def _doctor(kb: KnowledgeBase, args: Doctor, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    return report_to_json(kb.doctor(fix=args.fix, progress=progress))


def _backup(kb: KnowledgeBase, args: Backup, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    return report_to_json(kb.backup(args.path, progress=progress))


def _backfill(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    from concord.wire_reports import report_to_json

    return report_to_json(kb.backfill(progress=progress))


def _migrate(kb: KnowledgeBase, args: Migrate, progress: Progress) -> JsonObject:
    from concord.text.urls import without_password
    from concord.wire_reports import report_to_json

    if args.to is None:
        moved = kb.migrate_vectors(progress=progress)
        wire = report_to_json(moved, vectors=kb.vectors_home or "the store itself")
        for row, left in zip(wire["left"], moved.left, strict=True):
            row["anothers"] = left.home.is_anothers
        return wire
    done = kb.migrate(args.to, org=args.org, vectors=args.vectors, progress=progress)
    return report_to_json(done, store=without_password(args.to))


def _rows() -> Iterator[Operation]:
    yield Operation("search", Search, _search, "read", "Search by words and by meaning.")
    yield Operation("explain", Explain, _explain, "read", "Tell why a passage ranks where it does.")
    yield Operation("get", Get, _get, "read", "Read a passage or a document.")
    yield Operation("list", List, _list, "read", "List the sources, or the documents of one.")
    yield Operation("add", Add, _add, "write", "Index a folder or a file.", is_long=True)
    yield Operation("sync", Sync, _sync, "write", "Bring sources up to date.", is_long=True)
    yield Operation("remove", Remove, _remove, "destroy", "Remove a source from the index.", is_long=True)
    yield Operation("stats", Nothing, _stats, "read", "Show how much is stored, and where.")
    yield Operation("note", Note, _note, "write", "Keep a note.")
    yield Operation("feedback", Feedback, _feedback, "write", "Record whether a result was good or bad.")
    yield Operation(
        "doctor", Doctor, _doctor, "write", "Look for what is wrong, and repair it.", is_long=True
    )
    yield Operation("backup", Backup, _backup, "read", "Copy everything to one file.", is_long=True)
    yield Operation("backfill", Nothing, _backfill, "write", "Index anew what is stored.", is_long=True)
    yield Operation("migrate", Migrate, _migrate, "write", "Copy everything to another store.", is_long=True)


OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _rows()}
