"""The table of requests, and what each does: an operation, a job, a stream of events, an image."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec.structs import asdict, fields
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from concord.core.arguments import Arguments, Doctor, FilledText, Nothing, PageImage, Rendered, Search, doc
from concord.core.errors import BadValue, NotFound
from concord.mcp import tools
from concord.mcp.jobs import Cancelled, Extent, Job, Plan
from concord.mcp.server_state import ServerState
from concord.operations import OPERATIONS, request_of
from concord.text.json_safe import JsonObject, to_text
from concord.types import silent
from concord.web.guard import API
from concord.web.words import error_of, in_words
from concord.wire import answer_to_json, document_to_json

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase
    from concord.search.pipeline import Progressive

LIMIT_S = 30.0  # as long as callers usually wait
MAX_WAIT_S = 600.0  # for a job
LOOK_S = 15.0  # how long a caller waits for a look at everything, unless it says so
TICK_S = 0.25  # how often events are looked for
ALIVE_S = 15.0  # how often a silent stream says that it is there


class Call(NamedTuple):
    """One request, and what it is answered with."""

    state: ServerState
    kb: KnowledgeBase
    request: Request
    args: Any

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Do blocking work elsewhere."""
        return await self.state.in_thread(work, LIMIT_S)


Answering = Callable[[Call], Awaitable[Response]]


def as_json(wire: JsonObject, status: int = 200, **headers: str) -> Response:
    """Return JSON, with hints in the words of HTTP."""
    return Response(to_text(in_words(wire)), status, headers, "application/json")


def _threaded(work: Callable[[Call], JsonObject], status: int = 200) -> Answering:
    """Return what does some work that takes no longer than a caller waits."""

    async def answer(call: Call) -> Response:
        return as_json(await call.in_thread(partial(work, call)), status)

    return answer


async def _search(call: Call) -> Response:
    args: Search = call.args

    def whole() -> JsonObject:
        found = tools.answer_warming(call.state, call.kb, args)
        return answer_to_json(found, max_tokens=args.max_tokens, explain=args.explain)

    def in_parts() -> Iterator[Progressive]:
        options = asdict(request_of(args, call.kb, silent))
        return call.kb.search_progressive(options.pop("text"), **options)

    if "text/event-stream" in call.request.headers.get("accept", ""):
        return _events(_progressive(call, await call.in_thread(in_parts)))
    return as_json(await call.in_thread(whole))


async def _progressive(call: Call, parts: Iterator[Progressive]) -> AsyncIterator[tuple[str, JsonObject]]:
    args, started = call.args, time.perf_counter()
    try:
        while part := await call.in_thread(lambda: next(parts, None)):
            name = "words" if part.stage == "preliminary" else "answer"
            yield name, answer_to_json(part.answer, max_tokens=args.max_tokens, explain=args.explain)
        call.state.latencies.add(call.kb.org, "search", (time.perf_counter() - started) * 1000)
    except Exception as fault:  # the status is sent by now
        yield "error", error_of(fault)


def _note(call: Call) -> JsonObject:
    document = tools.remember(call.state, call.kb, call.args)
    return {**document_to_json(document), "generation": call.kb.generation}


def _stats(call: Call) -> JsonObject:
    return tools.state_of(call.state, call.kb)


def _rendered(call: Call) -> JsonObject:
    from concord.web.rendering import rendered

    args: Rendered = call.args
    return rendered(call.kb.store.catalog, args.citation, start=args.start, raw=args.raw)


async def _page_image(call: Call) -> Response:
    args: PageImage = call.args
    work = partial(call.kb.page_image, args.document_id, args.page, width=args.width, mark=args.mark)
    return Response(await call.in_thread(work), media_type="image/png")


def _long(plan: Callable[[ServerState, KnowledgeBase, Any], Plan], wait_s: float = 0.0) -> Answering:
    """Return what starts a job, and tells what came of it if it ends while the caller waits."""

    async def start(call: Call) -> Response:
        wait = _wait_of(call.request, wait_s)
        planned = await call.in_thread(partial(plan, call.state, call.kb, call.args))
        job = call.state.jobs.start_or_join(planned)
        if wait and await call.state.jobs.wait(job, wait):
            return as_json(job.outcome())
        return as_json(_told_of(job), 202, Location=f"{API}/jobs/{job.id}")

    return start


def _wait_of(request: Request, default: float) -> float:
    try:
        wait = float(request.query_params.get("wait", default))
    except ValueError:
        wait = -1.0
    if not 0 <= wait <= MAX_WAIT_S:
        raise BadValue("wait should be a number of seconds", hint=f"0 to {MAX_WAIT_S:g}")
    return wait


def _plan_doctor(state: ServerState, kb: KnowledgeBase, asked: Doctor) -> Plan:
    work = partial(OPERATIONS["doctor"].run, kb, asked)
    return Plan(("doctor", kb.org, asked), "doctor", work, Extent(kb.org), "looking for faults")


async def _jobs(call: Call) -> Response:
    return as_json(_known_jobs(call))


def _known_jobs(call: Call) -> JsonObject:
    return {"jobs": [_told_of(job) for job in call.state.jobs.known_to(call.kb.org)]}


async def _job(call: Call) -> Response:
    """Tell how far a job is; one that is not wanted any more stops at its next step."""
    found = next((job for job in call.state.jobs.known_to(call.kb.org) if job.id == call.args.job_id), None)
    if found is None:
        raise NotFound("there is no such job", hint="those that ended long ago are forgotten")
    if call.request.method == "DELETE":
        found.cancel("somebody asked for that")
    return as_json(_told_of(found))


