"""A match in FTS5's query language: the one place where its quoting and its limits are known."""

from __future__ import annotations

from concord.backends.matches import kept_and_dropped, wanted
from concord.text.tokens import separated
from concord.types import AllOf, Match, Phrase, Without, Word

# FTS5's parser gives up at about 30 nested brackets. Nothing that a person types comes near.
_MAX_DEPTH = 16


def to_match(match: Match) -> str | None:
    """Return a MATCH string that FTS5 can parse, whatever the words; None when there is nothing to find."""
    return _render(match, _MAX_DEPTH)


def _render(match: Match, depth: int) -> str | None:
    if isinstance(match, Word | Phrase):
        return _quoted(match)
    if depth == 0:
        return _joined(wanted(match), " OR ", 1)
    if isinstance(match, Without):
        return _without(match, depth)
    return _joined(match.parts, " AND " if isinstance(match, AllOf) else " OR ", depth)


def _quoted(leaf: Word | Phrase) -> str | None:
    # Inside quotes FTS5 reads every operator as text. A text without a token would match no row at all.
    if not separated(leaf.text):
        return None
    text = leaf.text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").replace('"', '""')
    return f'"{text}"*' if isinstance(leaf, Word) and leaf.prefix else f'"{text}"'


def _joined(parts: tuple[Match, ...], operator: str, depth: int) -> str | None:
    rendered = [text for part in parts if (text := _render(part, depth - 1)) is not None]
    return f"({operator.join(rendered)})" if len(rendered) > 1 else rendered[0] if rendered else None


def _without(match: Without, depth: int) -> str | None:
    keep, dropped = kept_and_dropped(match)
    kept, drop = _render(keep, depth - 1), _joined(dropped, " OR ", depth)
    return f"({kept} NOT {drop})" if kept and drop else kept
