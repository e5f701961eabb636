"""What each tool does: arguments in, a reply out. Plain functions; `server` gives them threads and limits."""

from __future__ import annotations

import logging
import time
from itertools import islice
from typing import TYPE_CHECKING

from concord.core.errors import BadValue, KBError
from concord.core.values import moment
from concord.mcp import arguments as given
from concord.mcp import render
from concord.mcp.cursors import cursor_after, name_before
from concord.mcp.jobs import Extent, Job, Plan, Step
from concord.mcp.packing import Reply, pack_answer
from concord.mcp.resources import cited_by
from concord.mcp.roots import permitted, roots_of
from concord.mcp.server_state import ServerState
from concord.mcp.words import in_words
from concord.reading.budget import BYTES_PER_TOKEN, json_length, utf8_length
from concord.visible import one_line
from concord.wire import JsonObject, document_to_json, slice_to_json
from concord.wire_reports import (
    SUMMED,
    report_to_json,
    sync_reports_to_json,
)

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import SyncReport
    from concord.index.notes import Note
    from concord.knowledge import KnowledgeBase
    from concord.reading.pages import Page
    from concord.types import Document, Source

log = logging.getLogger(__name__)

# For the rows of a list as JSON, which is the longer form; the rest of the budget is for what is around them.
LISTED_BYTES = given.DEFAULT_TOKENS * BYTES_PER_TOKEN * 7 // 8
SAME_FOR_ALL = ("source", "indexed_at")  # the same, or nearly, for all documents of a source
MOST_LISTED = 200  # documents looked at for one page: more than ever fit
EMBED_S = 1.0  # how long the reply to a new note waits for its vector: most take far less
MOST_FAILURES = 20  # failures named in a report; the rest are counted


def search(state: ServerState, kb: KnowledgeBase, asked: given.SearchArguments) -> Reply:
    """Search, from words at once while the model is still loading."""
    try:
        answer = kb.search(
            asked.query,
            wait_for_model=False,
            mode=asked.mode,
            top=asked.limit,
            tags=tuple(asked.tags),
            type=asked.type,
            source=asked.source,
            path=asked.path,
            since=moment(asked.since, now=time.time()) if asked.since else None,
            until=moment(asked.until, now=time.time(), is_end=True) if asked.until else None,
            deadline_ms=asked.deadline_ms,
            include_superseded=asked.include_superseded,
            min_generation=asked.min_generation,
        )
    finally:  # also where the model was all that was asked for
        if not kb.is_warm:
            state.bases.warm_in_background(kb.org, again=True)
    return pack_answer(answer, asked.max_tokens or given.DEFAULT_TOKENS, is_brief=asked.max_tokens is None)


def get(state: ServerState, kb: KnowledgeBase, asked: given.GetArguments) -> Reply:
    """Read a passage, or a document in pages."""
    reference = asked.citation or asked.document_id
    if reference is None and asked.cursor is None:
        raise BadValue("kb_get needs 'citation', 'document_id' or 'cursor'", hint="kb_search gives citations")
    max_bytes = (asked.max_tokens or given.DEFAULT_TOKENS) * BYTES_PER_TOKEN
    room = max_bytes
    while room > 0:
        page = kb.page(cited_by(reference or ""), max_bytes=room, context=asked.context, cursor=asked.cursor)
        reply = _page(page)
        if _size(reply) <= max_bytes:
            return reply
        room = _room_for_text(reply, max_bytes)
    raise BadValue("the document's name alone is longer than max_tokens", hint="raise max_tokens")


def _page(page: Page) -> Reply:
    from concord.text.injection import slice_warnings

    wire = {
        **slice_to_json(page.slice),
        "warnings": list(slice_warnings(page.slice)),
        "next_cursor": page.next_cursor,
    }
    return Reply(wire, render.page(wire))


def _room_for_text(reply: Reply, max_bytes: int) -> int:
    """Return how long a text may be, given the size of the rest of the page and of JSON's escapes."""
    wire = {**reply.structured, "text": ""}
    frame = _size(Reply(wire, render.page(wire)))
    written = (_size(reply) - frame) / utf8_length(reply.structured["text"])
    return int((max_bytes - frame) / written)


