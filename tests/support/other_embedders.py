"""Models to switch to: each is the hashing embedder under another name, in a space that nothing else fits."""

from __future__ import annotations

from array import array

from msgspec.structs import replace

from concord.embed.hashing import HashingEmbedder
from concord.types import Vector


class Turned(HashingEmbedder):
    """As good as the hashing embedder and of the same dimension, but its vectors are turned round.

    What one of them calls nearest the other calls farthest: a query that met the wrong vectors would show.
    """

    identity = replace(HashingEmbedder.identity, model="turned")

    def embed_query(self, text: str) -> Vector:
        """Return the opposite vector."""
        return array("f", [-number for number in array("f", super().embed_query(text))]).tobytes()


TABLE = {"turned": "support.other_embedders:Turned"}
