"""An embedder that answers about documents and never about a query: a model server that hangs."""

from __future__ import annotations

import threading

from concord.embed.hashing import HashingEmbedder
from concord.types import Vector

QUERIES_COME_BACK = threading.Event()  # nobody sets it but a test that is done


class HungEmbedder(HashingEmbedder):
    """Embeds documents by hashing; a query waits."""

    def embed_documents(self, texts):
        """Return one vector a text, in order."""
        return [super(HungEmbedder, self).embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """Wait, for ever if need be."""
        QUERIES_COME_BACK.wait()
        return super().embed_query(text)