def _size(reply: Reply) -> int:
    return max(json_length(reply.structured), utf8_length(reply.text))


def note(state: ServerState, kb: KnowledgeBase, asked: given.NoteArguments) -> Reply:
    """Keep a note; its vectors follow in the background, briefly waited for if the model is loaded."""
    with state.notes.turn((kb.org, asked.model_dump_json())) as recent:
        old = kb.document_named(asked.supersedes) if asked.supersedes else None
        if recent.document is None or not _still_says(kb, recent.document):
            recent.document = kb.note(_note(asked), supersedes=old.id if old else None, embed=False)
            embedding = state.jobs.start_or_join(_plan_embedding(kb, recent.document.source_id))
            if kb.is_warm:
                embedding.wait(EMBED_S)
        return _kept(kb, recent.document, old)


def _still_says(kb: KnowledgeBase, kept: Document) -> bool:
    """Whether a note is as it was kept: one since edited, superseded or removed says something else."""
    now = kb.document(kept.id)
    return now is not None and _said(now) == _said(kept)


def _said(note: Document) -> tuple[str, str, tuple[str, ...], str | None]:
    return note.content_hash, note.title, note.tags, note.superseded_by


def _kept(kb: KnowledgeBase, document: Document, old: Document | None) -> Reply:
    from concord.index.notes import superseded_instead

    wire = {**_described(document), "generation": kb.generation}
    said = f"kept as {document.path}, document_id {document.id}"
    if old and (newer := superseded_instead(old, kb.history(document.id))):
        said += (
            f"; {old.path}, document_id {old.id}, was superseded already, so this supersedes {newer.path}, "
        )
        said += f"document_id {newer.id}"
    return Reply(wire, one_line(said))


def list_sources(state: ServerState, kb: KnowledgeBase, asked: given.ListArguments) -> Reply:
    """List the sources, or the documents of one, in pages of what is read at once."""
    after = name_before(asked.cursor)
    if asked.source is None:
        rows = [report_to_json(one) for one in kb.sources()]
        listed, more = _that_fit([row for row in rows if row["source"] > after], "source")
        return _listing(listed, None, len(rows), more)
    summary = kb.source(asked.source)
    following = (one for one in kb.documents(asked.source) if one.path > after)
    rows = [_row(one, summary.source) for one in islice(following, MOST_LISTED)]
    listed, more = _that_fit(rows, "path")
    return _listing([report_to_json(summary)], listed, summary.counts.documents, more)


def _listing(
    sources: list[JsonObject], documents: list[JsonObject] | None, total: int, more: str | None
) -> Reply:
    returned = len(sources if documents is None else documents)
    wire = {
        "sources": sources,
        "documents": documents,
        "returned": returned,
        "total": total,
        "next_cursor": more,
    }
    return Reply(wire, render.listing(wire))


def plan_remove(state: ServerState, kb: KnowledgeBase, asked: given.RemoveArguments) -> Plan:
    """Plan to delete a source from the index; never notes, which nothing could bring back."""
    source = kb.source(asked.source).source

    def work(progress: Progress) -> JsonObject:
        return {"state": "done", **report_to_json(kb.remove(source.id, progress=progress)), "note": None}

    extent = Extent(kb.org, source.path or source.id)
    key, again = ("remove", kb.org, source.id), "nothing was removed: call kb_remove_source again"
    return Plan(key, source.name, work, extent, "removing", is_once=True, if_stopped=again)


def removed(wire: JsonObject) -> Reply:
    """Return the reply for a source that is gone."""
    counts = f"{wire['documents_deleted']} documents, {wire['vectors_deleted']} vectors"
    return Reply(wire, one_line(f"removed source {wire['source']} ({counts}); its files are untouched"))


def still_removing(job: Job, moving: Job) -> Reply:
    """Return the reply for a source that will be gone after the call has ended."""
    said = f"{_goes_on(job, moving)}; nothing more has to be done, and kb_list shows when it is gone"
    counts = {"documents_deleted": 0, "vectors_deleted": 0}
    return Reply({"state": "running", "source": job.plan.label, **counts, "note": said}, one_line(said))


