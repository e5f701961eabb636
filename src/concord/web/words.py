"""What a program is told in words: actions as requests, and errors as a status and one shape.

What no request does is for a person to run.
"""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import Response

from concord.core import errors
from concord.core.errors import Action, KBError, worded
from concord.mcp import words as tools
from concord.web.guard import API, error_response

log = logging.getLogger(__name__)

WORDS: dict[Action, str] = {
    **tools.WORDS,
    Action.ADD: f"POST {API}/sources",
    Action.ADD_ALL_FILES: f'POST {API}/sources with patterns ["**"]',
    Action.BEGIN: f"index a folder with POST {API}/sources",
    Action.SEARCH: f"GET {API}/search",
    Action.SYNC: f"POST {API}/sync",
    Action.REMOVE: f"DELETE {API}/sources/{{source}}",
    Action.REMOVE_WITH_NOTES: f"DELETE {API}/sources/{{source}}?force=true",
    Action.LIST: f"GET {API}/sources",
    Action.LIST_NOTES: f"GET {API}/documents?source=notes",
    Action.NOTE: f"POST {API}/notes",
    Action.NOTE_REMOVE: f"DELETE {API}/notes/ID",
    Action.STATS: f"GET {API}/stats",
    Action.DOCTOR: f"GET {API}/doctor",
    Action.REPAIR: f"POST {API}/doctor",
    Action.MODELS_LIST: f"GET {API}/models",
    Action.FEEDBACK: f"POST {API}/feedback",
    Action.MODE: "mode=auto",
    Action.WORDS_ONLY: "mode=fts5",
    Action.EF_SEARCH: "ef_search",
    Action.FORCE: "force=true",
}

# The first class that a fault is of gives the status.
STATUSES: tuple[tuple[type[KBError], int], ...] = (
    (errors.NotFound, 404),
    (errors.NotAllowed, 403),
    (errors.UsageError, 400),
    (errors.NotIndexable, 404),  # there is no such page to draw
    (errors.ExtractionError, 422),
    (errors.StoreBusy, 503),
    (errors.StoreError, 409),
    (KBError, 503),
)


def in_words(value: Any) -> Any:
    """Return a text, or JSON with texts in it, in which hints name requests."""
    return worded(value, WORDS)


def refused(what: str, fault: Exception) -> Response:
    """Return the answer to a request that failed."""
    status = next((status for kind, status in STATUSES if isinstance(fault, kind)), 500)
    return error_response(status, error_of(fault, what), {"Retry-After": "1"} if status == 503 else {})


def error_of(fault: BaseException, what: str = "what was asked for") -> dict[str, str | None]:
    """Return what is said of a fault; the log has the rest of what is a mistake of ours."""
    kind = type(fault).__name__
    if isinstance(fault, KBError):
        return {"error": kind, "message": in_words(fault.message), "hint": in_words(fault.hint)}
    log.error("%s failed", what, exc_info=fault)
    hint = "this is a mistake of the server, not of the request; the server's log says more"
    return {"error": kind, "message": "it failed unexpectedly", "hint": hint}
