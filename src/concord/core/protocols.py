"""What the pipelines need of the adapters. Structural: having the methods is implementing the protocol.

Borders are crossed once: scores leave an adapter as "higher is better", text offsets as Python string
indices, vectors as float32 bytes of length 1. No engine's query syntax exists above its adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from concord.types import ChunkId, Extracted, Identity, Leg, Query, Ranked, RankedList, Vector

Progress = Callable[[str, int, int | None], None]  # stage, done so far, total when it is known
NO_TEXT_LAYER = "no text layer (scanned)"  # why a PDF that is pictures alone holds no text
READS_SCANS = "pip install 'concord-kb[ocr]', or install tesseract, and sync again"
BINARY = "binary"  # why a file is left out that nothing of ours reads
PICTURE_EXTENSIONS = ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff")
WAITING = "waiting"  # the stage of work that waits for other work; "done" is then in seconds


class Extractor(Protocol):
    """Turns one format family into text."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text of a file; `name` is its file name, for a hint at its format.

        Raises:
            ExtractionError: the file cannot be read as this format.
        """
        ...


class FileBeingRead(Protocol):
    """A file that is read while its caller does something else."""

    def result(self) -> Extracted:
        """Wait for the text of the file and its structure.

        Raises:
            NotIndexable: there is no text in it.
            ExtractionError: its text cannot be extracted.
        """
        ...

    def abandon(self) -> None:
        """Stop reading: nobody waits for the file any more. Instead of `result`."""
        ...


class FileReader(Protocol):
    """Turns any file into text, choosing the extractor; it raises what `FileBeingRead.result` does."""

    def begin(self, data: bytes, name: str) -> FileBeingRead:
        """Have a file read."""
        ...

    def close(self) -> None:
        """End the worker process, if one was started."""
        ...


Area = tuple[float, float, float, float]  # left, top, right and bottom, as parts of a page from 0 to 1


class PageReader(FileReader, Protocol):
    """A reader that can also show what a page looks like."""

    def image(
        self, data: bytes, name: str, page: int, width: int, marked: str = "", areas: Sequence[Area] = ()
    ) -> bytes:
        """Return a page of a file as PNG; the lines of a text are marked where they stand, and areas of it.

        Raises:
            ExtractionError: such files have no pages, it has no such page, or it cannot be drawn.
        """
        ...


class PictureReader(Protocol):
    """Reads what stands in scans and pictures; a page takes seconds."""

    def read(self, data: bytes, name: str, progress: Progress) -> Extracted:
        """Return the text of a file with that of its pictures; raises what `FileBeingRead.result` does."""
        ...

    def areas(self, data: bytes, name: str, page: int, text: str) -> list[Area]:
        """Return where the lines of a text stand on a page that was read in this way; none if it was not."""
        ...

    def close(self) -> None:
        """End the worker process, if one was started."""
        ...


class Embedder(Protocol):
    """Turns text into vectors. Opening one is cheap; its model loads at first use or by `warm`."""

    overflowed: int  # texts so far that were longer than the window, and were embedded in parts

    @property
    def identity(self) -> Identity:
        """Which provider and model make these vectors."""
        ...

    @property
    def max_tokens(self) -> int:
        """The window: a longer text must be split before it is embedded."""
        ...

    def token_starts(self, text: str) -> Sequence[int]:
        """Return the offset at which each of the model's tokens begins, special tokens left out."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order.

        Raises:
            TextsRefused: the provider refuses some of them; the vectors of the others come with it.
            EmbedderDown: the provider does not answer or answers nonsense.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; a text longer than the window is averaged over its parts."""
        ...

    def warm(self) -> None:
        """Load the model now."""
        ...

    @property
    def is_warm(self) -> bool:
        """Whether the next call will not have to load a model."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...


class Strategy(Protocol):
    """One independent way to look for an answer; whatever it raises is named in the answer, which goes on.

    A lexical one is made with the store's words, and its scores are of the scale of BM25; a semantic one with
    the `VectorIndex` and the `Embedder` of one model, and its scores are cosines.
    """

    name: str
    leg: Leg

    def search(self, query: Query) -> RankedList:
        """Return `query.candidates` chunks, best first, and behind them the scores of more if known."""
        ...


class Reranker(Protocol):
    """Reorders the few chunks whose texts have been read; whatever it raises, the answer keeps its order."""

    name: str

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the same chunks in a better order, with scores to match, best first."""
        ...

    def close(self) -> None:
        """Free the model, if there is one."""
        ...
