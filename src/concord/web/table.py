"""The table of requests: a method, a path, and the operation that it carries out with what arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from msgspec.structs import fields

from concord.core.arguments import Arguments, FilledText, Nothing, PageImage, Rendered, doc
from concord.mcp import tools
from concord.operations import OPERATIONS
from concord.web import answers
from concord.web.answers import Answering, long, quick


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
    returns: str = "application/json"
    can_wait: bool = False  # it becomes a job


ADD, SYNC, REMOVE = long(tools.plan_add), long(tools.plan_sync), long(tools.plan_remove)
DOCTOR = long(answers.plan_doctor, 15.0)
READING = ("level", "context", "max_tokens", "cursor", "whole")


def _row(
    request: str,
    name: str,
    names: tuple[str, ...] | None = None,
    answer: Answering | None = None,
) -> Row:
    """Return the row of an operation; it takes all arguments but those of the path, unless they are named."""
    method, _, path = request.partition(" ")
    operation = OPERATIONS[name]
    every = [field.name for field in fields(operation.arguments)]
    taken = tuple(n for n in (every if names is None else names) if f"{{{n}" not in path)
    return Row(
        *(method, path, name, operation.arguments, taken, answer or quick(name), operation.summary),
        can_wait=answer in (ADD, SYNC, REMOVE, DOCTOR),
    )


def _rows() -> Iterator[Row]:
    # A path to index first would write on a GET: POST /sources does that.
    searching = tuple(f.name for f in fields(OPERATIONS["search"].arguments) if f.name != "within")
    yield _row("GET /search", "search", searching, answers.search)
    yield _row("GET /explain", "explain", (*searching, "reference"))
    yield _row("POST /explain", "explain", (*searching, "reference"))
    yield _row("GET /documents", "list", ("source", "cursor", "orphans"))
    yield _row("GET /documents/{document_id}", "get", READING)
    yield _row("GET /documents/{document_id}/outline", "outline")
    yield _row("GET /documents/{document_id}/links", "links")
    yield _row("GET /documents/{document_id}/related", "related")
    yield _row("GET /links", "links", ())
    yield Row(
        *("GET", "/documents/{document_id}/pages/{page}.png", "page_image", PageImage, ("width", "mark")),
        *(answers.page_image, "Draw a page of a PDF.", "image/png"),
    )
    yield Row(
        *("GET", "/rendered", "rendered", Rendered, ("citation", "start", "raw")),
        *(answers.rendered, "Read a part of a document as HTML."),
    )
    yield _row("GET /passages", "get", ("citation", "citations", *READING))
    yield _row("GET /sources", "list", ("cursor",))
    yield _row("POST /sources", "add", answer=ADD)
    yield _row("POST /sources/{source:path}/sync", "sync", ("embed",), SYNC)
    yield _row("DELETE /sources/{source:path}", "remove", answer=REMOVE)
    yield _row("POST /sync", "sync", ("embed",), SYNC)
    yield _row("POST /notes", "note", answer=answers.note)
    yield _row("PATCH /notes/{document_id}", "edit_note")
    yield _row("DELETE /notes/{document_id}", "remove_note")
    yield _row("POST /feedback", "feedback")
    yield _row("GET /stats", "stats", answer=answers.stats)
    yield _row("GET /eval", "eval_report")
    yield _row("GET /doctor", "doctor", (), DOCTOR)
    yield _row("POST /doctor", "doctor", answer=DOCTOR)
    yield _row("GET /models", "models")
    yield Row("GET", "/jobs", "jobs", Nothing, (), answers.jobs, "List what runs, and what ended last.")
    yield Row("GET", "/jobs/{job_id}", "job", JobNamed, (), answers.job, "Tell how far a job is.")
    yield Row("DELETE", "/jobs/{job_id}", "stop_job", JobNamed, (), answers.stop_job, "Stop a job.")
    yield Row(
        *("GET", "/events", "events", Nothing, (), answers.watch),
        *("Tell how far jobs are, as it happens.", "text/event-stream"),
    )


ROWS: tuple[Row, ...] = tuple(_rows())
