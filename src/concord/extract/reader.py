"""One reader for every format: finds out what a file is, and opens risky formats in a worker process."""

from __future__ import annotations

from functools import cached_property

from concord import plugins
from concord.errors import NotIndexable
from concord.extract.decode import HEAD_BYTES
from concord.extract.formats import Refusal, by_name, detect, extension
from concord.extract.packed import unpacked
from concord.extract.sandbox import Sandbox
from concord.protocols import Extractor
from concord.types import Extracted


class SandboxedReader:
    """Reads any file; PDF, HTML, Office and what installed packages read are opened in a worker process."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._loaded: dict[str, Extractor] = {}

    def read(self, data: bytes, name: str) -> Extracted:
        """Return a file's text.

        Raises:
            NotIndexable: there is no text in it.
            ExtractionError: it is encrypted, damaged, or over a limit.
        """
        extracted = self._extract(data, name)
        if extracted.details.get("no_text_layer"):
            raise NotIndexable("no text layer (scanned)", hint="run OCR on it first, such as ocrmypdf")
        if not extracted.text.strip():
            raise NotIndexable("no text")
        return extracted

    def close(self) -> None:
        """End the worker process, if one was started."""
        self._sandbox.close()

    def _extract(self, data: bytes, name: str) -> Extracted:
        if by_name(name) is None and extension(name) in self._outside:
            return self._sandbox.extract(extension(name), data, name)
        data, name = unpacked(data, name) or (data, name)
        form = detect(name, data[:HEAD_BYTES])
        if isinstance(form, Refusal):
            raise NotIndexable(form.reason)
        if form.risky:
            return self._sandbox.extract(form.extractor, data, name)
        return self._extractor(form.extractor).extract(data, name)

    @cached_property
    def _outside(self) -> frozenset[str]:
        """The extractors of installed packages: each is named for the extension that it reads."""
        return frozenset(plugins.names("extractors")) - plugins.TABLES["extractors"].keys()

    def _extractor(self, name: str) -> Extractor:
        if name not in self._loaded:
            self._loaded[name] = plugins.load("extractors", name)()
        return self._loaded[name]
