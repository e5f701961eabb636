"""Models that run in a server, in the dialect of Ollama or of OpenAI: small batches, vectors looked at.

A batch that fails is cut into smaller ones until the text that it fails for stands alone. Then a harmless
word is tried: if that fails as well, the server is at fault and not the text. A text that is longer than the
model reads is cut in halves, and their mean stands for it, as with the models that run here.
"""

from __future__ import annotations

import math
import re
import threading
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from httpx2 import TimeoutException

from concord.core.errors import Action, BadValue, EmbedderDown, Hint, TextsRefused
from concord.core.overriding import override
from concord.core.protocols import Embedder
from concord.embed.http import Refused, Server
from concord.embed.prefixes import prefixes_of
from concord.text.clean import encodable
from concord.types import FLOAT_BYTES, Identity, Vector

if TYPE_CHECKING:
    from concord.core.config import Paths

PROBE = "a"  # a text that no model refuses
# For a request with documents. A query has one try: its user is waiting, and words can answer.
TRIES = 3
# Characters. Where an even shorter text is refused as too long, that is not the true reason.
_SHORTEST_HALF = 16
_NOT_THE_TEXT = (401, 403, 404, 405, 429)  # a key, a model or an address that is wrong, or too many requests
_TOO_LONG = re.compile(
    r"context|too (long|large|many)|exceed|maximum|less than \d+ tokens|input length", re.I
)
_TOO_LARGE = 413
_LESS = 4  # what a batch that fails is divided by
# Subword tokenizers cut a long word into pieces and a Chinese or Japanese character into one or two. For each
# token of the bundled model's own tokenizer this counts 0.98 on this project's documentation and 0.90 on its
# source code; a chunk that is cut a little too long for a model is embedded in parts.
_TOKEN = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|[A-Za-z]{1,5}|\d{1,3}|[^\W\d_]{1,2}|[^\w\s]|_|\n\s*|\s{2,}"
)


