"""The table of operations: what a knowledge base can be asked to do, whoever asks.

An interface turns what it was given into an operation's arguments, runs it, and shows the JSON it returns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from concord.core import arguments as take
from concord.core.arguments import Arguments, Get, Nothing, Search
from concord.core.errors import BadValue, UsageError

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import DocumentSlice, Slices
    from concord.knowledge import KnowledgeBase
    from concord.quality.evaluate import Evaluation
    from concord.quality.refit import Refit
    from concord.types import Answer, Document, Level, Request

JsonObject = dict[str, Any]

MOST_LISTED = 200  # documents in one page of a list: more than ever fit


class Operation(NamedTuple):
    """One row of the table."""

    name: str
    arguments: type[Arguments]
    run: Callable[[KnowledgeBase, Any, Progress], JsonObject]
    effect: Literal["read", "write", "destroy"]
    summary: str
    is_long: bool = False  # it may take minutes, and reports its progress
    value: Callable[[KnowledgeBase, Any, Progress], Struct] | None = None  # if people see more than JSON has


def request_of(args: Search, kb: KnowledgeBase, progress: Progress) -> Request:
    """Return the request of a search; a path to search within is brought up to date first.

    Raises:
        UsageError: the path is a part of a source, and another path was given besides.
    """
    from concord.core.values import moment
    from concord.types import Request

    now = time.time()
    since = moment(args.since, now=now) if args.since else None
    until = moment(args.until, now=now, is_end=True) if args.until else None
    source, path = args.source, args.path
    if args.within is not None:
        mode = args.mode or kb.settings["search.mode"]
        scope = kb.ensure(args.within, embed=mode != "fts5", progress=progress)
        if scope.path is not None and path is not None:
            raise UsageError("a path can be given besides only where all of a source is searched")
        source, path = scope.source, scope.path or path
    same = {name: getattr(args, name) for name in Request.__struct_fields__ if hasattr(args, name)}
    own = {"text": args.query, "top": args.limit, "source": source, "path": path}
    return Request(**{**same, **own, "since": since, "until": until})


def answer(kb: KnowledgeBase, args: Search, progress: Progress, *, wait_for_model: bool = True) -> Answer:
    """Return the answer to a search, for those who show it in another form than JSON."""
    return kb.ask(request_of(args, kb, progress), wait_for_model=wait_for_model)


def _search(kb: KnowledgeBase, args: Search, progress: Progress) -> JsonObject:
    from concord.wire import answer_to_json

    return answer_to_json(answer(kb, args, progress), max_tokens=args.max_tokens, explain=args.explain)


def _explain(kb: KnowledgeBase, args: take.Explain, progress: Progress) -> JsonObject:
    from concord.wire import explanation_to_json

    options = asdict(request_of(args, kb, progress))
    return explanation_to_json(kb.explain(options.pop("text"), args.reference, **options))


def read(kb: KnowledgeBase, args: Get, progress: Progress) -> Slices:
    """Return parts of documents, for those who show them in another form than JSON."""
    from concord.core.reports import Slices
    from concord.reading.budget import read_in_turn

    def part(reference: str, _: int) -> DocumentSlice:
        return kb.get(reference, context=args.context, level=_level(args))

    found, unread = read_in_turn(references(kb, args), part, lambda _: 0, sys.maxsize)
    return Slices(tuple(found), tuple(unread))


def _get(kb: KnowledgeBase, args: Get, progress: Progress) -> JsonObject:
    from concord.parts import count_tokens
    from concord.reading.budget import read_in_turn, utf8_length, within
    from concord.wire import several_to_json, slices_to_json

    if args.max_tokens is None and args.cursor is None:
        return slices_to_json(read(kb, args, progress))
    named = references(kb, args)

    def read_pages(room: int) -> JsonObject:
        pages = read_in_turn(named, partial(page, kb, args), lambda wire: utf8_length(wire["text"]), room)
        return several_to_json(*pages)

    def texts(wire: JsonObject) -> list[str]:
        return ["\n".join([wire["text"], *(further["text"] for further in wire.get("further") or ())])]

    return within(args.max_tokens or take.DEFAULT_TOKENS, read_pages, texts, count_tokens)


def page(kb: KnowledgeBase, args: Get, reference: str, max_bytes: int) -> JsonObject:
    """Return a page of a document, whose text has at most so many bytes; a cursor says of which."""
    from concord.text.injection import slice_warnings
    from concord.wire import slice_to_json

    read = kb.page(
        reference, max_bytes=max_bytes, context=args.context, cursor=args.cursor, level=_level(args)
    )
    warnings = list(slice_warnings(read.slice))
    return {**slice_to_json(read.slice), "warnings": warnings, "next_cursor": read.next_cursor}


def _level(args: Get) -> Level | None:
    return "document" if args.whole else args.level


def references(kb: KnowledgeBase, args: Get) -> list[str]:
    """Return what to read, one thing or several; with a cursor, that says it all.

    Raises:
        BadValue: nothing is named, too much, or a citation and an id that stand for different documents.
    """
    if args.cursor:
        return [""]
    if args.citation and args.document_id:
        cited, named = kb.document_named(args.citation), kb.document_named(args.document_id)
        if cited.id != named.id:
            raise BadValue(
                f"'citation' is of {cited.path} ({cited.id}), but 'document_id' of {named.path} ({named.id})",
                hint="give one of them",
            )
    given = [name for name in (args.citation or args.document_id, *args.citations) if name]
    if len(matching := kb.matching(given or [""])) > take.MOST_READ:
        raise BadValue(f"these are {len(matching):,} documents", hint=f"name {take.MOST_READ} at most")
    return matching


def _outline(kb: KnowledgeBase, args: take.Outline, progress: Progress) -> JsonObject:
    from concord.wire import outline_to_json

    return outline_to_json(kb.outline(args.document_id))


def _links(kb: KnowledgeBase, args: take.Links, progress: Progress) -> JsonObject:
    from concord.wire import links_to_json

    return links_to_json(kb.links(args.document_id))


def _related(kb: KnowledgeBase, args: take.Related, progress: Progress) -> JsonObject:
    from concord.wire import related_to_json

    return related_to_json(
        kb.document_named(args.document_id), kb.related(args.document_id, limit=args.limit)
    )


def _list(kb: KnowledgeBase, args: take.List, progress: Progress) -> JsonObject:
    """Return all sources, or a source and a page of its documents; or those that nothing links to."""
    from concord.wire import document_to_json

    after = args.cursor or ""
    found: Iterable[Document]
    if args.orphans:
        found = list(kb.orphans(args.source))
        held, total = {document.source_id for document in found}, len(found)
        summaries = [summary for summary in kb.sources() if summary.source.id in held]
    elif args.source is not None:
        found, summaries = kb.documents(args.source), [kb.source(args.source)]
        total = summaries[0].counts.documents
    else:
        rows = [_wire(summary) for summary in kb.sources()]
        later = [row for row in rows if row["source"] > after]
        return {"sources": later, "documents": None, "total": len(rows), "next_cursor": None}
    sources = {summary.source.id: summary.source for summary in summaries}
    page = list(islice((document for document in found if document.path > after), MOST_LISTED + 1))
    return {
        "sources": [_wire(summary) for summary in summaries],
        "documents": [document_to_json(row, sources[row.source_id]) for row in page[:MOST_LISTED]],
        "total": total,
        "next_cursor": page[MOST_LISTED - 1].path if len(page) > MOST_LISTED else None,
    }


def _add(kb: KnowledgeBase, args: take.Add, progress: Progress) -> JsonObject:
    return _wire(kb.add(**asdict(args), progress=progress))


def _sync(kb: KnowledgeBase, args: take.Sync, progress: Progress) -> JsonObject:
    from concord.ops.reports import sync_reports_to_json

    names = [args.source] if args.source else args.sources
    return sync_reports_to_json(kb.sync(names, embed=args.embed, progress=progress))


def _stats(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    found = kb.stats()
    return {**_wire(found), "problems": list(found.problems)}  # what there is to do about it


def _eval_report(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    from concord.core.errors import Action, Hint

    report = kb.measuring.last_report()
    none = Hint(Action.EVALUATE, "how good search is has not been measured yet: {evaluate} does")
    return {"report": report, "note": None if report else none}


def evaluated(kb: KnowledgeBase, args: take.Evaluate, progress: Progress) -> Evaluation:
    """Evaluate search on a judged collection, on questions in a file, or on one's own documents."""
    from pathlib import Path  # late: no search needs it

    measuring = kb.measuring
    if args.folder is None:
        save = Path(args.save) if args.save else None
        return measuring.evaluate_own(source=args.source, n=args.n, save=save, progress=progress)
    if Path(args.folder).is_file():
        return measuring.evaluate_fixture(Path(args.folder), progress=progress)
    return measuring.evaluate(Path(args.folder), **_part(args), progress=progress)


