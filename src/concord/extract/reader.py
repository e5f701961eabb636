"""One reader for every format: finds out what a file is, and has it read in a worker process.

Documents that were packed with gzip, as systems install manuals, changelogs and READMEs, are unpacked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from gzip import BadGzipFile, GzipFile
from io import BytesIO

from concord.core import plugins
from concord.core.errors import Damaged, NotIndexable
from concord.core.overriding import override
from concord.core.protocols import Area, FileReader
from concord.extract.decode import HEAD_BYTES
from concord.extract.formats import MANUAL, Refusal, by_name, detect, extension, may_be_manual
from concord.extract.sandbox import FileInWorker, Sandbox
from concord.extract.worker import Drawing
from concord.types import Extracted

MAX_UNPACKED = 20_000_000  # bytes; the manual page of bash, a long one, has 400,000
_MAGIC = b"\x1f\x8b"
_MEMBER = _MAGIC + b"\x08"  # how each of several files begins that were packed, then put together
_GZIP, _CHECKSUM = 31, 8  # zlib's name for that form, and how many bytes end it
_MOST_MEMBERS = 10_000  # each takes as long as a page of text: of empty ones, 10 MB took 12 s
_LOG = re.compile(r"(?:^|[._-])(?:log|out|err|messages)(?:[._-]|$)", re.IGNORECASE)


def unpacked(data: bytes, name: str) -> tuple[bytes, str] | None:
    """Return a packed document and its own name; None of any other file.

    What is packed of data, code and logs is kept, not read: of these there may be any amount.
    """
    if not name.lower().endswith(".gz") or not data.startswith(_MAGIC):
        return None
    if data.count(_MEMBER) > _MOST_MEMBERS:
        raise NotIndexable(f"too large: packed in more than {_MOST_MEMBERS:,} parts")
    inside, head = name[: -len(".gz")], b""
    with suppress(zlib.error):  # of what is damaged, too: nobody needs the rest of a log
        head = zlib.decompressobj(_GZIP).decompress(data[:-_CHECKSUM], HEAD_BYTES)
    if not head or not _is_document(inside, head):
        return None
    try:
        with GzipFile(fileobj=BytesIO(data)) as file:
            whole = file.read(MAX_UNPACKED + 1)
    except (EOFError, BadGzipFile, zlib.error) as fault:
        raise Damaged(
            "is cut off or damaged: it cannot be unpacked to its end", hint="install or fetch it again"
        ) from fault
    if len(whole) > MAX_UNPACKED:
        raise NotIndexable(f"too large: unfolds into more than {MAX_UNPACKED // 1_000_000} MB")
    return whole, inside


def _is_document(name: str, head: bytes) -> bool:
    form = detect(name, head)
    if isinstance(form, Refusal) or form.type in ("data", "code"):
        return False
    is_log = _LOG.search(name.rpartition("/")[2]) or may_be_manual(name)  # that was rotated: syslog.1.gz
    return form == MANUAL or not is_log  # git-log.1.gz is a page


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
        data, name = unpacked(data, name) or (data, name)
        form = detect(name, data[:HEAD_BYTES])
        if isinstance(form, Refusal):
            raise NotIndexable(form.reason)
        return self._sandbox.begin(form.extractor, data, name, seen=seen)

    def image(
        self, data: bytes, name: str, page: int, width: int, marked: str = "", areas: Sequence[Area] = ()
    ) -> bytes:
        """Return a page of a file as PNG; the lines of a text are marked where they stand, and areas of it.

        Raises:
            NotIndexable: such files have no pages to draw.
            ExtractionError: it has no such page, is damaged, or over a limit.
        """
        form = detect(name, data[:HEAD_BYTES])
        if isinstance(form, Refusal):
            raise NotIndexable(form.reason)
        drawing = Drawing(page, width, marked, list(areas))
        return self._sandbox.begin(form.extractor, data, name, image=drawing).image()

    @override
    def close(self) -> None:
        self._sandbox.close()

    @cached_property
    def _outside(self) -> frozenset[str]:
        """The extractors of installed packages: each is named for the extension that it reads."""
        return frozenset(plugins.names("extractors")) - plugins.TABLES["extractors"].keys()