def stats(state: ServerState, kb: KnowledgeBase, asked: given.StatsArguments) -> Reply:
    """Tell how much is stored and whether all is well."""
    found = kb.stats()
    stored, problems = in_words(report_to_json(found)), in_words([*found.problems])
    wire = {
        **stored,
        "health": {
            "status": "ok" if not problems else "needs attention",
            "problems": problems,
            "model_warm": kb.is_warm,
        },
        "latencies_ms": state.latencies.summary(kb.org),
        "jobs": [{"label": job.plan.label, **_progress(job.step)} for job in state.jobs.running_for(kb.org)],
    }
    return Reply(wire, render.stats(wire))


def plan_add(state: ServerState, kb: KnowledgeBase, asked: given.AddArguments) -> Plan:
    """Plan to index a folder or file, if it may be."""
    path = permitted(asked.path, roots_of(kb.org, state.roots))
    name, patterns, tags = asked.name, tuple(asked.patterns), tuple(asked.tags)

    def work(progress: Progress) -> JsonObject:
        report = kb.add(path, name=name, patterns=patterns, tags=tags, progress=progress)
        return _report(report_to_json(report), [report])

    key = ("add", kb.org, path, name, patterns, tags)
    return Plan(key, str(path), work, Extent(kb.org, str(path)))


def plan_sync(state: ServerState, kb: KnowledgeBase, asked: given.SyncArguments) -> Plan:
    """Plan to bring one source or all of them up to date."""
    source = kb.source(asked.source).source if asked.source else None
    names = [source.name] if source else []

    def work(progress: Progress) -> JsonObject:
        reports = kb.sync(names, progress=progress)
        return _report({**sync_reports_to_json(reports), "source": asked.source}, reports)

    extent = Extent(kb.org, (source.path or source.id) if source else None)
    return Plan(("sync", kb.org, *names), asked.source or "all sources", work, extent)


def synced(report: JsonObject) -> Reply:
    """Return the reply for indexing that is done."""
    return Reply(report, render.sync(report))


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


def _report(wire: JsonObject, reports: list[SyncReport]) -> JsonObject:
    """Return one flat report, however many sources there were."""
    failed = in_words(wire.get("failed", []))
    return {
        "state": "done",
        "source": wire["source"],
        **{key: wire.get(key, 0) for key in SUMMED},
        "skipped": wire.get("skipped", {}),
        "failed": failed[:MOST_FAILURES],
        "failed_total": len(failed),
        "degraded": next((in_words(report.degraded) for report in reports if report.degraded), None),
        "generation": wire.get("generation"),
        "progress": None,
        "note": None,
    }


def _progress(step: Step) -> JsonObject:
    return {"stage": step.stage, "done": step.done, "total": step.total}


def _described(document: Document, source: Source | None = None) -> JsonObject:
    """Return what a document is, without its details and fields: they may be of any length."""
    wire = document_to_json(document, source)
    return {key: value for key, value in wire.items() if key not in ("details", "fields")}


def _row(document: Document, source: Source) -> JsonObject:
    """Return what a document is, without what is the same for all of a source or not there."""
    wire = _described(document, source)
    return {key: value for key, value in wire.items() if key not in SAME_FOR_ALL and value not in (None, [])}


def _that_fit(rows: list[JsonObject], name: str) -> tuple[list[JsonObject], str | None]:
    """Return as many rows as fit into a reply, at least one, and the cursor for the next."""
    room, kept = LISTED_BYTES, 0
    for row in rows:
        room -= json_length(row) + 2
        if room < 0 and kept:
            break
        kept += 1
    return rows[:kept], cursor_after(rows[kept - 1][name]) if kept < len(rows) else None


def _note(asked: given.NoteArguments) -> Note:
    from concord.index.notes import Note  # with all that cuts text: not while a client waits for a hello

    fields = asked.fields or given.NoteFields()
    return Note(
        asked.content,
        asked.title,
        tuple(asked.tags),
        asked.details,
        summary=fields.summary or "",
        context=fields.context or "",
        highlights=tuple(fields.highlights),
        aliases=tuple(fields.aliases),
    )


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
