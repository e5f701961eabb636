"""Every passage is data: a hit that tries to be more, or comes from a source nobody vouches for, says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.text.trust import warnings_about, warnings_about_each
from concord.types import Answer, Hit, Source

if TYPE_CHECKING:
    from concord.outcomes import Passage

UNTRUSTED = "from a source marked as untrusted"


def with_warnings(answer: Answer) -> Answer:
    """Return the answer with a warning on each hit that needs one; no text is altered."""
    found = warnings_about_each([_written(hit) for hit in answer.hits])
    return replace(answer, hits=tuple(map(_vetted, answer.hits, found)))


def passage_warnings(passage: Passage) -> tuple[str, ...]:
    """Return the warnings about what `get` read."""
    names = (passage.document.path, passage.document.title)
    return (*_origin(passage.source), *warnings_about(passage.text, *names))


def _written(hit: Hit) -> str:
    """Return all of a hit that somebody else wrote."""
    document = hit.document
    return "\n".join((hit.chunk.text, document.path, document.title, *document.tags, *hit.chunk.heading))


def _vetted(hit: Hit, found: tuple[str, ...]) -> Hit:
    found = (*_origin(hit.source), *found)
    return replace(hit, warnings=(*hit.warnings, *found)) if found else hit


def _origin(source: Source) -> tuple[str, ...]:
    return (UNTRUSTED,) if source.trust == "untrusted" else ()
