"""Which network of the bundled model this machine runs, exact or int8: built once, tried once, remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from concord.embed import encoder, model_cache, pack_file, precision
from concord.embed.bundled import MODEL, WINDOW
from concord.embed.encoder import PRECISIONS, Precision
from concord.embed.onnx_file import Graph
from concord.embed.runtime import Blueprint, TextEncoder
from concord.embed.tokenizer import ModelTokenizer
from concord.errors import EmbedderDown

SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"


class Network:
    """The model as the options and the machine have it, opened when it is first asked to embed."""

    def __init__(
        self,
        options: Mapping[str, Any],
        cache_dir: Path,
        tokenizer: ModelTokenizer,
        pack_path: Callable[[], Path],
    ) -> None:
        self._wish = options.get("embed.precision") or "auto"
        self._threads = int(options.get("embed.threads") or 0)
        self._cache_dir = cache_dir
        self._tokenizer = tokenizer
        self._pack_path = pack_path
        self._verdict = cache_dir / f"{MODEL}-trial-{encoder.GRAPH_VERSION}.json"

    def encoder(self) -> TextEncoder:
        """Return what embeds; nothing is loaded yet."""
        return self._text_encoder(self.chosen_model)

    def chosen_model(self) -> Path | bytes:
        """Return the file of the network that runs, made if need be; its bytes where none can be written."""
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
        return model_cache.ensure(home, lambda: build(self._pack_path(), name))

    def _text_encoder(self, model: Callable[[], Path | bytes]) -> TextEncoder:
        blueprint = Blueprint(MODEL, model, WINDOW, is_optimised=True)
        return TextEncoder(blueprint, self._tokenizer, self._threads)


def build(path: Path, name: Precision) -> Graph:
    """Build the graph from the pack, once it is known to be the right one."""
    pack_file.verify(path, SHA256)
    return encoder.build(pack_file.read_pack(path), name)
