"""What each tool does: arguments in, a reply out. Plain functions; `server` gives them threads and limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from concord.core.arguments import DEFAULT_TOKENS, Add, Get, List, Note, Nothing, Remove, Search, Sync
from concord.core.errors import Action, BadValue, Hint, KBError
from concord.mcp import render
from concord.mcp.jobs import Extent, Job, Plan, Step
from concord.mcp.packing import Reply, in_tokens, pack_answer
from concord.mcp.resources import cited_by, cursor_after, name_before
from concord.mcp.server_state import ServerState, permitted, roots_of
from concord.mcp.words import in_words
from concord.operations import OPERATIONS, JsonObject, answer, keep_note, page, references, superseded_already
from concord.ops.reports import SUMMED
from concord.reading.budget import BYTES_PER_TOKEN, json_length, read_in_turn, utf8_length
from concord.text.visible import one_line
from concord.types import silent
from concord.wire import document_to_json, several_to_json

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.knowledge import KnowledgeBase
    from concord.types import Document


log = logging.getLogger(__name__)

# For the rows of a list as JSON, which is the longer form; the rest of the budget is for what is around them.
LISTED_BYTES = DEFAULT_TOKENS * BYTES_PER_TOKEN * 7 // 8
FRAME_OF_SEVERAL = 100  # bytes of keys and blank lines around several pages
OF_ANY_LENGTH = ("details", "fields")  # of a document
SAME_FOR_ALL = ("source", "indexed_at")  # the same, or nearly, for all documents of a source
EMBED_S = 1.0  # how long the reply to a new note waits for its vector: most take far less
MOST_FAILURES = 20  # failures named in a report; the rest are counted


def search(state: ServerState, kb: KnowledgeBase, asked: Search) -> Reply:
    """Search, from words at once while the model is still loading."""
    try:
        found = answer(kb, asked, silent, wait_for_model=False)
    finally:  # also where the model was all that was asked for
        if not kb.is_warm:
            state.bases.warm_in_background(kb.org, again=True)
    return pack_answer(found, asked.max_tokens or DEFAULT_TOKENS, is_brief=asked.max_tokens is None)


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
    show = render.page if len(named) == 1 else render.quoted_page

    def read(max_bytes: int) -> Reply:
        if len(named) == 1:
            return _page(kb, wanted, show, named[0], max_bytes)
        # The frame of several goes off the room for all of them, but for the room that one needs.
        room = max_bytes - FRAME_OF_SEVERAL
        return _several(*read_in_turn(named, partial(_page, kb, wanted, show), _size, room))

    return in_tokens(asked.max_tokens or DEFAULT_TOKENS, read)


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
        room = _room_for_text(reply, show, max_bytes)
    raise BadValue("the document's name alone is longer than max_tokens", hint="raise max_tokens")


def _room_for_text(reply: Reply, show: Callable[[JsonObject], str], max_bytes: int) -> int:
    """Return how long a text may be, given the rest of the page and how much longer it is written."""
    wire = {**reply.structured, "text": ""}
    frame = _size(Reply(wire, show(wire)))
    written = (_size(reply) - frame) / utf8_length(reply.structured["text"])
    return int((max_bytes - frame) / written)


def _size(reply: Reply) -> int:
    return max(json_length(reply.structured), utf8_length(reply.text))


def note(state: ServerState, kb: KnowledgeBase, asked: Note) -> Reply:
    """Keep a note; its vectors follow in the background, briefly waited for if the model is loaded."""
    old = kb.document_named(asked.supersedes) if asked.supersedes else None
    return _kept(kb, remember(state, kb, asked, old), old)


def remember(state: ServerState, kb: KnowledgeBase, asked: Note, old: Document | None) -> Document:
    """Keep a note that supersedes another one or none; the same call sent again keeps no second one."""
    with state.notes.turn((kb.org, msgspec.json.encode(asked))) as recent:
        if recent.document is None or not _still_says(kb, recent.document):
            recent.document = keep_note(kb, replace(asked, supersedes=old and old.id, embed=False))
            embedding = state.jobs.start_or_join(_plan_embedding(kb, recent.document.source_id))
            if kb.is_warm:
                embedding.wait(EMBED_S)
        return recent.document


def _still_says(kb: KnowledgeBase, kept: Document) -> bool:
    """Whether a note is as it was kept: one since edited, superseded or removed says something else."""
    now = kb.document(kept.id)
    return now is not None and _said(now) == _said(kept)


def _said(note: Document) -> tuple[str, str, tuple[str, ...], str | None]:
    return note.content_hash, note.title, note.tags, note.superseded_by


def _kept(kb: KnowledgeBase, document: Document, old: Document | None) -> Reply:
    wire = {**_lean(document_to_json(document), OF_ANY_LENGTH), "generation": kb.generation}
    said = f"kept as {document.path}, document_id {document.id}"
    if remark := superseded_already(kb, document, old):
        said += f"; {remark}"
    return Reply(wire, one_line(said))


def list_sources(state: ServerState, kb: KnowledgeBase, asked: List) -> Reply:
    """List the sources, or the documents of one, in pages of what is read at once."""
    wire = OPERATIONS["list"].run(kb, replace(asked, cursor=name_before(asked.cursor)), silent)
    kind, name = ("sources", "source") if wire["documents"] is None else ("documents", "path")
    rows = wire[kind]
    if kind == "documents":
        rows = [_document(row) for row in rows]
    wire[kind], more = _that_fit(rows, name)
    wire = {"notice": render.NOTICE, **wire, "returned": len(wire[kind]), "next_cursor": more}
    return Reply(wire, render.listing(wire))


def plan_remove(state: ServerState, kb: KnowledgeBase, asked: Remove) -> Plan:
    """Plan to delete a source, and stop its indexing; never notes, which nothing could bring back."""
    source = kb.source(asked.source).source

    def work(progress: Progress) -> JsonObject:
        return OPERATIONS["remove"].run(kb, Remove(source.id, asked.force), progress)

    extent = Extent(kb.org, source.path or source.id)
    state.jobs.stop(extent, "its source is being removed")
    key = ("remove", kb.org, source.id, asked.force)
    again = Hint(Action.REMOVE, "nothing was removed; again: {remove}", source=source.name)
    return Plan(key, source.name, work, extent, "removing", is_once=True, if_stopped=again)


def removed(wire: JsonObject) -> Reply:
    """Return the reply for a source that is gone."""
    counts = f"{wire['documents_deleted']} documents, {wire['vectors_deleted']} vectors"
    said = f"removed source {wire['source']} ({counts}); its files are untouched"
    return Reply({"state": "done", **wire, "note": None}, one_line(said))


def still_removing(job: Job, moving: Job) -> Reply:
    """Return the reply for a source that will be gone after the call has ended."""
    said = f"{_goes_on(job, moving)}; nothing more has to be done, and kb_list shows when it is gone"
    counts = {"documents_deleted": 0, "vectors_deleted": 0}
    return Reply({"state": "running", "source": job.plan.label, **counts, "note": said}, one_line(said))


def stats(state: ServerState, kb: KnowledgeBase, asked: Nothing) -> Reply:
    """Tell how much is stored and whether all is well."""
    wire = in_words(state_of(state, kb))
    return Reply(wire, render.stats(wire))


def state_of(state: ServerState, kb: KnowledgeBase) -> JsonObject:
    """Return how much is stored, whether all is well, what runs and how fast calls were."""
    stored = OPERATIONS["stats"].run(kb, Nothing(), silent)
    problems = stored.pop("problems")
    return {
        **stored,
        "health": {
            "status": "ok" if not problems else "needs attention",
            "problems": problems,
            "model_warm": kb.is_warm,
        },
        "latencies_ms": state.latencies.summary(kb.org),
        "jobs": [{"label": job.plan.label, **_progress(job.step)} for job in state.jobs.running_for(kb.org)],
    }


def plan_add(state: ServerState, kb: KnowledgeBase, asked: Add) -> Plan:
    """Plan to index a folder or file, if it may be."""
    asked = replace(asked, path=str(permitted(asked.path, roots_of(kb.org, state.roots))))

    def work(progress: Progress) -> JsonObject:
        return OPERATIONS["add"].run(kb, asked, progress)

    return Plan(("add", kb.org, asked), asked.path, work, Extent(kb.org, asked.path))


def plan_sync(state: ServerState, kb: KnowledgeBase, asked: Sync) -> Plan:
    """Plan to bring one source or all of them up to date."""
    source = kb.source(asked.source).source if asked.source else None
    name = source.name if source else None

    def work(progress: Progress) -> JsonObject:
        return {**OPERATIONS["sync"].run(kb, Sync(name, embed=asked.embed), progress), "source": name}

    extent = Extent(kb.org, (source.path or source.id) if source else None)
    return Plan(("sync", kb.org, name, asked.embed), asked.source or "all sources", work, extent)


def synced(report: JsonObject) -> Reply:
    """Return the reply for indexing that is done, of one source or of several."""
    wire = _report(report, report.get("sources", [report]))
    return Reply(wire, render.sync(wire))


def still_syncing(job: Job, moving: Job) -> Reply:
    """Return the reply for indexing that goes on after the call has ended."""
    wire = _report({"source": job.plan.label}, []) | {
        "state": "running",
        "progress": _progress(moving.step),
        "note": f"{_goes_on(job, moving)}; what is done can be searched, kb_sync waits for the rest",
    }
    return Reply(wire, render.sync(wire))


def _goes_on(job: Job, moving: Job) -> str:
    return f"{job.plan.doing} {job.plan.label} goes on in the background ({_how_far(job, moving)})"


def _how_far(job: Job, moving: Job) -> str:
    if not moving.step.ticks:
        return "it has just begun"
    said = f"{moving.step} so far"
    return said if moving.plan.label == job.plan.label else f"it waits for {moving.plan.label}, {said}"


def _report(wire: JsonObject, reports: list[JsonObject]) -> JsonObject:
    """Return one flat report, however many sources there were."""
    failed = in_words(wire.get("failed", []))
    return {
        "state": "done",
        "source": wire["source"],
        **{key: wire.get(key, 0) for key in SUMMED},
        "skipped": wire.get("skipped", {}),
        "failed": failed[:MOST_FAILURES],
        "failed_total": len(failed),
        "degraded": next((in_words(report["degraded"]) for report in reports if report["degraded"]), None),
        "generation": wire.get("generation"),
        "progress": None,
        "note": None,
    }


def _progress(step: Step) -> JsonObject:
    return {"stage": step.stage, "done": step.done, "total": step.total}


def _document(row: JsonObject) -> JsonObject:
    """Return what a document is, without what is the same for all of a source or not there."""
    lean = _lean(row, OF_ANY_LENGTH + SAME_FOR_ALL)
    return {key: value for key, value in lean.items() if value not in (None, [])}


def _lean(wire: JsonObject, without: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in wire.items() if key not in without}


def _that_fit(rows: list[JsonObject], name: str) -> tuple[list[JsonObject], str | None]:
    """Return as many rows as fit into a reply, at least one, and the cursor for the next."""
    room, kept = LISTED_BYTES, 0
    for row in rows:
        room -= json_length(row) + 2
        if room < 0 and kept:
            break
        kept += 1
    return rows[:kept], cursor_after(rows[kept - 1][name]) if kept < len(rows) else None


def _plan_embedding(kb: KnowledgeBase, notes_id: str) -> Plan:
    """Plan to embed notes that are kept already."""

    def work(progress: Progress) -> JsonObject:
        try:
            reports = kb.sync([notes_id], progress=progress)
        except KBError as fault:
            log.warning("notes are kept but not embedded: %s", fault)
            raise
        for report in reports:
            if report.degraded:
                log.warning("notes are kept but not embedded: %s", report.degraded)
        return {}

    return Plan(("embed notes", kb.org), "embedding notes", work, Extent(kb.org, notes_id))