class RemoteEmbedder(Embedder):
    """Reads `embed.batch`, `embed.concurrency` and `embed.dimension` (0: not known, the server is asked).

    A dialect fills in what a request and its answer look like.
    """

    provider = path = ""
    max_tokens = 0
    is_warm = False  # once the server has been asked: nothing is loaded here, and it may answer or not

    def __init__(self, model: str, server: Server, options: Mapping[str, Any], advice: str) -> None:
        self._model = model
        self._server = server
        self._advice = advice  # where the server would refuse any text
        self._prefixes = prefixes_of(model)
        self._batch = int(options.get("embed.batch") or 10)
        self._concurrency = int(options.get("embed.concurrency") or 1)
        self._dimension = int(options.get("embed.dimension") or 0)
        self._asking = threading.Lock()
        self.max_tokens = self._prefixes.window
        self.overflowed = 0

    @abstractmethod
    def request(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request for the vectors of texts."""

    @abstractmethod
    def numbers(self, answer: Any) -> list[Any]:
        """Return a list of numbers for each text; any KeyError, TypeError or the like says there are none."""

    @property
    @override
    def identity(self) -> Identity:
        with self._asking, self._insisting():
            # Of two: one that is broken would be kept as the model's.
            size = self._dimension or len(self._vectors([PROBE, PROBE], TRIES)[0]) // FLOAT_BYTES
            self._dimension = size
        return Identity(self.provider, self._model, size, self._prefixes.version)

    @override
    def token_starts(self, text: str) -> Sequence[int]:
        return [match.start() for match in _TOKEN.finditer(text)]

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        prefixed = [self._prefixes.document + text for text in texts]
        batches = [prefixed[at : at + self._batch] for at in range(0, len(prefixed), self._batch)]
        results = [result for batch in self._at_once(batches) for result in batch]
        refusals = [result for result in results if isinstance(result, Refused)]
        if refusals:
            count = f"{len(refusals):,} of {len(texts):,} texts"
            raise TextsRefused(
                f"{self._server.name} refuses {count}: {refusals[0].reason}",
                hint=Hint(Action.SYNC, "they are found by words; the next {sync} tries them again"),
                vectors=[None if isinstance(result, Refused) else result for result in results],
            )
        return [result for result in results if not isinstance(result, Refused)]

    @override
    def embed_query(self, text: str) -> Vector:
        with self._insisting():
            return self._vector(self._prefixes.query + text, tries=1)

    @override
    def warm(self) -> None:
        with self._insisting():
            self._vectors([PROBE], tries=1)

    @override
    def close(self) -> None:
        self._server.close()

    @contextmanager
    def _insisting(self) -> Iterator[None]:
        """Take a refusal for the server's fault."""
        try:
            yield
        except Refused as fault:
            raise EmbedderDown(
                f"{self._server.name} does not work: {fault.reason}", hint="look at the server's own log"
            ) from fault

    def _at_once(self, batches: Sequence[list[str]]) -> list[list[Vector | Refused]]:
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="embed")
        try:
            return list(pool.map(self._isolating, batches))
        finally:
            pool.shutdown(cancel_futures=True)  # once one has failed, the others need not begin

    def _isolating(self, texts: Sequence[str]) -> list[Vector | Refused]:
        if len(texts) == 1:
            return [self._alone(texts[0])]
        size = max(1, len(texts) // _LESS)
        try:
            return [*self._vectors(texts, TRIES)]
        except EmbedderDown as fault:
            if not isinstance(fault.__cause__, TimeoutException):
                raise
            self._batch = size
        except Refused:
            pass
        parts = (texts[at : at + size] for at in range(0, len(texts), size))
        return [result for part in parts for result in self._isolating(part)]

    def _alone(self, text: str) -> Vector | Refused:
        try:
            return self._vector(text, TRIES)
        except Refused as fault:
            with self._insisting():
                self._vectors([PROBE], TRIES)
            return fault

    def _vector(self, text: str, tries: int, *, is_whole: bool = True) -> Vector:
        """Return the vector of a text; of one that is too long, the mean of its halves' vectors."""
        try:
            return self._vectors([text], tries)[0]
        except Refused as fault:
            is_long = fault.status == _TOO_LARGE or _TOO_LONG.search(fault.reason)
            if not (fault.status and is_long) or len(text) < 2 * _SHORTEST_HALF:
                raise
        middle = len(text) // 2
        middle = text.rfind(" ", middle // 2, middle) + 1 or middle
        parts = (text[:middle], text[middle:])
        halves = [array("f", self._vector(part, tries, is_whole=False)) for part in parts]
        self.overflowed += is_whole
        return unit([sum(pair) for pair in zip(*halves, strict=True)])

    def _vectors(self, texts: Sequence[str], tries: int) -> list[Vector]:
        """Ask for the vectors of texts once, and look at each.

        Raises:
            Refused: because of a text; or the answer is none, and the status 0.
        """
        self.is_warm = True
        body = self.request([encodable(text) for text in texts])
        try:
            answer = self._server.ask(self.path, body, tries=tries)
        except Refused as fault:
            if fault.status in _NOT_THE_TEXT or 300 <= fault.status < 400:
                message = f"{self._server.name} refuses: {fault.reason}"
                raise EmbedderDown(message, hint=self._advice) from fault
            raise
        try:
            rows = self.numbers(answer)
        except (KeyError, TypeError, IndexError, ValueError, OverflowError) as fault:
            raise Refused(0, "the answer holds no embeddings") from fault
        if len(rows) != len(texts):
            raise Refused(0, f"the answer holds {len(rows)} embeddings where {len(texts)} are needed")
        vectors = [unit(row) for row in rows]
        expected = self._dimension or len(vectors[0]) // FLOAT_BYTES
        for size in {len(vector) // FLOAT_BYTES for vector in vectors} - {expected}:
            raise Refused(0, f"a vector has {size} dimensions where {expected} are expected")
        return vectors


class OllamaEmbedder(RemoteEmbedder):
    """Reads `embed.model`, `embed.url`, `embed.timeout_s` and `embed.keep_alive` as well."""

    provider, path = "ollama", "/api/embed"

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        server = Server(
            str(options.get("embed.url") or "http://127.0.0.1:11434"),
            name="ollama",
            timeout_s=float(options.get("embed.timeout_s") or 10),
            start="start it: `ollama serve`, or set embed.url to where it is",
        )
        model = str(options.get("embed.model") or "nomic-embed-text").removesuffix(":latest")
        super().__init__(model, server, options, f"is embed.url that of Ollama? If so: `ollama pull {model}`")
        duration = str(options.get("embed.keep_alive") or "30m")
        # A bare number is seconds, and must be a number in JSON too.
        self._keep_alive = int(duration) if duration.lstrip("-").isdecimal() else duration

    @override
    def request(self, texts: Sequence[str]) -> dict[str, Any]:
        # Nothing truncated: what is too long is to be an error, not half a text.
        return {"model": self._model, "input": texts, "truncate": False, "keep_alive": self._keep_alive}

    @override
    def numbers(self, answer: Any) -> list[Any]:
        return list(answer["embeddings"])


class OpenAIEmbedder(RemoteEmbedder):
    """Reads `embed.model`, `embed.url`, `embed.key` and `embed.timeout_s` as well.

    Its servers are llama.cpp, vLLM, LM Studio, and hosted ones.
    """

    provider, path = "openai", "/embeddings"

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        model = str(options.get("embed.model") or "")
        if not model:
            raise BadValue("embed.model must name the server's model", hint="`GET /v1/models` lists them")
        server = Server(
            str(options.get("embed.url") or "http://127.0.0.1:8080/v1"),  # where llama.cpp's server is
            name="the server",
            key=str(options.get("embed.key") or ""),
            timeout_s=float(options.get("embed.timeout_s") or 10),
            start="start it, or set embed.url to where it is",
        )
        advice = "check embed.model, embed.url, which ends in /v1, and embed.key, which is sent nowhere else"
        super().__init__(model, server, options, advice)

    @override
    def request(self, texts: Sequence[str]) -> dict[str, Any]:
        return {"model": self._model, "input": texts, "encoding_format": "float"}

    @override
    def numbers(self, answer: Any) -> list[Any]:
        return [row["embedding"] for row in sorted(answer["data"], key=lambda row: int(row["index"]))]


def unit(numbers: Any) -> Vector:
    """Return numbers as a vector of length 1."""
    try:
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:  # so written, it refuses NaN as well
            raise Refused(0, f"the model returned a vector of length {length:g}")
        return array("f", [number / length for number in numbers]).tobytes()
    except (TypeError, OverflowError) as fault:  # or a whole number too large for any vector
        raise Refused(0, "the model returned what are no numbers") from fault
