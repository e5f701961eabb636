"""One reader for every format: finds out what a file is, and has it read in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from concord.core import plugins
from concord.core.errors import NotIndexable
from concord.core.overriding import override
from concord.core.protocols import Area, FileReader
from concord.extract.decode import HEAD_BYTES
from concord.extract.formats import Refusal, by_name, detect, extension
from concord.extract.sandbox import FileInWorker, Sandbox
from concord.extract.worker import Drawing
from concord.types import Extracted


class SandboxedReader(FileReader):
    """Reads any file, in a worker process."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()

    def read(self, data: bytes, name: str) -> Extracted:
        """Return the text of a file."""
        return self.begin(data, name).result()

    @override
    def begin(self, data: bytes, name: str, *, seen: dict[int, str] | None = None) -> FileInWorker:
        if by_name(name) is None and extension(name) in self._outside:
            return self._sandbox.begin(extension(name), data, name)
        return self._sandbox.begin(_extractor(data, name), data, name, seen=seen)

    def image(
        self, data: bytes, name: str, page: int, width: int, marked: str = "", areas: Sequence[Area] = ()
    ) -> bytes:
        """Return a page of a file as PNG; the lines of a text are marked where they stand, and areas of it.

        Raises:
            NotIndexable: such files have no pages to draw.
            ExtractionError: it has no such page, is damaged, or over a limit.
        """
        drawing = Drawing(page, width, marked, list(areas))
        return self._sandbox.begin(_extractor(data, name), data, name, image=drawing).image()

    @override
    def close(self) -> None:
        self._sandbox.close()

    @cached_property
    def _outside(self) -> frozenset[str]:
        """The extractors of installed packages: each is named for the extension that it reads."""
        return frozenset(plugins.names("extractors")) - plugins.TABLES["extractors"].keys()


def _extractor(data: bytes, name: str) -> str:
    form = detect(name, data[:HEAD_BYTES])
    if isinstance(form, Refusal):
        raise NotIndexable(form.reason)
    return form.extractor