def _eval(kb: KnowledgeBase, args: take.Evaluate, progress: Progress) -> JsonObject:
    return {**_wire(evaluated(kb, args, progress)), "feedback": _wire(kb.measuring.review())}


def calibrated(kb: KnowledgeBase, args: take.Calibrate, progress: Progress) -> Refit:
    """Fit confidence to judged queries, and to feedback."""
    from pathlib import Path

    folder = Path(args.folder) if args.folder else None
    near_misses = tuple(map(Path, args.near_misses))
    return kb.measuring.calibrate(folder, **_part(args), near_misses=near_misses, progress=progress)


def _calibrate(kb: KnowledgeBase, args: take.Calibrate, progress: Progress) -> JsonObject:
    return _wire(calibrated(kb, args, progress))


def _part(args: take.Judged) -> dict[str, Any]:
    from pathlib import Path

    unanswerable = tuple(map(Path, args.unanswerable))
    return {"unanswerable": unanswerable, "split": args.split, "limit": args.limit}


def keep_note(kb: KnowledgeBase, args: take.Note) -> Document:
    """Keep a note."""
    from concord.index.notes import Note as NoteText  # with all that cuts text: late

    fields = {name: value for name, value in asdict(args.fields or take.NoteFields()).items() if value}
    note = NoteText(args.content, args.title, args.tags, args.details, **fields)
    old = kb.document_named(args.supersedes) if args.supersedes else None
    return kb.note(note, supersedes=old.id if old else None, embed=args.embed)


