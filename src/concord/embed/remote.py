"""An embedder whose model runs in a server: small batches go out, and vectors are looked at before use.

A batch that fails is halved until the text that it fails for stands alone. Then a harmless word is tried: if
that fails as well, the server is at fault and not the text. A text that is longer than the model reads is cut
in halves, each is embedded, and their mean stands for it, as with the models that run here.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from concord.embed import estimate
from concord.embed.http import Refused, Server
from concord.embed.prefixes import Manners, manners_of
from concord.errors import EmbedderDown, TextsRefused
from concord.text.clean import encodable
from concord.types import Identity, Vector

PROBE = "a"  # a text that no model refuses
# For a request with documents. A query has one try: its user is waiting, and words can answer.
TRIES = 3
# Characters. Where an even shorter text is refused as too long, that is not the true reason.
_SHORTEST_HALF = 16
_LESS = 4  # after a batch that took too long, batches are smaller by this factor
_NOT_THE_TEXT = (401, 403, 404, 405, 429)  # a key, a model or an address that is wrong, or too many requests
_TOO_LONG = re.compile(
    r"context|too (long|large|many)|exceed|maximum|less than \d+ tokens|input length", re.I
)
_TOO_LARGE = 413


class Dialect(NamedTuple):
    """The requests and answers of one kind of server."""

    provider: str
    path: str
    request: Callable[[str, Sequence[str]], dict[str, Any]]  # model and texts → body
    numbers: Callable[[Any], list[Any]]  # answer → a list of numbers a text
    absent: Callable[[Server, str, Refused], EmbedderDown]  # why a request for this model was not understood


class _Unfit(Exception):
    """A text has no vector. `is_long` says that a shorter one might."""

    def __init__(self, reason: str, *, is_long: bool = False) -> None:
        super().__init__(reason)
        self.is_long = is_long


class RemoteEmbedder:
    """Reads `embed.batch`, `embed.concurrency` and `embed.dimension` (0: not known, the server is asked)."""

    def __init__(self, dialect: Dialect, model: str, server: Server, options: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._model = model
        self._server = server
        self._manners: Manners = manners_of(model)
        self._batch = int(options.get("embed.batch") or 10)
        self._concurrency = int(options.get("embed.concurrency") or 1)
        self._dimension = int(options.get("embed.dimension") or 0)
        self._asking = threading.Lock()
        self._has_been_asked = False
        self.max_tokens = self._manners.window
        self.overflowed = 0

    @property
    def identity(self) -> Identity:
        """Who made the vectors; the first time, where nobody remembers their dimension, the server is asked.

        Raises:
            EmbedderDown: it does not answer.
        """
        with self._asking:
            if not self._dimension:
                self._dimension = len(self._one(PROBE, tries=TRIES)) // 4
        return Identity(self._dialect.provider, self._model, self._dimension, self._manners.version)

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the offset at which each token may begin: the model's own tokenizer is not here."""
        return estimate.token_starts(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order.

        Raises:
            TextsRefused: the server refuses some of them; the vectors of the others come with it.
            EmbedderDown: it does not answer or answers nonsense.
        """
        prefixed = [self._manners.document + text for text in texts]
        batches = [prefixed[at : at + self._batch] for at in range(0, len(prefixed), self._batch)]
        results = [result for several in self._at_once(batches) for result in several]
        refusals = [str(result) for result in results if isinstance(result, _Unfit)]
        vectors = [None if isinstance(result, _Unfit) else result for result in results]
        if refusals:
            raise TextsRefused(
                f"{self._server.name} refuses {len(refusals):,} of {len(texts):,} texts: {refusals[0]}",
                hint="they are found by words; the next `kb sync` tries them again",
                vectors=vectors,
            )
        return [vector for vector in vectors if vector is not None]

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; a text longer than the window is averaged over its parts."""
        return self._one(self._manners.query + text, tries=1)

    def warm(self) -> None:
        """Let the server load its model now."""
        self._one(PROBE, tries=1)

    @property
    def is_warm(self) -> bool:
        """Whether the server has been asked yet: nothing is loaded here, and it may answer or not."""
        return self._has_been_asked

    def close(self) -> None:
        """Close the connections."""
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
            if len(texts) == 1 or not isinstance(fault.__cause__, TimeoutError):
                raise
            return self._unhurried(texts)
        except _Unfit as fault:
            if len(texts) == 1:
                return [self._alone(texts[0], fault)]
        half = len(texts) // 2
        return self._isolating(texts[:half]) + self._isolating(texts[half:])

    def _unhurried(self, texts: Sequence[str]) -> list[Vector | _Unfit]:
        """Ask for less at a time, from now on; a server that cannot do one text in time is down."""
        first = self._isolating(texts[:1])
        self._batch = size = max(1, min(self._batch, len(texts)) // _LESS)
        rest = [texts[at : at + size] for at in range(1, len(texts), size)]
        return first + [result for few in rest for result in self._isolating(few)]

    def _alone(self, text: str, fault: _Unfit) -> Vector | _Unfit:
        if fault.is_long and len(text) >= 2 * _SHORTEST_HALF:
            try:
                vector = self._halved(text, TRIES)
            except _Unfit as other:
                return other
            self.overflowed += 1
            return vector
        try:
            self._vectors([PROBE], TRIES)
        except _Unfit as worse:
            raise EmbedderDown(f"{self._server.name} does not work: {worse}", hint=_CHECK) from fault
        return fault

    def _one(self, text: str, tries: int) -> Vector:
        try:
            return self._vectors([text], tries)[0]
        except _Unfit as fault:
            if not fault.is_long or len(text) < 2 * _SHORTEST_HALF:
                raise EmbedderDown(f"{self._server.name} does not work: {fault}", hint=_CHECK) from fault
        try:
            return self._halved(text, tries)
        except _Unfit as fault:
            raise EmbedderDown(f"{self._server.name} does not work: {fault}", hint=_CHECK) from fault

    def _halved(self, text: str, tries: int) -> Vector:
        """Return the mean of what the two halves of a text come to; each may be too long as well."""
        middle = len(text) // 2
        middle = text.rfind(" ", middle // 2, middle) + 1 or middle
        parts: list[Vector] = []
        for half in (text[:middle], text[middle:]):
            try:
                parts += self._vectors([half], tries)
            except _Unfit as fault:
                if not fault.is_long or len(half) < 2 * _SHORTEST_HALF:
                    raise
                parts.append(self._halved(half, tries))
        return unit([sum(pair) for pair in zip(*map(_floats, parts), strict=True)])

    def _vectors(self, texts: Sequence[str], tries: int) -> list[Vector]:
        """Ask for the vectors of texts once, and look at each.

        Raises:
            _Unfit: at least one of the texts has none.
            EmbedderDown: whatever the texts were, there would be none.
        """
        self._has_been_asked = True
        sendable = [encodable(text) for text in texts]
        try:
            answer = self._server.ask(
                self._dialect.path, self._dialect.request(self._model, sendable), tries=tries
            )
        except Refused as fault:
            if fault.status in _NOT_THE_TEXT or 300 <= fault.status < 400:
                raise self._dialect.absent(self._server, self._model, fault) from fault
            is_long = fault.status == _TOO_LARGE or bool(_TOO_LONG.search(fault.reason))
            raise _Unfit(fault.reason, is_long=is_long) from fault
        return self._believed(answer, len(texts))

    def _believed(self, answer: Any, count: int) -> list[Vector]:
        try:
            rows = self._dialect.numbers(answer)
        except (KeyError, TypeError, IndexError, ValueError) as fault:
            raise _Unfit("the answer holds no embeddings") from fault
        if len(rows) != count:
            raise _Unfit(f"the answer holds {len(rows)} embeddings where {count} are needed")
        vectors = [unit(row) for row in rows]
        for found in {len(vector) // 4 for vector in vectors} - {self._dimension or len(vectors[0]) // 4}:
            raise _Unfit(f"a vector has {found} dimensions where {self._dimension} are expected")
        return vectors


def unit(numbers: Any) -> Vector:
    """Return numbers as a vector of length 1.

    Raises:
        _Unfit: they are none, or not all of them are numbers, or they point nowhere.
    """
    try:
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:  # so written, it refuses NaN as well
            raise _Unfit(f"the model returned a vector of length {length:g}")
        vector = array("f", [number / length for number in numbers])
    except TypeError as fault:
        raise _Unfit("the model returned what are no numbers") from fault
    if sys.byteorder == "big":
        vector.byteswap()
    return vector.tobytes()


def _floats(vector: Vector) -> array[float]:
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats


_CHECK = "look at the server's own log"
