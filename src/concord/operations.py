"""The table of operations: what a knowledge base can be asked to do, whoever asks.

An interface turns what it was given into an operation's arguments, runs it, and shows the JSON it returns.
"""

from __future__ import annotations

import os.path
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import asdict, replace

from concord import wire
from concord.core import arguments as take
from concord.core.arguments import Arguments, Get, Nothing, Search
from concord.core.errors import Action, BadValue, Hint, UsageError, joined
from concord.core.values import moment, without_password
from concord.reading.budget import read_in_turn, utf8_length, within
from concord.text.json_safe import JsonObject, json_object
from concord.types import Request

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import DocumentSlice
    from concord.knowledge import KnowledgeBase
    from concord.quality.evaluate import Evaluation
    from concord.types import Answer, Document

MOST_LISTED = 200  # documents in one page of a list: more than ever fit


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
    return _request(args, kb, progress)[0]


def _request(args: Search, kb: KnowledgeBase, progress: Progress) -> tuple[Request, str]:
    """Return the request of a search, and why the path to search within is not up to date, if it is not."""
    now, stale = time.time(), ""
    since = moment(args.since, now=now) if args.since else None
    until = moment(args.until, now=now, is_end=True) if args.until else None
    source, path = args.source, args.path
    if args.within is not None:
        mode = args.mode or kb.settings["search.mode"]
        scope = kb.ensure(args.within, embed=mode != "fts5", progress=progress)
        if scope.path is not None and path is not None:
            raise UsageError("a path can be given besides only where all of a source is searched")
        source, path, stale = scope.source, scope.path or path, scope.stale
    same = {name: getattr(args, name) for name in Request.__struct_fields__ if hasattr(args, name)}
    own = {"text": args.query, "top": args.limit, "source": source, "path": path}
    return Request(**{**same, **own, "since": since, "until": until}), stale


def answer(kb: KnowledgeBase, args: Search, progress: Progress, *, wait_for_model: bool = True) -> Answer:
    """Return the answer to a search, for those who show it in another form than JSON."""
    request, stale = _request(args, kb, progress)
    found = kb.ask(request, wait_for_model=wait_for_model)
    if not stale:
        return found
    said = f"what has changed since it was indexed may be missing: {stale}"
    return replace(found, note=joined("; ", found.note, said) if found.note else said)


def _search(kb: KnowledgeBase, args: Search, progress: Progress) -> JsonObject:
    found = answer(kb, args, progress)
    return wire.answer_to_json(found, max_tokens=args.max_tokens, explain=args.explain)


def _explain(kb: KnowledgeBase, args: take.Explain, progress: Progress) -> JsonObject:
    options = asdict(request_of(args, kb, progress))
    return wire.explanation_to_json(kb.explain(options.pop("text"), args.reference, **options))


def _get(kb: KnowledgeBase, args: Get, progress: Progress) -> JsonObject:
    from concord.parts import count_tokens  # late: it knows adapters

    named, level = references(kb, args), "document" if args.whole else args.level
    if args.max_tokens is None and args.cursor is None:

        def part(reference: str, _: int) -> DocumentSlice:
            return kb.get(reference, context=args.context, level=level)

        found, unread = read_in_turn(named, part, lambda _: 0, sys.maxsize)
        return wire.several_to_json([*map(wire.slice_to_json, found)], unread)

    def read_pages(room: int) -> JsonObject:
        pages = read_in_turn(named, partial(page, kb, args), lambda read: utf8_length(read["text"]), room)
        return wire.several_to_json(*pages)

    def texts(read: JsonObject) -> list[str]:
        return ["\n".join([read["text"], *(further["text"] for further in read.get("further") or ())])]

    return within(args.max_tokens or take.DEFAULT_TOKENS, read_pages, texts, count_tokens)


def page(kb: KnowledgeBase, args: Get, reference: str, max_bytes: int) -> JsonObject:
    """Return a page of a document, whose text has at most so many bytes; a cursor says of which."""
    from concord.text.injection import slice_warnings

    level = "document" if args.whole else args.level
    read = kb.page(reference, max_bytes=max_bytes, context=args.context, cursor=args.cursor, level=level)
    warnings = list(slice_warnings(read.slice))
    return {**wire.slice_to_json(read.slice), "warnings": warnings, "next_cursor": read.next_cursor}


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
    if len(matching := _matching(kb, given or [""])) > take.MOST_READ:
        raise BadValue(f"these are {len(matching):,} documents", hint=f"name {take.MOST_READ} at most")
    return matching


