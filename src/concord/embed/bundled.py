"""The model that comes with the program: IBM granite-embedding-30m-english, 384 dimensions, no download.

Its networks are graphs in `data/`. The weights that they map are written once for each user and precision,
from the file of the installed package (`embed/pack.py`), whichever process is first; a process that cannot
write them has them in memory. A loaded network is tried before it is used: see `BundledEmbedder`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from concord.core.config import Paths
from concord.core.errors import EmbedderDown
from concord.core.filesystem import replace_file
from concord.embed import pack
from concord.embed.onnx import Card, Encoder, does_not_run
from concord.embed.pack import Precision
from concord.embed.runtime import Session
from concord.embed.tokenizer import ModelTokenizer
from concord.types import Identity

MODEL = "granite-embedding-30m-english"
WINDOW = 512

_DATA = Path(__file__).parent.parent / "data"
SENTENCES = (
    "how does authentication work",
    "Requests carry a bearer token in the Authorization header; it expires after fifteen minutes.",
    "CVE-2024-1234",
    "def area(radius: float) -> float:\n    return 3.14159 * radius ** 2\n",
    "The committee met in Zürich on 12 March 1998 and adopted the proposal by nine votes to two.",
    "Die Zellen wurden bei 37 °C für 24 Stunden inkubiert.",
    "東京は日本の首都です。",
    "| name | value |\n|------|------:|\n| k1   |  0.9  |\n",
)
WORST_COSINE = 0.98  # to the golden vectors: below it, two precisions would no longer be one model
# Instructions for 8-bit products: with VNNI, int8 is 1.6 times as fast as exact. Without them, x86 adds pairs
# of products in 16 bits, three instructions for one; and pairs overflow, which costs a thousandth of cosine.
_INT8_FLAGS = {"avx512_vnni", "avx_vnni", "asimddp"}


class Shipped(NamedTuple):
    """A model whose graphs are in `data/`, and whose weights are made of an installed package's file."""

    model: str
    version: int  # of the graphs and their weights: raise it when scripts/build_model.py writes others
    sizes: Mapping[Precision, int]  # of the files of weights
    read: Callable[[], pack.Pack]

    @property
    def golden(self) -> Path:
        """The file of the exact vectors of SENTENCES."""
        return _DATA / f"{self.model}-golden.bin"

    def graph_path(self, precision: Precision) -> Path:
        """Return the ONNX graph of a precision, which is without its weights."""
        return _DATA / f"{self.model}-{precision}.onnx"

    def weights_file(self, precision: Precision) -> str:
        """Return the name of the file of weights that the graph of a precision maps."""
        return f"{self.model}-{precision}-{self.version}.bin"


@cache
def bundled_tokenizer() -> ModelTokenizer:
    """Return the one tokenizer of this process, by which budgets are counted as well."""
    return ModelTokenizer(lambda: pack.read_tokenizer(pack.pack_path()))


class BundledEmbedder(Encoder):
    """Reads `embed.threads` (0: one for each core) and `embed.precision` (auto, exact or int8).

    Both precisions have one identity: their vectors differ by less (cosine 0.998) than those of one text and
    the same text with a comma more. So an index may be moved between machines that chose differently.
    """

    identity = Identity(provider="bundled", model=MODEL, dimension=384, prefix_version="")
    max_tokens = WINDOW - 2  # the special tokens around a text
    shipped = Shipped(
        MODEL,
        1,
        {"exact": 64_017_920, "int8": 32_462_336},
        lambda: pack.read_pack(pack.pack_path()),
    )
    card = Card(MODEL, WINDOW)

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        self._wish = options.get("embed.precision") or "auto"
        self._threads = int(options.get("embed.threads") or 0)
        self._folder = Path(paths.user_cache or paths.cache)
        super().__init__(self.card, self.new_tokenizer(), self._chosen_session)

    def new_tokenizer(self) -> ModelTokenizer:
        """Return the model's tokenizer, which is loaded when it is first needed."""
        return bundled_tokenizer()

    @staticmethod
    def count_tokens(text: str) -> int:
        """Return how many tokens a text has; no network is loaded for that."""
        return len(bundled_tokenizer().starts(text))

    def check(self) -> None:
        """Compare what the model returns here with the vectors that were made when it was built."""
        self.warm()
        if not self._is_right(None, SENTENCES):
            raise self._wrong("set embed.precision to exact; if that does not help, install onnxruntime anew")

    def _chosen_session(self) -> Session:
        """Return a network that was seen to be right, even if only with weights just written.

        Kernels differ from processor to processor, and a file may be damaged: a sentence tells at every load,
        in the time of a short query.
        """
        wanted: tuple[Precision, ...] = ("int8",) if self._wish == "int8" else ("exact",)
        if self._wish == "auto" and has_fast_int8():
            wanted = ("int8", "exact")
        for precision, is_anew in product(wanted, (False, True)):
            session = self._open(precision, is_anew=is_anew)
            if self._is_right(session, SENTENCES[:1]):
                return session
        raise self._wrong("set embed.precision to auto or exact, or install onnxruntime anew")

    def _open(self, precision: Precision, *, is_anew: bool) -> Session:
        if self._keep(precision, is_anew=is_anew):
            source: dict[str, Any] = {"folder": str(self._folder)}
        else:
            source = {"weights": dict(pack.weights(self.shipped.read(), precision))}
        graph, name = self.shipped.graph_path(precision).read_bytes(), self.shipped.model
        return Session(name, graph, self._threads, does_not_run(name), is_fused=True, **source)

    def _keep(self, precision: Precision, *, is_anew: bool) -> bool:
        """Whether the weights are in the user's cache, written now if they are not, or are not right."""
        path, size = self._folder / self.shipped.weights_file(precision), self.shipped.sizes[precision]
        if not is_anew and path.is_file() and path.stat().st_size == size:  # what is shorter is not mapped
            return True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, pack.packed(self.shipped.read(), precision))
        except OSError:  # read-only, full, no home: all the same to us
            return False
        return True

    def _is_right(self, session: Session | None, sentences: Sequence[str]) -> bool:
        import numpy as np

        golden = np.fromfile(self.shipped.golden, "<f4").reshape(len(SENTENCES), -1)[: len(sentences)]
        try:
            vectors = b"".join(self._embed(sentences, session))
        except EmbedderDown:  # what it returns is no vector
            return False
        cosines = (np.frombuffer(vectors, "<f4").reshape(golden.shape) * golden).sum(axis=1)
        return bool(cosines.min() > WORST_COSINE)

    def _wrong(self, hint: str) -> EmbedderDown:
        which = f"the model {self.shipped.model}"
        return EmbedderDown(f"{which} does not return its own vectors on this machine", hint=hint)


def has_fast_int8(cpu_info: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor has instructions for 8-bit products; where nobody can tell, it has none."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"  # each of these has them
    try:
        with cpu_info.open(encoding="utf-8", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        return False
    return not _INT8_FLAGS.isdisjoint(flags.split())
