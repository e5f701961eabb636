"""Which words a model expects before queries and documents, and how much it reads at once, by its name.

A model that was trained with such words does worse without them, and any other does worse with them: an
unknown model gets none. Windows are what the makers state, or what Ollama runs them with.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

_SENTENCE = "Represent this sentence for searching relevant passages: "
_INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "


class Manners(NamedTuple):
    """What a model expects: prefixes of queries and documents, and its window."""

    query: str = ""
    document: str = ""
    window: int = 512  # tokens

    @property
    def version(self) -> str:
        """A name for the prefixes, for the identity of the vectors made with them."""
        return prefix_version(self.query, self.document)


# The first that a name begins with, from the most special to the most general.
_KNOWN: tuple[tuple[str, Manners], ...] = (
    ("nomic-embed-text", Manners("search_query: ", "search_document: ", 2048)),
    ("mxbai-embed-large", Manners(_SENTENCE, "", 512)),
    ("snowflake-arctic-embed2", Manners("query: ", "", 8192)),
    ("snowflake-arctic-embed", Manners(_SENTENCE, "", 512)),
    ("bge-m3", Manners("", "", 8192)),
    ("bge-", Manners(_SENTENCE, "", 512)),
    ("multilingual-e5", Manners("query: ", "passage: ", 512)),
    ("e5-", Manners("query: ", "passage: ", 512)),
    ("embeddinggemma", Manners("task: search result | query: ", "title: none | text: ", 2048)),
    ("qwen3-embedding", Manners(_INSTRUCTION, "", 32_768)),
    ("all-minilm", Manners("", "", 256)),
    ("text-embedding-3-", Manners("", "", 8191)),
)
_DECORATION = re.compile(r"^.*/|:.*$")  # who published it, and which tag of it


def manners_of(model: str) -> Manners:
    """Return what a model expects, by its name; an unknown one gets texts as they are."""
    name = _DECORATION.sub("", model.casefold())
    return next((manners for begins, manners in _KNOWN if name.startswith(begins)), Manners())


def prefix_version(query: str, document: str) -> str:
    """Return a short name for a pair of prefixes; empty when there are none."""
    prefixes = query, document
    return hashlib.sha256(repr(prefixes).encode()).hexdigest()[:8] if any(prefixes) else ""
