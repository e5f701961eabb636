"""Models that run in a server, in the dialect of Ollama or of OpenAI: small batches, vectors looked at.

A batch that fails is halved until the text that it fails for stands alone. Then a harmless word is tried: if
that fails as well, the server is at fault and not the text. A text that is longer than the model reads is cut
in halves, each is embedded, and their mean stands for it, as with the models that run here.
"""

from __future__ import annotations

import math
import re
import threading
from abc import abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from httpx2 import TimeoutException

from concord.core.errors import Action, BadValue, EmbedderDown, Hint, TextsRefused
from concord.core.overriding import override
from concord.core.protocols import Embedder
from concord.embed.http import Refused, Server
from concord.embed.prefixes import prefixes_of
from concord.text.clean import encodable
from concord.types import Identity, Vector

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
_LESS = 4  # after a batch that took too long, batches are smaller by this factor
_TOO_LARGE = 413
# Subword tokenizers cut a long word into pieces and a Chinese or Japanese character into one or two. For each
# token of the bundled model's own tokenizer this counts 0.98 on this project's documentation and 0.90 on its
# source code; a chunk that is cut a little too long for a model is embedded in parts.
_TOKEN = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|[A-Za-z]{1,5}|\d{1,3}|[^\W\d_]{1,2}|[^\w\s]|_|\n\s*|\s{2,}"
)


class _Unfit(Exception):
    """A text has no vector. `is_long` says that a shorter one might."""

    def __init__(self, reason: str, *, is_long: bool = False) -> None:
        super().__init__(reason)
        self.is_long = is_long


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
        with self._asking:
            if not self._dimension:
                self._dimension = self._learned()
        return Identity(self.provider, self._model, self._dimension, self._prefixes.version)

    @override
    def token_starts(self, text: str) -> Sequence[int]:
        return [match.start() for match in _TOKEN.finditer(text)]

    @override
    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        prefixed = [self._prefixes.document + text for text in texts]
        batches = [prefixed[at : at + self._batch] for at in range(0, len(prefixed), self._batch)]
        results = [result for batch in self._at_once(batches) for result in batch]
        refusals = [str(result) for result in results if isinstance(result, _Unfit)]
        vectors = [None if isinstance(result, _Unfit) else result for result in results]
        if refusals:
            raise TextsRefused(
                f"{self._server.name} refuses {len(refusals):,} of {len(texts):,} texts: {refusals[0]}",
                hint=Hint(Action.SYNC, "they are found by words; the next {sync} tries them again"),
                vectors=vectors,
            )
        return [vector for vector in vectors if vector is not None]

    @override
    def embed_query(self, text: str) -> Vector:
        return self._single(self._prefixes.query + text, tries=1)

    @override
    def warm(self) -> None:
        self._single(PROBE, tries=1)

    @override
    def close(self) -> None:
        self._server.close()

    def _at_once(self, batches: Sequence[list[str]]) -> list[list[Vector | _Unfit]]:
        if len(batches) < 2:
            return [self._isolating(batch) for batch in batches]
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="embed")
        try:
            return list(pool.map(self._isolating, batches))
        finally:
            pool.shutdown(cancel_futures=True)  # once one has failed, the others need not begin

    def _isolating(self, texts: Sequence[str]) -> list[Vector | _Unfit]:
        """Return a vector for each text, or why it has none."""
        try:
            return list(self._vectors(texts, TRIES))
        except EmbedderDown as fault:
            if len(texts) == 1 or not isinstance(fault.__cause__, TimeoutException):
                raise
            self._batch = size = max(1, len(texts) // _LESS)
        except _Unfit as fault:
            if len(texts) == 1:
                return [self._alone(texts[0], fault)]
            size = -(-len(texts) // 2)
        parts = (texts[at : at + size] for at in range(0, len(texts), size))
        return [result for part in parts for result in self._isolating(part)]

    def _alone(self, text: str, fault: _Unfit) -> Vector | _Unfit:
        """Return the vector of a text that was refused, if it can be had in parts."""
        try:
            vector = self._in_halves(text, fault, TRIES)
        except _Unfit as other:
            self._single(PROBE, TRIES)  # raises where the server is at fault
            return other
        self.overflowed += 1
        return vector

    def _learned(self) -> int:
        """Return how long vectors are: of two, since one that is broken would be kept as the model's."""
        try:
            return len(self._vectors([PROBE, PROBE], TRIES)[0]) // 4
        except _Unfit as fault:
            raise self._at_fault(fault) from fault

    def _single(self, text: str, tries: int) -> Vector:
        try:
            return self._vector(text, tries)
        except _Unfit as fault:
            raise self._at_fault(fault) from fault

    def _at_fault(self, fault: _Unfit) -> EmbedderDown:
        name, hint = self._server.name, "look at the server's own log"
        return EmbedderDown(f"{name} does not work: {fault}", hint=hint)

    def _vector(self, text: str, tries: int) -> Vector:
        try:
            return self._vectors([text], tries)[0]
        except _Unfit as fault:
            return self._in_halves(text, fault, tries)

    def _in_halves(self, text: str, fault: _Unfit, tries: int) -> Vector:
        """Return the mean of the vectors of the halves of a text that is too long; raise the fault if not."""
        if not fault.is_long or len(text) < 2 * _SHORTEST_HALF:
            raise fault
        middle = len(text) // 2
        middle = text.rfind(" ", middle // 2, middle) + 1 or middle
        halves = [array("f", self._vector(half, tries)) for half in (text[:middle], text[middle:])]
        return unit([sum(pair) for pair in zip(*halves, strict=True)])

    def _vectors(self, texts: Sequence[str], tries: int) -> list[Vector]:
        """Ask for the vectors of texts once, and look at each."""
        self.is_warm = True
        body = self.request([encodable(text) for text in texts])
        try:
            answer = self._server.ask(self.path, body, tries=tries)
        except Refused as fault:
            if fault.status in _NOT_THE_TEXT or 300 <= fault.status < 400:
                raise EmbedderDown(
                    f"{self._server.name} refuses: {fault.reason}", hint=self._advice
                ) from fault
            is_long = fault.status == _TOO_LARGE or bool(_TOO_LONG.search(fault.reason))
            raise _Unfit(fault.reason, is_long=is_long) from fault
        return self._believed(answer, len(texts))

    def _believed(self, answer: Any, count: int) -> list[Vector]:
        try:
            rows = self.numbers(answer)
        except (KeyError, TypeError, IndexError, ValueError, OverflowError) as fault:
            raise _Unfit("the answer holds no embeddings") from fault
        if len(rows) != count:
            raise _Unfit(f"the answer holds {len(rows)} embeddings where {count} are needed")
        vectors = [unit(row) for row in rows]
        expected = self._dimension or len(vectors[0]) // 4
        for size in {len(vector) // 4 for vector in vectors} - {expected}:
            raise _Unfit(f"a vector has {size} dimensions where {expected} are expected")
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
            raise _Unfit(f"the model returned a vector of length {length:g}")
        vector = array("f", [number / length for number in numbers])
    except (TypeError, OverflowError) as fault:  # or a whole number too large for any vector
        raise _Unfit("the model returned what are no numbers") from fault
    return vector.tobytes()
