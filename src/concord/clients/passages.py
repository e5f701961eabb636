"""What retrievers of other libraries give their callers: passages with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concord.core.arguments import MAX_TOKENS

# Of each passage; `answer` and `answerable` are of the search as a whole.
KNOWN = (
    "citation", "title", "heading", "path", "file", "page", "source", "type", "tags", "score",
    "passage_score", "confidence", "found_by", "freshness", "warnings", "document_id", "chunk_id",
)  # fmt: skip
OF_ALL = ("answerable", "confidence_score", "answer", "generation")


Passage = tuple[str, dict[str, Any]]  # its text, and what is known of it


def passages(kb: Any, query: str, top: int, options: Mapping[str, Any]) -> Iterator[Passage]:
    """Search a `KnowledgeBase`, or a server's `Concord`.

    A result far down has its snippet for a text, where the whole passages are longer than models read.
    """
    found = kb.search(query, top=top, max_tokens=MAX_TOKENS, **options)
    if not isinstance(found, dict):
        from concord.wire import answer_to_json

        found = answer_to_json(found, max_tokens=MAX_TOKENS)
    whole = {name: found[name] for name in OF_ALL}
    whole["answer"] = found["answer"] and found["answer"]["text"]
    for result in found["results"]:
        yield result["text"] or result["snippet"], {**{name: result[name] for name in KNOWN}, **whole}
