"""What each tool does: arguments in, a reply out. Plain functions; `server` gives them threads and limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from concord.core.arguments import DEFAULT_TOKENS, Add, Get, List, Note, Nothing, Remove, Search, Sync
from concord.core.errors import Action, BadValue, Hint, KBError
from concord.core.protocols import WAITING
from concord.mcp import render
from concord.mcp.jobs import Extent, Job, Plan, Step
from concord.mcp.packing import Reply, in_tokens, pack_answer
from concord.mcp.server_state import ServerState, permitted, roots_of
from concord.mcp.words import in_words
from concord.operations import OPERATIONS, answer, keep_note, page, references
from concord.ops.reports import SUMMED
from concord.reading.budget import BYTES_PER_TOKEN, json_length, read_in_turn, utf8_length
from concord.text.clean import encodable
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line
from concord.types import silent
from concord.wire import document_to_json, several_to_json

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.knowledge import KnowledgeBase
    from concord.types import Answer, Document


log = logging.getLogger(__name__)

DOCUMENTS = "kb://documents/"  # begins the URI of a resource
AFTER = "after:"  # begins the cursor of the page that follows a name, so that changes meanwhile shift nothing
# For the rows of a list as JSON, which is the longer form; the rest of the budget is for what is around them.
LISTED_BYTES = DEFAULT_TOKENS * BYTES_PER_TOKEN * 7 // 8
FRAME_OF_SEVERAL = 100  # bytes of keys and blank lines around several pages
OF_ANY_LENGTH = ("details", "fields")  # of a document
SAME_FOR_ALL = ("source", "indexed_at")  # the same, or nearly, for all documents of a source
EMBED_S = 1.0  # how long the reply to a new note waits for its vector: most take far less
MOST_FAILURES = 20  # failures named in a report; the rest are counted


def search(state: ServerState, kb: KnowledgeBase, asked: Search) -> Reply:
    """Search, from words at once while the model is still loading."""
    found = answer_warming(state, kb, asked)
    return pack_answer(found, asked.max_tokens or DEFAULT_TOKENS, is_brief=asked.max_tokens is None)


def answer_warming(state: ServerState, kb: KnowledgeBase, asked: Search) -> Answer:
    """Return the answer to a search that waits for no model, and see to it that the next one has it."""
    try:
        return answer(kb, asked, silent, wait_for_model=False)
    finally:  # also where the model was all that was asked for
        if not kb.is_warm:
            state.bases.warm_in_background(kb.org, again=True)


def get(state: ServerState, kb: KnowledgeBase, asked: Get) -> Reply:
    """Read a passage, or a document in pages; or several, each the shorter for the others."""
    if not (asked.citation or asked.citations or asked.document_id or asked.cursor):
        raise BadValue("kb_get needs 'citation', 'document_id' or 'cursor'", hint="kb_search gives citations")
    wanted = replace(
        asked,
        citation=cited_by(asked.citation or ""),
        citations=tuple(map(cited_by, asked.citations)),
        document_id=cited_by(asked.document_id or ""),
    )
    named = references(kb, wanted)
    read = partial(_page, kb, wanted, render.page if len(named) == 1 else render.quoted_page)

    def fitted(max_bytes: int) -> Reply:
        if len(named) == 1:
            return read(named[0], max_bytes)
        # The frame of several goes off the room for all of them, but for the room that one needs.
        return _several(*read_in_turn(named, read, _size, max_bytes - FRAME_OF_SEVERAL))

    return in_tokens(asked.max_tokens or DEFAULT_TOKENS, fitted)


def cited_by(uri: str) -> str:
    """Return the citation that a URI of ours stands for; what is none stays as it is."""
    return unquote(uri.removeprefix(DOCUMENTS)) if uri.startswith(DOCUMENTS) else uri


def _several(replies: list[Reply], unread: list[tuple[str, str]]) -> Reply:
    wire = several_to_json([reply.structured for reply in replies], unread)
    missing = [one_line(f"not read: {name} ({in_words(why)})") for name, why in unread]
    return Reply(in_words(wire), "\n\n".join([*(reply.text for reply in replies), *missing]))


def _page(
    kb: KnowledgeBase, asked: Get, show: Callable[[JsonObject], str], reference: str, max_bytes: int
) -> Reply:
    """Return a page in both its forms, neither of them longer than it may be."""
    room = max_bytes
    while room > 0:
        wire = {"notice": render.NOTICE, **page(kb, asked, reference, room)}
        reply = Reply(wire, show(wire))
        if _size(reply) <= max_bytes:
            return reply
        # The text gets what the rest of the page leaves, given how much longer it is where it is written.
        bare = {**wire, "text": ""}
        frame = _size(Reply(bare, show(bare)))
        room = int((max_bytes - frame) / ((_size(reply) - frame) / utf8_length(wire["text"])))
    raise BadValue("the document's name alone is longer than max_tokens", hint="raise max_tokens")


def _size(reply: Reply) -> int:
    return max(json_length(reply.structured), utf8_length(reply.text))


def note(state: ServerState, kb: KnowledgeBase, asked: Note) -> Reply:
    """Keep a note; its vectors follow in the background, briefly waited for if the model is loaded."""
    document = remember(state, kb, asked)
    wire = {**_without(document_to_json(document), OF_ANY_LENGTH), "generation": kb.generation}
    return Reply(wire, one_line(f"kept as {document.path}, document_id {document.id}"))


def remember(state: ServerState, kb: KnowledgeBase, asked: Note) -> Document:
    """Keep a note; the same call sent again keeps no second one."""

    def is_same(kept: Document) -> bool:
        now = kb.document(kept.id)  # one since edited, superseded or removed says something else
        told = ("content_hash", "title", "tags", "superseded_by")
        return now is not None and all(getattr(now, name) == getattr(kept, name) for name in told)

    keep = partial(keep_note, kb, replace(asked, embed=False))
    document, is_new = state.notes.kept_once(kb.org, msgspec.json.encode(asked), keep, is_same)
    if is_new:
        embedding = state.jobs.start_or_join(_plan_embedding(kb, document.source_id))
        if kb.is_warm:
            embedding.thread.join(EMBED_S)
    return document


def _plan_embedding(kb: KnowledgeBase, notes_id: str) -> Plan:
    """Plan to embed notes that are kept already."""

    def work(progress: Progress) -> JsonObject:
        try:
            (report,) = kb.sync([notes_id], progress=progress)
        except KBError as fault:
            log.warning("notes are kept but not embedded: %s", fault)
            raise
        if report.degraded:
            log.warning("notes are kept but not embedded: %s", report.degraded)
        return {}

    return Plan(("embed notes", kb.org), "embedding notes", work, Extent(kb.org, notes_id))


def list_sources(state: ServerState, kb: KnowledgeBase, asked: List) -> Reply:
    """List the sources, or the documents of one, in pages of what is read at once."""
    wire = OPERATIONS["list"].run(kb, replace(asked, cursor=name_before(asked.cursor)), silent)
    kind, name, rows = "sources", "source", wire["sources"]
    if wire["documents"] is not None:
        kind, name, rows = "documents", "path", [_document(row) for row in wire["documents"]]
    room, kept = LISTED_BYTES, 0
    for row in rows:
        room -= json_length(row) + 2
        if room < 0 and kept:
            break
        kept += 1
    more = cursor_after(rows[kept - 1][name]) if kept < len(rows) else None
    wire = {"notice": render.NOTICE, **wire, kind: rows[:kept], "returned": kept, "next_cursor": more}
    return Reply(wire, render.listing(wire))


def _document(row: JsonObject) -> JsonObject:
    """Return what a document is, without what is the same for all of a source or not there."""
    lean = _without(row, OF_ANY_LENGTH + SAME_FOR_ALL)
    return {key: value for key, value in lean.items() if value not in (None, [])}


def _without(wire: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in wire.items() if key not in names}


def cursor_after(name: str) -> str:
    """Return the cursor of the page that follows a name."""
    return encodable(AFTER + name)


def name_before(cursor: str | None) -> str:
    """Return the name that a page follows; none is before the first page.

    Raises:
        BadValue: the cursor is none of ours.
    """
    if cursor is not None and not cursor.startswith(AFTER):
        raise BadValue("this is not a cursor that was given here", hint="pass the next cursor as it is")
    return (cursor or "").removeprefix(AFTER)


def plan_remove(state: ServerState, kb: KnowledgeBase, asked: Remove) -> Plan:
    """Plan to delete a source, and stop its indexing; never notes, which nothing could bring back."""
    source = kb.source(asked.source).source
    work = partial(OPERATIONS["remove"].run, kb, Remove(source.id, asked.force))
    extent = Extent(kb.org, source.path or source.id)
    state.jobs.stop(extent, "its source is being removed")
    key = ("remove", kb.org, source.id, asked.force)
    again = Hint(Action.REMOVE, "nothing was removed; again: {remove}", source=source.name)
    return Plan(key, source.name, work, extent, "removing", is_once=True, if_stopped=again)


def removed(wire: JsonObject) -> Reply:
    """Return the reply for a source that is gone."""
    counts = f"{wire['documents_deleted']} documents, {wire['vectors_deleted']} vectors"
    told = f"removed source {wire['source']} ({counts}); its files are untouched"
    return Reply({"state": "done", **wire, "note": None}, one_line(told))


def still_removing(job: Job) -> Reply:
    """Return the reply for a source that will be gone after the call has ended."""
    told = f"{_goes_on(job)}; nothing more has to be done, and kb_list shows when it is gone"
    counts = {"documents_deleted": 0, "vectors_deleted": 0}
    return Reply({"state": "running", "source": job.plan.label, **counts, "note": told}, one_line(told))


def stats(state: ServerState, kb: KnowledgeBase, asked: Nothing) -> Reply:
    """Tell how much is stored and whether all is well."""
    wire = in_words(state_of(state, kb))
    return Reply(wire, render.stats(wire))


def state_of(state: ServerState, kb: KnowledgeBase) -> JsonObject:
    """Return how much is stored, whether all is well, what runs and how fast calls were."""
    stored = OPERATIONS["stats"].run(kb, Nothing(), silent)
    problems = stored.pop("problems")
    status = "ok" if not problems else "needs attention"
    return {
        **stored,
        "health": {"status": status, "problems": problems, "model_warm": kb.is_warm},
        "latencies_ms": state.latencies.summary(kb.org),
        "jobs": [{"label": job.plan.label, **progress_of(job.step)} for job in state.jobs.running(kb.org)],
    }


def plan_add(state: ServerState, kb: KnowledgeBase, asked: Add) -> Plan:
    """Plan to index a folder or file, if it may be."""
    asked = replace(asked, path=str(permitted(asked.path, roots_of(kb.org, state.roots))))
    work = partial(OPERATIONS["add"].run, kb, asked)
    return Plan(("add", kb.org, asked), asked.path, work, Extent(kb.org, asked.path))


def plan_sync(state: ServerState, kb: KnowledgeBase, asked: Sync) -> Plan:
    """Plan to bring one source or all of them up to date."""
    source = kb.source(asked.source).source if asked.source else None
    name = source.name if source else None

    def work(progress: Progress) -> JsonObject:
        return {**OPERATIONS["sync"].run(kb, Sync(name, embed=asked.embed), progress), "source": name}

    extent = Extent(kb.org, (source.path or source.id) if source else None)
    return Plan(("sync", kb.org, name, asked.embed), asked.source or "all sources", work, extent)


def synced(wire: JsonObject) -> Reply:
    """Return the reply for indexing that is done, of one source or of several: one flat report."""
    failed = in_words(wire.get("failed", []))
    reports = wire.get("sources", [wire])
    report = {
        "state": "done",
        "source": wire["source"],
        **{key: wire.get(key, 0) for key in SUMMED},
        "skipped": wire.get("skipped", {}),
        "failed": failed[:MOST_FAILURES],
        "failed_total": len(failed),
        "degraded": next((in_words(one["degraded"]) for one in reports if one.get("degraded")), None),
        "generation": wire.get("generation"),
        "progress": None,
        "note": None,
        **wire.get("running", {}),
    }
    return Reply(report, render.sync(report))


def still_syncing(job: Job) -> Reply:
    """Return the reply for indexing that goes on after the call has ended."""
    told = f"{_goes_on(job)}; what is done can be searched, kb_sync waits for the rest"
    running = {"state": "running", "progress": progress_of(job.step), "note": told}
    return synced({"source": job.plan.label, "running": running})


def _goes_on(job: Job) -> str:
    how_far = "it has just begun" if job.step.stage == WAITING else f"{job.step} so far"
    return f"{job.plan.doing} {job.plan.label} goes on in the background ({how_far})"


def progress_of(step: Step) -> JsonObject:
    """Return how far some work is."""
    return {"stage": step.stage, "done": step.done, "total": step.total}
