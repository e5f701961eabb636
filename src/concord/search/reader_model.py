"""The reader's network: question and passage in, how far the passage answers and with which words out.

It ships with the program (`data/reader/`), reads English alone, and is loaded once for all knowledge bases of
a process. `training/` tells how it was made.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.core.errors import Action, Hint, Unavailable
from concord.embed.runtime import INPUTS, Session, native_code, physical_cores, runtime
from concord.text.clean import encodable
from concord.text.tokens import pattern
from concord.types import Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

DATA = Path(__file__).parent.parent / "data" / "reader"
WINDOW, QUESTION, HEADER = 256, 48, 40  # tokens: of all, at most of the question, and of title and headings
LONGEST = 30  # tokens of an answer
MOST_THREADS = 4  # more only wait for each other in a network this small
OUTPUTS = ("answerable", "start", "end")
CLS, SEP = 101, 102
STRIDES = 2  # windows of a long text begin every half window
LEAST_WORDS, TELLING_LETTERS = 4, 4  # by which a language can be recognised; fewer, or shorter, are in many
_WORD = pattern(r"[^\W\d_]+")


class Text(NamedTuple):
    """A passage: what it is headed by, and its own text, which alone can hold the answer."""

    header: str
    body: str


class _Pair(NamedTuple):  # a question and a window of a passage, as the network reads them
    ids: list[int]
    first: int  # where the passage begins, header included
    body: int  # where its own text begins
    offsets: list[tuple[int, int]]  # of the tokens of its own text, within that text


class ReaderModel:
    """Reads questions with passages. Loads at first use; threads may share it."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or min(physical_cores(), MOST_THREADS)
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Session] | None = None

    @property
    def is_warm(self) -> bool:
        """Whether the next passage will not have to wait for a load."""
        return self._loaded is not None

    def prepare(self) -> None:
        """Import the runtime before threads begin: two that do so at once may each meet half of numpy."""
        runtime()

    def warm(self) -> None:
        """Load the model now.

        Raises:
            Unavailable: it cannot be loaded.
        """
        with native_code():
            self._model()

    def read(self, question: str, texts: Sequence[Text]) -> list[Reading]:
        """Return what the model makes of each passage; of a long one, of the part most like the question.

        Raises:
            Unavailable: the model cannot be loaded or run.
        """
        with native_code():
            tokenizer, session = self._model()
            asked = _encoded(tokenizer, question).ids[:QUESTION]
            pairs = [_pair(tokenizer, asked, text) for text in texts]
            found = session.run_all(_feed(pairs), OUTPUTS)
        rows = zip(pairs, *found, strict=True)
        return [_reading(pair, float(logit), start, end) for pair, logit, start, end in rows]

    def known_words(self, question: str) -> float:
        """Return the share of a question's longer words that are one token each: most, if it is English."""
        words = _WORD.findall(question)
        telling = [word for word in words if len(word) >= TELLING_LETTERS]
        if len(words) < LEAST_WORDS or not telling:
            return 1.0
        with native_code():
            tokenizer, _ = self._model()
            return sum(len(_encoded(tokenizer, word).ids) == 1 for word in telling) / len(telling)

    def _model(self) -> tuple[Tokenizer, Session]:
        from tokenizers import Tokenizer

        with self._loading:
            if self._loaded is None:
                network = DATA / "reader-int8.onnx"
                # What three long passages take, 33 MB, is half of what its weights take.
                session = Session("reader", network, self._threads, _unavailable, gives_back=True)
                try:
                    tokenizer = Tokenizer.from_buffer((DATA / "tokenizer.json").read_bytes())
                except (OSError, ValueError) as fault:
                    raise _unavailable(str(fault)) from fault
                tokenizer.no_padding()
                tokenizer.no_truncation()
                tokenizer.encode_special_tokens = True  # text that spells a special token is read as text
                self._loaded = tokenizer, session
            return self._loaded


@cache
def shared_model(threads: int) -> ReaderModel:
    """Return the one model of this process that runs on so many threads."""
    return ReaderModel(threads)


def is_installed() -> bool:
    """Whether the model's files are there: who packs the program anew may leave them out."""
    return (DATA / "reader-int8.onnx").is_file() and (DATA / "tokenizer.json").is_file()


def _unavailable(reason: str) -> Unavailable:
    hint = Hint(Action.REINSTALL, package="concord-kb")
    return Unavailable(f"the reader does not run: {reason}", hint=hint)


def _encoded(tokenizer: Tokenizer, text: str) -> Encoding:
    return tokenizer.encode(encodable(text), add_special_tokens=False)


def _pair(tokenizer: Tokenizer, asked: list[int], text: Text) -> _Pair:
    """Return the question with that window of the text which most speaks of it."""
    header = _encoded(tokenizer, text.header).ids[:HEADER]
    body = _encoded(tokenizer, text.body)
    room = WINDOW - len(asked) - len(header) - 3
    begin = best_window(body.ids, asked, room)
    first = len(asked) + 2
    ids = [CLS, *asked, SEP, *header, *body.ids[begin : begin + room], SEP]
    return _Pair(ids, first, first + len(header), body.offsets[begin : begin + room])


def best_window(ids: Sequence[int], asked: Sequence[int], room: int) -> int:
    """Return where the window begins that has most of the question; what is rare in the text counts most."""
    last = len(ids) - room
    if last <= 0:
        return 0
    often = Counter(ids)
    step = max(1, room // STRIDES)

    def worth(begin: int) -> float:
        return sum(1 / often[token] for token in {*asked}.intersection(ids[begin : begin + room]))

    best: int = max([*range(0, last, step), last], key=worth)  # of equals the first
    return best


def _feed(pairs: Sequence[_Pair]) -> dict[str, NDArray[np.int64]]:
    import numpy as np

    ids, mask, types = np.zeros((len(INPUTS), len(pairs), max(len(pair.ids) for pair in pairs)), np.int64)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = pair.ids
        mask[row, : len(pair.ids)] = 1
        types[row, pair.first : len(pair.ids)] = 1
    return dict(zip(INPUTS, (ids, mask, types), strict=True))


def _reading(pair: _Pair, logit: float, start: Any, end: Any) -> Reading:
    """Return the best span of a passage's own text, and by how much it beats that there is none."""
    import numpy as np

    count = len(pair.offsets)
    if not count:
        return Reading(logit, 0, 0, -1e4)
    inside = slice(pair.body, pair.body + count)
    sums = start[inside, None] + end[None, inside]
    allowed = np.triu(np.tri(count, k=LONGEST - 1, dtype=bool))  # ends at its start or soon after
    sums = np.where(allowed, sums, -1e9)
    first, last = divmod(int(sums.argmax()), count)
    margin = float(sums[first, last] - start[0] - end[0])
    return Reading(logit, pair.offsets[first][0], pair.offsets[last][1], margin)
