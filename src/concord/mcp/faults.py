"""Errors for a model: what went wrong and what to do about it, as the result of a tool that failed."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from concord.core.errors import BadValue, KBError, nearest, shown
from concord.mcp.words import in_words
from concord.visible import one_line

log = logging.getLogger(__name__)

MOST_NAMED = 5  # arguments complained about at once


def refused(fault: KBError) -> CallToolResult:
    """Return the result of a call that cannot be carried out.

    It is text alone: structured content has to fit the tool's output schema, and clients drop what does not.
    """
    message, hint = in_words(fault.message), in_words(fault.hint or "")
    text = one_line(f"Error ({type(fault).__name__}): {message}" + ("" if message.endswith("?") else ".")) + (
        "\n" + one_line(f"Hint: {hint}") if hint else ""
    )
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def unexpected(tool: str, fault: Exception) -> CallToolResult:
    """Return the result of a call that met a mistake of ours; the log has the rest."""
    log.error("%s failed", tool, exc_info=fault)
    return refused(
        KBError(
            f"{tool} failed unexpectedly ({type(fault).__name__})",
            hint="this is a mistake of the server, not of the call; the server's log says more",
        )
    )


def wrong_arguments(tool: str, fault: ValidationError, known: Sequence[str]) -> BadValue:
    """Return the error for arguments that do not fit, in words that say how to make them fit."""
    problems = [_problem(tool, one, known) for one in fault.errors(include_url=False)[:MOST_NAMED]]
    return BadValue("; ".join(problems), hint=f"{tool} takes: {', '.join(known) or 'no arguments'}")


def _problem(tool: str, one: Any, known: Sequence[str]) -> str:
    name = ".".join(map(str, one["loc"]))
    if one["type"] == "missing":
        return f"{tool} needs {name!r}"
    if one["type"] == "extra_forbidden":
        meant = nearest(name, known)
        return f"{tool} has no argument {name!r}" + (f", did you mean {meant!r}?" if meant else "")
    said = str(one["msg"]).removeprefix("Input ")
    given = one["input"]
    written = json.dumps(given) if given is None or isinstance(given, bool) else shown(given)
    return f"{name!r} {said[:1].lower()}{said[1:]}, not {written}"
