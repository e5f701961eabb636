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


class Prefixes(NamedTuple):
    """What a model expects before queries and documents, and its window."""

    query: str = ""
    document: str = ""
    window: int = 512  # tokens

    @property
    def version(self) -> str:
        """A short name for the prefixes, for the identity of vectors made with them; empty without any."""
        prefixes = self.query, self.document
        return hashlib.sha256(repr(prefixes).encode()).hexdigest()[:8] if any(prefixes) else ""


# The first that a name begins with, from the most special to the most general.
_KNOWN: tuple[tuple[str, Prefixes], ...] = (
    ("nomic-embed-text", Prefixes("search_query: ", "search_document: ", 2048)),
    ("mxbai-embed-large", Prefixes(_SENTENCE, "", 512)),
    ("snowflake-arctic-embed2", Prefixes("query: ", "", 8192)),
    ("snowflake-arctic-embed", Prefixes(_SENTENCE, "", 512)),
    ("bge-m3", Prefixes("", "", 8192)),
    ("bge-", Prefixes(_SENTENCE, "", 512)),
    ("multilingual-e5", Prefixes("query: ", "passage: ", 512)),
    ("e5-", Prefixes("query: ", "passage: ", 512)),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ", 2048)),
    ("qwen3-embedding", Prefixes(_INSTRUCTION, "", 32_768)),
    ("all-minilm", Prefixes("", "", 256)),
    ("text-embedding-3-", Prefixes("", "", 8191)),
)
_DECORATION = re.compile(r"^.*/|:.*$")  # who published it, and which tag of it


def prefixes_of(model: str) -> Prefixes:
    """Return what a model expects, by its name; an unknown one gets texts as they are."""
    name = _DECORATION.sub("", model.casefold())
    return next((prefixes for beginning, prefixes in _KNOWN if name.startswith(beginning)), Prefixes())