def _matching(kb: KnowledgeBase, named: Iterable[str]) -> list[str]:
    """Return what is named, each once; a glob gives way to the paths that it matches."""
    from concord.store.contract import Select  # late: what an engine is asked needs no store here
    from concord.text.globs import glob_matches, literal_prefix

    catalog = kb.store.catalog
    found: list[str] = []
    for glob in named:
        is_glob = literal_prefix(glob) != glob and not any(catalog.documents(Select(path=glob)))
        paths = (document.path for document in catalog.documents()) if is_glob else ()
        found += [path for path in paths if glob_matches(glob, path)] or [glob]
    return list(dict.fromkeys(found))


def _outline(kb: KnowledgeBase, args: take.Outline, progress: Progress) -> JsonObject:
    from concord.reading.locate import locate
    from concord.reading.pages import outline_of

    located = locate(args.document_id, kb.store.catalog, level="document")
    return wire.outline_to_json(outline_of(located))


def _related(kb: KnowledgeBase, args: take.Related, progress: Progress) -> JsonObject:
    document = kb.document_named(args.document_id)
    return wire.related_to_json(document, kb.related(args.document_id, limit=args.limit))


def _list(kb: KnowledgeBase, args: take.List, progress: Progress) -> JsonObject:
    """Return all sources, or a source and a page of its documents; or those that nothing links to."""
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
        rows = [_report(summary) for summary in kb.sources()]
        later = [row for row in rows if row["source"] > after]
        return {"sources": later, "documents": None, "total": len(rows), "next_cursor": None}
    sources = {summary.source.id: summary.source for summary in summaries}
    page = list(islice((document for document in found if document.path > after), MOST_LISTED + 1))
    return {
        "sources": [_report(summary) for summary in summaries],
        "documents": [wire.document_to_json(row, sources[row.source_id]) for row in page[:MOST_LISTED]],
        "total": total,
        "next_cursor": page[MOST_LISTED - 1].path if len(page) > MOST_LISTED else None,
    }


def _sync(kb: KnowledgeBase, args: take.Sync, progress: Progress) -> JsonObject:
    from concord.ops.reports import sync_reports_to_json

    names = [args.source] if args.source else args.sources
    return sync_reports_to_json(kb.sync(names, embed=args.embed, progress=progress))