def _note(kb: KnowledgeBase, args: take.Note, progress: Progress) -> JsonObject:
    from concord.wire import document_to_json

    old = kb.document_named(args.supersedes) if args.supersedes else None
    document = keep_note(kb, args)
    wire = {**document_to_json(document), "generation": kb.generation}
    return {**wire, "remark": superseded_already(kb, document, old)}


def superseded_already(kb: KnowledgeBase, kept: Document, old: Document | None) -> str | None:
    """Return what to say of a note that supersedes another document than the one that was named."""
    from concord.index.notes import superseded_instead

    newer = superseded_instead(old, kb.history(kept.id)) if old else None
    if old is None or newer is None:
        return None
    already = f"{old.path}, document_id {old.id}, was superseded already"
    return f"{already}: this supersedes {newer.path}, document_id {newer.id}"


def _edit_note(kb: KnowledgeBase, args: take.EditNote, progress: Progress) -> JsonObject:
    from concord.wire import document_to_json

    changes = {name: value for name, value in asdict(args).items() if value is not None}
    reference, embed = changes.pop("document_id"), changes.pop("embed")
    if not changes:
        raise BadValue("there is nothing to change", hint="give a content, a title or tags")
    document = kb.edit_note(reference, embed=embed, **changes)
    return {**document_to_json(document), "generation": kb.generation}


def _remove_note(kb: KnowledgeBase, args: take.RemoveNote, progress: Progress) -> JsonObject:
    from concord.text.json_safe import json_object

    document, brought_back = kb.remove_note(args.document_id)
    wire = {"document_id": document.id, "path": document.path, "title": document.title}
    back = [other.path for other in brought_back]
    return json_object({**wire, "brought_back": back, "generation": kb.generation})