def _told_of(job: Job) -> JsonObject:
    state, result, error = "waiting" if job.is_yet_to_begin else "running", None, None
    if not job.is_running:
        fault = job.result.exception()
        if fault is None:
            state, result = "done", job.result.result()
        else:
            state = "stopped" if isinstance(fault, Cancelled) else "failed"
            error = error_of(job.stopped if isinstance(fault, Cancelled) else fault)
    return {
        **{"id": job.id, "label": job.plan.label, "doing": job.plan.doing},
        **tools.progress_of(job.step),
        **{"state": state, "result": result, "error": error},
    }


async def _watch(call: Call) -> Response:
    async def moves() -> AsyncIterator[tuple[str, JsonObject]]:
        told, at = None, time.monotonic()
        while True:
            now = _known_jobs(call)
            if now != told:
                told, at = now, time.monotonic()
                yield "jobs", now
            elif time.monotonic() - at > ALIVE_S:
                at = time.monotonic()
                yield "", {}
            await asyncio.sleep(TICK_S)

    return _events(moves())


def _events(parts: AsyncIterator[tuple[str, JsonObject]]) -> Response:
    """Return server-sent events; one without a name only shows that the stream is alive."""

    async def lines() -> AsyncIterator[str]:
        async for name, wire in parts:
            yield f"event: {name}\ndata: {to_text(in_words(wire))}\n\n" if name else ":\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


class JobNamed(Arguments, frozen=True):
    """Which job is meant."""

    job_id: Annotated[FilledText, doc("The id of a job.")]


class Row(NamedTuple):
    """One request below the API's path."""

    method: str
    path: str
    name: str  # of the operation; what is none has a name like one
    arguments: type[Arguments]
    names: tuple[str, ...]  # of the arguments: those of the query or the body
    answer: Answering
    summary: str
    can_wait: bool = False  # it becomes a job
    returns: str = "application/json"
    status: str = "200"


READING = ("level", "context", "max_tokens", "cursor", "whole")


def _row(
    request: str,
    name: str,
    names: tuple[str, ...] | None = None,
    answer: Answering | None = None,
    plan: Callable[[ServerState, KnowledgeBase, Any], Plan] | None = None,
    wait_s: float = 0.0,
) -> Row:
    """Return the row of an operation; it takes all arguments but those of the path, unless they are named."""
    method, _, path = request.partition(" ")
    operation = OPERATIONS[name]
    every = tuple(field.name for field in fields(operation.arguments))
    taken = tuple(n for n in (every if names is None else names) if f"{{{n}" not in path)

    def run(call: Call) -> JsonObject:
        return operation.run(call.kb, call.args, silent)

    answering = _long(plan, wait_s) if plan else answer or _threaded(run)
    return Row(method, path, name, operation.arguments, taken, answering, operation.summary, plan is not None)


def _rows() -> Iterator[Row]:
    # A path to index first would write on a GET: POST /sources does that.
    searching = tuple(f.name for f in fields(OPERATIONS["search"].arguments) if f.name != "within")
    yield _row("GET /search", "search", searching, _search)
    yield _row("GET /explain", "explain", (*searching, "reference"))
    yield _row("POST /explain", "explain", (*searching, "reference"))
    yield _row("GET /documents", "list", ("source", "cursor", "orphans"))
    yield _row("GET /documents/{document_id:path}/outline", "outline")
    yield _row("GET /documents/{document_id:path}/links", "links")
    yield _row("GET /documents/{document_id:path}/related", "related")
    yield _row("GET /links", "links", ())
    image = "/documents/{document_id:path}/pages/{page}.png"
    drawn = Row(
        "GET", image, "page_image", PageImage, ("width", "mark"), _page_image, "Draw a page of a PDF."
    )
    yield drawn._replace(returns="image/png")
    yield _row("GET /documents/{document_id:path}", "get", READING)  # last: an id may be a path
    told = "Read a part of a document as HTML."
    yield Row(
        "GET", "/rendered", "rendered", Rendered, ("citation", "start", "raw"), _threaded(_rendered), told
    )
    yield _row("GET /passages", "get", ("citation", "citations", *READING))
    yield _row("GET /sources", "list", ("cursor",))
    yield _row("POST /sources", "add", plan=tools.plan_add)
    yield _row("POST /sources/{source:path}/sync", "sync", ("embed",), plan=tools.plan_sync)
    yield _row("DELETE /sources/{source:path}", "remove", plan=tools.plan_remove)
    yield _row("POST /sync", "sync", ("embed",), plan=tools.plan_sync)
    yield _row("POST /notes", "note", answer=_threaded(_note, 201))._replace(status="201")
    yield _row("PATCH /notes/{document_id:path}", "edit_note")
    yield _row("DELETE /notes/{document_id:path}", "remove_note")
    yield _row("POST /feedback", "feedback")
    yield _row("GET /stats", "stats", answer=_threaded(_stats))
    yield _row("GET /eval", "eval_report")
    yield _row("GET /doctor", "doctor", (), plan=_plan_doctor, wait_s=LOOK_S)
    yield _row("POST /doctor", "doctor", plan=_plan_doctor, wait_s=LOOK_S)
    yield _row("GET /models", "models")
    yield Row("GET", "/jobs", "jobs", Nothing, (), _jobs, "List what runs, and what ended last.")
    yield Row("GET", "/jobs/{job_id}", "job", JobNamed, (), _job, "Tell how far a job is.")
    yield Row("DELETE", "/jobs/{job_id}", "stop_job", JobNamed, (), _job, "Stop a job.")
    moving = Row("GET", "/events", "events", Nothing, (), _watch, "Tell how far jobs are, as it happens.")
    yield moving._replace(returns="text/event-stream")


ROWS: tuple[Row, ...] = tuple(_rows())
