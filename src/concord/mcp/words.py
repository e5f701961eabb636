"""What a model is told in words: actions as tools and arguments, and errors as results of a tool that failed.

What no tool does is for a person to run.
"""

from __future__ import annotations

import logging
from typing import Any

from mcp_types import CallToolResult, TextContent

from concord.core.errors import Action, KBError, worded
from concord.text.visible import one_line

log = logging.getLogger(__name__)
WORDS: dict[Action, str] = {
    Action.ADD: "kb_add_source",
    Action.ADD_ALL_FILES: "kb_add_source with patterns ['**']",
    Action.BEGIN: "index a folder with kb_add_source",
    Action.SEARCH: "kb_search",
    Action.SYNC: "kb_sync",
    Action.REMOVE: "kb_remove_source with source {source!r}",
    Action.LIST: "kb_list",
    Action.LIST_NOTES: "kb_list with source 'notes'",
    Action.NOTE: "kb_note",
    Action.STATS: "kb_stats",
    Action.STORE: "store (store.url)",
    Action.ORG: "organisation (org)",
    Action.NAME: "another name",
    Action.LIMIT: "a larger limit",
    Action.MODE: "mode auto",
    Action.WORDS_ONLY: "mode fts5",
    Action.DEADLINE: "deadline_ms",
    Action.EF_SEARCH: "search.ef_search",
    Action.INCLUDE_SUPERSEDED: "include_superseded",
    Action.FORCE: "`--force`",
}


def in_words(value: Any) -> Any:
    """Return a text, or JSON with texts in it, in which hints name tools."""
    return worded(value, WORDS)


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
