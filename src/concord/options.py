"""Does a dash in a query belong to an option, such as `tar -xzf`, or does it exclude a word?

An option is what some passage writes after the same word, dash and all. Numbers and single letters are never
excluded, which `text.expression` knows by itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from concord.text.parse import Dashed
from concord.text.terms import phrase_match
from concord.types import Filter

if TYPE_CHECKING:
    from concord.protocols import Store

LOOKED_AT = 10  # passages that hold both words side by side


def is_option(dashed: Dashed, store: Store) -> bool:
    """Whether a passage writes a word with its dash as the query does."""
    match = phrase_match(f"{dashed.before} {dashed.word}")
    if match is None:
        return False
    found = store.lexical.search(match, Filter(include_superseded=True), LOOKED_AT)
    written = re.compile(rf"{re.escape(dashed.before)}\s+-{re.escape(dashed.word)}(?!\w)", re.IGNORECASE)
    texts = (chunk.text for chunk, _ in store.catalog.read([one.chunk_id for one in found]).values())
    return any(map(written.search, texts))