def _models(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    return {"models": [_wire(state) for state in kb.models.list()]}


def _remove(kb: KnowledgeBase, args: take.Remove, progress: Progress) -> JsonObject:
    return _wire(kb.remove(args.source, force=args.force, progress=progress))


def _feedback(kb: KnowledgeBase, args: take.Feedback, progress: Progress) -> JsonObject:
    return _wire(kb.feedback(args.reference, args.opinion, query=args.query))


def _doctor(kb: KnowledgeBase, args: take.Doctor, progress: Progress) -> JsonObject:
    return _wire(kb.doctor(fix=args.fix, progress=progress))


def _backup(kb: KnowledgeBase, args: take.Backup, progress: Progress) -> JsonObject:
    return _wire(kb.backup(args.path, progress=progress))


def _recover(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    return _wire(kb.recover())


def _backfill(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    return _wire(kb.backfill(progress=progress))


def _migrate(kb: KnowledgeBase, args: take.Migrate, progress: Progress) -> JsonObject:
    from concord.core.values import without_password

    if args.to is not None:
        done = kb.migrate(args.to, org=args.org, vectors=args.vectors, progress=progress)
        return _wire(done, store=without_password(args.to))
    moved, outside = kb.migrate_vectors(progress=progress), kb.parts.outside
    return _wire(moved, vectors=outside.home if outside else "the store itself")


def _wire(report: Any, **before: Any) -> JsonObject:
    from concord.ops.reports import report_to_json  # late: a search by words shows no report

    return report_to_json(report, **before)


def _rows() -> Iterator[Operation]:
    yield Operation("search", Search, _search, "read", "Search by words and by meaning.", value=answer)
    yield Operation("explain", take.Explain, _explain, "read", "Tell why a passage ranks where it does.")
    yield Operation("get", Get, _get, "read", "Read a passage or a document.", value=read)
    yield Operation("outline", take.Outline, _outline, "read", "List the headings of a document.")
    yield Operation(
        "links", take.Links, _links, "read", "List what a document links to, and what links to it."
    )
    yield Operation("related", take.Related, _related, "read", "List the documents nearest to one, and why.")
    yield Operation("list", take.List, _list, "read", "List the sources, or the documents of one.")
    yield Operation("add", take.Add, _add, "write", "Index a folder or a file.", is_long=True)
    yield Operation("sync", take.Sync, _sync, "write", "Bring sources up to date.", is_long=True)
    yield Operation(
        "remove", take.Remove, _remove, "destroy", "Remove a source from the index.", is_long=True
    )
    yield Operation("stats", Nothing, _stats, "read", "Show how much is stored, and where.")
    yield Operation("eval_report", Nothing, _eval_report, "read", "Show what the last evaluation measured.")
    yield Operation("eval", take.Evaluate, _eval, "read", "Evaluate search.", is_long=True, value=evaluated)
    yield Operation(
        "calibrate",
        take.Calibrate,
        _calibrate,
        "write",
        "Calibrate confidence.",
        is_long=True,
        value=calibrated,
    )
    yield Operation("note", take.Note, _note, "write", "Keep a note.")
    yield Operation("edit_note", take.EditNote, _edit_note, "write", "Change a note in place.")
    yield Operation("remove_note", take.RemoveNote, _remove_note, "destroy", "Delete a note for good.")
    yield Operation("models", Nothing, _models, "read", "List the models whose vectors are kept.")
    yield Operation("feedback", take.Feedback, _feedback, "write", "Record whether a result was good or bad.")
    yield Operation(
        "doctor", take.Doctor, _doctor, "write", "Look for what is wrong, and repair it.", is_long=True
    )
    yield Operation("backup", take.Backup, _backup, "read", "Copy everything to one file.", is_long=True)
    yield Operation(
        "recover", Nothing, _recover, "write", "Bring notes back from a damaged store.", is_long=True
    )
    yield Operation("backfill", Nothing, _backfill, "write", "Index anew what is stored.", is_long=True)
    yield Operation(
        "migrate", take.Migrate, _migrate, "write", "Copy everything to another store.", is_long=True
    )


OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _rows()}
