"""Every passage is data: one that tries to be more, or comes from a source nobody vouches for, says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from concord.search.present import origin_warnings
from concord.text.trust import warnings_about

if TYPE_CHECKING:
    from concord.outcomes import Passage


def passage_warnings(passage: Passage) -> tuple[str, ...]:
    """Return the warnings about what `get` read."""
    names = (passage.document.path, passage.document.title)
    return (*origin_warnings(passage.source), *warnings_about(passage.text, *names))
