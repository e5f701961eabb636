"""Every passage is data: a hit that tries to be more, or comes from a source nobody vouches for, says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.text.trust import warnings_about
from concord.types import Answer, Hit, Source

if TYPE_CHECKING:
    from concord.outcomes import Passage

UNTRUSTED = "from a source marked as untrusted"


def with_warnings(answer: Answer) -> Answer:
    """Return the answer with a warning on each hit that needs one; no text is altered."""
    return replace(answer, hits=tuple(_vetted(hit) for hit in answer.hits))


def passage_warnings(passage: Passage) -> tuple[str, ...]:
    """Return the warnings about what `get` read."""
    names = (passage.document.path, passage.document.title)
    return (*_origin(passage.source), *warnings_about(passage.text, *names))


def _vetted(hit: Hit) -> Hit:
    document = hit.document
    found = (
        *_origin(hit.source),
        *warnings_about(hit.chunk.text, document.path, document.title, *document.tags, *hit.chunk.heading),
    )
    return replace(hit, warnings=(*hit.warnings, *found)) if found else hit


def _origin(source: Source) -> tuple[str, ...]:
    return (UNTRUSTED,) if source.trust == "untrusted" else ()
