"""A retriever for LangChain: `pip install 'concord-kb[langchain]'`.

>>> retriever = ConcordRetriever(kb=KnowledgeBase.open(), top=5, options={"source": "handbook"})
>>> retriever.invoke("how long is a session token valid?")[0].metadata["citation"]
"""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from concord.clients.passages import passages


class ConcordRetriever(BaseRetriever):
    """Finds passages; a document's metadata has its citation, its score and `answerable`."""

    kb: Any  # a KnowledgeBase, or a server: Concord(url, token=…)
    top: int = 10
    options: dict[str, Any] = {}  # of KnowledgeBase.search: source, path, tags, mode, …

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = passages(self.kb, query, self.top, self.options)
        return [Document(text, id=known["chunk_id"], metadata=known) for text, known in found]
