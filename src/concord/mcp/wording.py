"""Notes and hints that name commands, reworded for a model that has only tools.

Commands that no tool stands for are left as they are: they are for a person to run.
"""

from __future__ import annotations

import re

_TOOLS = {
    "add": "kb_add_source",
    "get": "kb_get",
    "list": "kb_list",
    "note": "kb_note",
    "search": "kb_search",
    "stats": "kb_stats",
    "sync": "kb_sync",
}
_COMMAND = re.compile(rf"`kb ({'|'.join(_TOOLS)})(?: [A-Z]+)?`")  # with a placeholder at most
_REMOVE = re.compile(r"`kb remove ([^`]+?)(?<! --force)`")
_PHRASES = {
    ", or search one with `--in PATH`": "",
    "`kb add PATH --pattern '**'`": "kb_add_source with patterns ['**']",
    "--include-superseded": "include_superseded",
    "--deadline-ms": "deadline_ms",
    "(--mode auto)": "(mode auto)",
    "a larger --top": "a larger limit",
    "another --name": "another name",
}


def for_tools(said: str) -> str:
    """Return a note, a reason or a hint with tools and arguments in place of commands and options."""
    for phrase, instead in _PHRASES.items():
        said = said.replace(phrase, instead)
    said = _REMOVE.sub(lambda command: f"kb_remove_source with source {command[1]!r}", said)
    return _COMMAND.sub(lambda command: _TOOLS[command[1]], said)
