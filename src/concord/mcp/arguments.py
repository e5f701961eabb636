"""What each tool takes: names, types and limits, in words for a model to read. Anything else is refused."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from concord.types import DocumentType, Json, Mode

MAX_TEXT = 10_000  # characters of a query or a name: whoever sends more has pasted a document
MAX_NOTE = 1_000_000
MIN_TOKENS = 500  # one result with its citation, in the frame that every answer has
MAX_TOKENS = 25_000  # where clients cut what a tool says
DEFAULT_TOKENS = 2_400  # an answer that nobody asked to be longer stays under 2,500


def _without_nulls(given: Any) -> Any:
    """Return the arguments that are not null: many models write null for what they leave out."""
    return (
        {key: value for key, value in given.items() if value is not None}
        if isinstance(given, dict)
        else given
    )


def _as_list(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


Texts = Annotated[list[str], BeforeValidator(_as_list)]
FilledTexts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_as_list)]


class Arguments(ArgModelBase):
    """The arguments of one tool; an unknown one is an error, because a model that invents one is mistaken."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    _given = model_validator(mode="before")(_without_nulls)


class SearchArguments(Arguments):
    """What `kb_search` takes."""

    query: str = Field(
        min_length=1,
        max_length=MAX_TEXT,
        description='A question, keywords or a "quoted phrase". AND, OR, NOT, -word and prefix* work.',
    )
    mode: Mode = Field(
        default="auto",
        description="auto weighs words and meaning by the query; fts5 is words only, semantic meaning only.",
    )
    limit: int = Field(default=10, ge=1, le=50, description="At most so many results.")
    tags: FilledTexts = Field(default=[], description="Only documents that have all of these tags.")
    type: DocumentType | None = Field(default=None, description="Only documents of this type.")
    source: str | None = Field(
        default=None, max_length=MAX_TEXT, description="Only this source (see kb_list)."
    )
    path: str | None = Field(
        default=None,
        max_length=MAX_TEXT,
        description="Only this file, folder or glob: docs/auth.md, docs/ or docs/**/*.md.",
    )
    since: str | None = Field(
        default=None,
        max_length=MAX_TEXT,
        description="Only files changed since then: 2026-01-31, or 7d for the last week (h, d, w, y). "
        "A date mentioned in a text belongs in the query.",
    )
    until: str | None = Field(
        default=None, max_length=MAX_TEXT, description="Only files not changed after that, as since."
    )
    deadline_ms: float | None = Field(
        default=None, gt=0, le=10_000, description="Answer within this time with what has been found."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=MIN_TOKENS,
        le=MAX_TOKENS,
        description=f"The answer is never longer than this; default {DEFAULT_TOKENS}.",
    )
    include_superseded: bool = Field(
        default=False, description="Also search documents that a newer one supersedes."
    )
    min_generation: int | None = Field(
        default=None,
        ge=0,
        description="Wait until the index has this generation (of kb_sync, kb_note); 'note' says if not.",
    )


class GetArguments(Arguments):
    """What `kb_get` takes."""

    citation: str | None = Field(
        default=None,
        max_length=MAX_TEXT,
        description="A citation from kb_search (docs/auth.md:12-31, report.pdf:p3), or a path for all of it.",
    )
    document_id: str | None = Field(default=None, max_length=MAX_TEXT, description="Instead: a document_id.")
    context: int = Field(default=0, ge=0, le=50, description="So many neighbouring passages either side.")
    max_tokens: int | None = Field(
        default=None,
        ge=MIN_TOKENS,
        le=MAX_TOKENS,
        description=f"The page is never longer than this; default {DEFAULT_TOKENS}.",
    )
    cursor: str | None = Field(
        default=None, max_length=MAX_TEXT, description="next_cursor of the last page, to read on."
    )


class AddArguments(Arguments):
    """What `kb_add_source` takes."""

    path: str = Field(min_length=1, max_length=MAX_TEXT, description="A folder or file on the server's disk.")
    name: str | None = Field(
        default=None, min_length=1, max_length=200, description="What to call it; default: its folder's name."
    )
    patterns: FilledTexts = Field(
        default=[], description="Only files that match one of these globs: **/*.md."
    )
    tags: FilledTexts = Field(default=[], description="Tags for all of its documents.")


class ListArguments(Arguments):
    """What `kb_list` takes."""

    source: str | None = Field(
        default=None, max_length=MAX_TEXT, description="List this source's documents instead of the sources."
    )
    cursor: str | None = Field(
        default=None, max_length=MAX_TEXT, description="next_cursor of the last page, to read on."
    )


class SyncArguments(Arguments):
    """What `kb_sync` takes."""

    source: str | None = Field(default=None, max_length=MAX_TEXT, description="Only this one; default: all.")


class RemoveArguments(Arguments):
    """What `kb_remove_source` takes."""

    source: str = Field(min_length=1, max_length=MAX_TEXT, description="The source's name (see kb_list).")


class StatsArguments(Arguments):
    """What `kb_stats` takes: nothing."""


class NoteFields(BaseModel):
    """What may be said about a note beside its content; all of it is searchable."""

    model_config = ConfigDict(extra="forbid")

    _given = model_validator(mode="before")(_without_nulls)

    summary: str | None = Field(default=None, max_length=MAX_TEXT)
    context: str | None = Field(default=None, max_length=MAX_TEXT)
    highlights: Texts = Field(default=[])
    aliases: Texts = Field(default=[])


class NoteArguments(Arguments):
    """What `kb_note` takes."""

    content: str = Field(min_length=1, max_length=MAX_NOTE, description="What to remember; Markdown is fine.")
    title: str | None = Field(default=None, max_length=500, description="Default: its first words.")
    tags: Texts = Field(default=[], description="Tags to find it by.")
    details: dict[str, Json] = Field(default={}, description="Further facts, as deep as needed.")
    fields: NoteFields | None = Field(default=None, description="Summary, context, highlights and aliases.")
    supersedes: str | None = Field(
        default=None,
        max_length=MAX_TEXT,
        description="The note or document that this replaces: a citation, a path or a document_id.",
    )


def input_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what only costs a model tokens."""
    schema = arguments.model_json_schema()
    parts = schema.pop("$defs", {})
    lean: dict[str, Any] = _lean(schema, parts)
    return {key: value for key, value in lean.items() if key != "description"}


def _lean(node: Any, parts: dict[str, Any]) -> Any:
    """Drop generated titles, inline references, and write "X or null" as X: an argument may be left out."""
    if isinstance(node, list):
        return [_lean(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**parts[node["$ref"].rpartition("/")[2]], **node}
    if "anyOf" in node:
        (only,) = (option for option in node["anyOf"] if option != {"type": "null"})
        return _lean({**only, **{key: value for key, value in node.items() if key != "anyOf"}}, parts)
    return {key: _lean(value, parts) for key, value in node.items() if not _is_noise(key, value)}


def _is_noise(key: str, value: Any) -> bool:
    return (
        key == "$ref" or (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
    )
