"""A retriever for LlamaIndex: `pip install 'concord-kb[llamaindex]'`.

>>> retriever = ConcordRetriever(KnowledgeBase.open(), top=5, source="handbook")
>>> retriever.retrieve("how long is a session token valid?")[0].metadata["citation"]
"""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from concord.clients.passages import passages

FOR_MODELS = ("citation", "title", "heading", "answerable")  # of the metadata: what a prompt is worth


class ConcordRetriever(BaseRetriever):
    """Finds passages; a node's metadata has its citation, its score and `answerable`."""

    def __init__(self, kb: Any, top: int = 10, **options: Any) -> None:
        """Search a KnowledgeBase, or a server's Concord; options are those of `KnowledgeBase.search`."""
        self._kb, self._top, self._options = kb, top, options
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = passages(self._kb, query_bundle.query_str, self._top, self._options)
        return [NodeWithScore(node=_node(text, known), score=known["score"]) for text, known in found]


def _node(text: str, known: dict[str, Any]) -> TextNode:
    hidden = [name for name in known if name not in FOR_MODELS]
    return TextNode(
        text=text,
        id_=known["chunk_id"],
        metadata=known,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
