"""What each kind of request does: an operation in a thread, a job, a stream of events, an image."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from concord.core.arguments import Doctor, PageImage, Rendered, Search
from concord.core.arguments import Note as NoteArguments
from concord.core.errors import NotFound, Unavailable
from concord.mcp import tools
from concord.mcp.jobs import Cancelled, Extent, Job, Plan
from concord.mcp.server_state import ServerState
from concord.operations import OPERATIONS, JsonObject, answer, request_of
from concord.text.json_safe import to_text
from concord.types import silent
from concord.web.asked import wait_of
from concord.web.guard import API
from concord.web.words import error_of, in_words
from concord.wire import answer_to_json, document_to_json

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase
    from concord.search.pipeline import Progressive

LIMIT_S = 30.0  # as long as callers usually wait
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


def quick(name: str) -> Answering:
    """Return what carries out an operation that takes no longer than a caller waits."""
    run = OPERATIONS[name].run

    async def carry_out(call: Call) -> Response:
        return as_json(await call.in_thread(lambda: run(call.kb, call.args, silent)))

    return carry_out


async def search(call: Call) -> Response:
    """Search; as events, what words find comes first."""
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return events(_progressive(call, await call.in_thread(lambda: _in_parts(call))))
    return as_json(await call.in_thread(lambda: _search(call)))


def _search(call: Call) -> JsonObject:
    args: Search = call.args
    try:
        found = answer(call.kb, args, silent, wait_for_model=False)
    finally:  # also where the model was all that was asked for
        if not call.kb.is_warm:
            call.state.bases.warm_in_background(call.kb.org, again=True)
    return answer_to_json(found, max_tokens=args.max_tokens, explain=args.explain)


def _in_parts(call: Call) -> Iterator[Progressive]:
    options = asdict(request_of(call.args, call.kb, silent))
    return call.kb.search_progressive(options.pop("text"), **options)


async def _progressive(call: Call, parts: Iterator[Progressive]) -> AsyncIterator[tuple[str, JsonObject]]:
    args: Search = call.args
    try:
        while part := await call.in_thread(lambda: next(parts, None)):
            name = "words" if part.stage == "preliminary" else "answer"
            yield name, answer_to_json(part.answer, max_tokens=args.max_tokens, explain=args.explain)
    except Exception as fault:  # the status is sent by now
        yield "error", error_of(fault)


async def note(call: Call) -> Response:
    """Keep a note; the same request sent again keeps no second one."""
    args: NoteArguments = call.args

    def keep() -> JsonObject:
        old = call.kb.document_named(args.supersedes) if args.supersedes else None
        document = tools.remember(call.state, call.kb, args, old)
        return {**document_to_json(document), "generation": call.kb.generation}

    return as_json(await call.in_thread(keep), 201)


async def stats(call: Call) -> Response:
    """Tell how much is stored, whether all is well, what runs and how fast calls were."""
    return as_json(await call.in_thread(lambda: tools.state_of(call.state, call.kb)))


async def page_image(call: Call) -> Response:
    """Draw a page of a PDF."""
    args: PageImage = call.args
    work = partial(call.kb.page_image, args.document_id, args.page, width=args.width, mark=args.mark)
    return Response(await call.in_thread(work), media_type="image/png")


async def rendered(call: Call) -> Response:
    """Render a part of a document as HTML."""
    from concord.web.rendering import rendered as render

    args: Rendered = call.args
    work = partial(render, call.kb.store.catalog, args.citation, start=args.start, raw=args.raw)
    return as_json(await call.in_thread(work))


def long(plan: Callable[[ServerState, KnowledgeBase, Any], Plan], wait_s: float = 0.0) -> Answering:
    """Return what starts a job, and tells what came of it if it ends while the caller waits."""

    async def start(call: Call) -> Response:
        wait = wait_of(call.request, wait_s)
        job = call.state.jobs.start_or_join(
            await call.in_thread(lambda: plan(call.state, call.kb, call.args))
        )
        if wait and await call.state.jobs.wait(job, wait, _unheard):
            return as_json(_outcome(job))
        return as_json(job_to_json(job), 202, Location=f"{API}/jobs/{job.id}")

    return start


def plan_doctor(state: ServerState, kb: KnowledgeBase, asked: Doctor) -> Plan:
    """Plan to look for what is wrong, and to repair it if that is asked for."""
    work = partial(OPERATIONS["doctor"].run, kb, asked)
    return Plan(("doctor", kb.org, asked), "doctor", work, Extent(kb.org), "looking for faults")


async def _unheard(number: int, job: Job) -> None:
    """Tell nobody of a step: /events does."""


def _outcome(job: Job) -> JsonObject:
    try:
        return job.result.result(0)
    except Cancelled as fault:
        said = f"{job.plan.doing} {job.plan.label} was stopped: {job.why_stopped}"
        raise Unavailable(said, hint=job.plan.if_stopped) from fault


async def jobs(call: Call) -> Response:
    """List what is running, and what ended last."""
    return as_json(_jobs(call))


async def job(call: Call) -> Response:
    """Tell how far a job is, and what came of it."""
    return as_json(job_to_json(_job(call)))


async def stop_job(call: Call) -> Response:
    """Ask a job to stop at its next step."""
    found = _job(call)
    found.cancel("somebody asked for that")
    return as_json(job_to_json(found))


def _job(call: Call) -> Job:
    for known in call.state.jobs.known_to(call.kb.org):
        if known.id == call.args.job_id:
            return known
    raise NotFound("there is no such job", hint="those that ended long ago are forgotten")


def _jobs(call: Call) -> JsonObject:
    return {"jobs": [job_to_json(job) for job in call.state.jobs.known_to(call.kb.org)]}


def job_to_json(job: Job) -> JsonObject:
    """Return how far a job is, and what came of it."""
    wire: JsonObject = {
        "state": "waiting" if job.is_yet_to_begin else "running",
        "result": None,
        "error": None,
    }
    if not job.is_running:
        try:
            wire |= {"state": "done", "result": _outcome(job)}
        except Unavailable as fault:
            wire |= {"state": "stopped" if job.is_cancelled else "failed", "error": error_of(fault)}
        except Exception as fault:
            wire |= {"state": "failed", "error": error_of(fault)}
    step = {"stage": job.step.stage, "done": job.step.done, "total": job.step.total}
    return {"id": job.id, "label": job.plan.label, "doing": job.plan.doing, **step, **wire}


async def watch(call: Call) -> Response:
    """Tell how far jobs are, whenever something moves."""
    return events(_moves(call))


async def _moves(call: Call) -> AsyncIterator[tuple[str, JsonObject]]:
    told, at = None, time.monotonic()
    while True:
        now = _jobs(call)
        if now != told:
            told, at = now, time.monotonic()
            yield "jobs", now
        elif time.monotonic() - at > ALIVE_S:
            at = time.monotonic()
            yield "", {}
        await asyncio.sleep(TICK_S)


def events(parts: AsyncIterator[tuple[str, JsonObject]]) -> Response:
    """Return server-sent events; one without a name only shows that the stream is alive."""

    async def lines() -> AsyncIterator[str]:
        async for name, wire in parts:
            yield f"event: {name}\ndata: {to_text(in_words(wire))}\n\n" if name else ":\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