def _stats(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    found = kb.stats()
    return {**_report(found), "problems": list(found.problems)}  # what there is to do about it


def _eval_report(kb: KnowledgeBase, args: Nothing, progress: Progress) -> JsonObject:
    report = kb.measuring.last_report()
    none = Hint(Action.EVALUATE, "how good search is has not been measured yet: {evaluate} does")
    return {"report": report, "note": None if report else none}


def evaluated(kb: KnowledgeBase, args: take.Evaluate, progress: Progress) -> Evaluation:
    """Evaluate search on a judged collection, on questions in a file, or on one's own documents."""
    if args.folder is None:
        return kb.measuring.evaluate_own(source=args.source, n=args.n, save=args.save, progress=progress)
    if os.path.isfile(args.folder):
        return kb.measuring.evaluate_fixture(args.folder, progress=progress)
    return kb.measuring.evaluate(args.folder, **_part(args), progress=progress)


def _eval(kb: KnowledgeBase, args: take.Evaluate, progress: Progress) -> JsonObject:
    found = evaluated(kb, args, progress)
    return {**_report(found), "feedback": _report(kb.measuring.review())}


def _calibrate(kb: KnowledgeBase, args: take.Calibrate, progress: Progress) -> JsonObject:
    given = {**_part(args), "near_misses": args.near_misses}
    return _report(kb.measuring.calibrate(args.folder, **given, progress=progress))


def _part(args: take.Judged) -> dict[str, Any]:
    return {"unanswerable": args.unanswerable, "split": args.split, "limit": args.limit}


def keep_note(kb: KnowledgeBase, args: take.Note) -> Document:
    """Keep a note."""
    from concord.index.notes import Note  # with all that cuts text: late

    fields = {name: value for name, value in asdict(args.fields or take.NoteFields()).items() if value}
    note = Note(args.content, args.title, args.tags, args.details, **fields)
    return kb.note(note, supersedes=args.supersedes or None, embed=args.embed)


def _note(kb: KnowledgeBase, args: take.Note, progress: Progress) -> JsonObject:
    return {**wire.document_to_json(keep_note(kb, args)), "generation": kb.generation}


def _edit_note(kb: KnowledgeBase, args: take.EditNote, progress: Progress) -> JsonObject:
    changes = {name: value for name, value in asdict(args).items() if value is not None}
    reference, embed = changes.pop("document_id"), changes.pop("embed")
    if not changes:
        raise BadValue("there is nothing to change", hint="give a content, a title or tags")
    document = kb.edit_note(reference, embed=embed, **changes)
    return {**wire.document_to_json(document), "generation": kb.generation}


def _remove_note(kb: KnowledgeBase, args: take.RemoveNote, progress: Progress) -> JsonObject:
    document, brought_back = kb.remove_note(args.document_id)
    gone = {"document_id": document.id, "path": document.path, "title": document.title}
    back = [other.path for other in brought_back]
    return json_object({**gone, "brought_back": back, "generation": kb.generation})


def _migrate(kb: KnowledgeBase, args: take.Migrate, progress: Progress) -> JsonObject:
    if args.to is not None:
        done = kb.migrate(args.to, org=args.org, progress=progress)
        return _report(done, store=without_password(args.to))
    moved, outside = kb.migrate_vectors(progress=progress), kb.parts.outside
    return _report(moved, vectors=outside.home if outside else "the store itself")


def _report(report: Any, **before: Any) -> JsonObject:
    from concord.ops.reports import report_to_json  # late: a search by words shows no report

    return report_to_json(report, **before)


# fmt: off
_ROWS = (
    Operation("search", Search, _search, "read", "Search by words and by meaning."),
    Operation("explain", take.Explain, _explain, "read", "Tell why a passage ranks where it does."),
    Operation("get", Get, _get, "read", "Read a passage or a document."),
    Operation("outline", take.Outline, _outline, "read", "List the headings of a document."),
    Operation("links", take.Links,
              lambda kb, args, _: wire.links_to_json(kb.links(args.document_id)),
              "read", "List what a document links to, and what links to it."),
    Operation("related", take.Related, _related, "read", "List the documents nearest to one, and why."),
    Operation("list", take.List, _list, "read", "List the sources, or the documents of one."),
    Operation("add", take.Add,
              lambda kb, args, progress: _report(kb.add(**asdict(args), progress=progress)),
              "write", "Index a folder or a file.", is_long=True),
    Operation("sync", take.Sync, _sync, "write", "Bring sources up to date.", is_long=True),
    Operation("remove", take.Remove,
              lambda kb, args, progress: _report(kb.remove(args.source, force=args.force, progress=progress)),
              "destroy", "Remove a source from the index.", is_long=True),
    Operation("stats", Nothing, _stats, "read", "Show how much is stored, and where."),
    Operation("eval_report", Nothing, _eval_report, "read", "Show what the last evaluation measured."),
    Operation("eval", take.Evaluate, _eval, "read", "Evaluate search.", is_long=True),
    Operation("calibrate", take.Calibrate, _calibrate, "write", "Calibrate confidence.", is_long=True),
    Operation("note", take.Note, _note, "write", "Keep a note."),
    Operation("edit_note", take.EditNote, _edit_note, "write", "Change a note in place."),
    Operation("remove_note", take.RemoveNote, _remove_note, "destroy", "Delete a note for good."),
    Operation("models", Nothing,
              lambda kb, args, _: {"models": [_report(state) for state in kb.models.list()]},
              "read", "List the models whose vectors are kept."),
    Operation("feedback", take.Feedback,
              lambda kb, args, _: _report(kb.feedback(args.reference, args.opinion, query=args.query)),
              "write", "Record whether a result was good or bad."),
    Operation("doctor", take.Doctor,
              lambda kb, args, progress: _report(kb.doctor(fix=args.fix, progress=progress)),
              "write", "Look for what is wrong, and repair it.", is_long=True),
    Operation("backup", take.Backup,
              lambda kb, args, progress: _report(kb.backup(args.path, progress=progress)),
              "read", "Copy everything to one file.", is_long=True),
    Operation("recover", Nothing, lambda kb, args, _: _report(kb.recover()),
              "write", "Bring notes back from a damaged store.", is_long=True),
    Operation("backfill", Nothing, lambda kb, args, progress: _report(kb.backfill(progress=progress)),
              "write", "Index anew what is stored.", is_long=True),
    Operation("migrate", take.Migrate, _migrate, "write", "Copy everything to another store.", is_long=True),
)
# fmt: on
OPERATIONS: Mapping[str, Operation] = {row.name: row for row in _ROWS}
