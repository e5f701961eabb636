"""The process behind sandbox.py: takes one file at a time on standard input, and answers with its text.

Extract, then read the structure: both are done here, where a file that crashes or exhausts a parser does no
harm. Imports little, to start fast; an extractor and its library load with the first file that needs them.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import sys
from contextlib import suppress
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

try:
    import fcntl
    import resource

    IS_UNIX = True
except ImportError:  # then the clock is the only limit, and the end of its input tells a worker to end
    IS_UNIX = False

from concord.core import errors, plugins
from concord.core.protocols import NO_TEXT_LAYER, READS_SCANS, Area, Extractor
from concord.types import Extracted

LENGTHS = struct.Struct(">IQ")  # of the request and of the file, which follow
LENGTH = struct.Struct(">Q")  # of the answer, which follows; 0 says that the text is there, its structure not
MAX_SECTIONS = 20_000
REPLY_SHARE = 8  # how much longer an answer may be than the file or its text, whichever is longer
_REPLY_ROOM = 1 << 16  # bytes that any answer may have


class Drawing(NamedTuple):
    """A page to draw, how wide, and what to mark on it."""

    page: int
    width: int
    marked: str
    areas: list[Area]


class Request(Struct, frozen=True):
    """What is to be read, and what it may cost."""

    extractor: str
    name: str
    memory_bytes: int
    cpu_s: int
    max_cpu_s: int  # for formats that take their time by the page
    plain: str = ""  # why only lines are wanted, not the structure
    image: Drawing | None = None  # made instead
    seen: dict[int, str] | None = None  # what was read in pictures of pages without text, by page


class Reply(Struct, frozen=True):
    """What came of it: a document, an image, or the name of a fault and its words."""

    extracted: Extracted | None = None
    image: bytes | None = None
    fault: str = ""
    message: str = ""
    hint: str | None = None
    is_last: bool = False  # this process takes no other file


def main() -> None:
    """Serve files until standard input ends."""
    _die_with_parent(int(sys.argv[2]))
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:  # a library's print would garble the answers
        os.dup2(nowhere.fileno(), 1)
    loaded: dict[str, Extractor] = {}
    while (received := _receive(requests)) is not None:
        reply = _reply(*received, loaded, replies)
        _send(_encoded(reply), replies)
        if reply.is_last:
            break


def _die_with_parent(lifeline: int) -> None:
    """Have the kernel end this process when the other end of a pipe closes, even during a native call.

    Without that (not on Linux) the end of standard input and the processor limit do the same, later.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    if not IS_UNIX or lifeline < 0:
        return
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGIO})
    with suppress(OSError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _receive(requests: IO[bytes]) -> tuple[Request, bytes] | None:
    lengths = requests.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    request_length, data_length = LENGTHS.unpack(lengths)
    request, data = requests.read(request_length), requests.read(data_length)
    return (msgspec.json.decode(request, type=Request), data) if len(data) == data_length else None


def _send(body: bytes, replies: IO[bytes]) -> None:
    replies.write(LENGTH.pack(len(body)) + body)
    replies.flush()


def _reply(request: Request, data: bytes, loaded: dict[str, Extractor], replies: IO[bytes]) -> Reply:
    name = request.extractor
    try:
        if name not in loaded:
            loaded[name] = plugins.load("extractors", name)()
            _limit_memory(request.memory_bytes)
        _limit_processor(request.cpu_s)
        if seconds := getattr(loaded[name], "cpu_s", None):
            _limit_processor(min(seconds(data), request.max_cpu_s))
        if request.image:
            if (draw := getattr(loaded[name], "image", None)) is None:
                raise errors.NotIndexable("has no pages that can be drawn")
            return Reply(image=draw(data, *request.image))
        extracted = _extracted(loaded[name], data, request)
        _send(b"", replies)
        return _structured(extracted, len(data), request)
    except errors.KBError as fault:
        return Reply(fault=type(fault).__name__, message=fault.message, hint=fault.hint)
    except MemoryError:  # what is left of the heap may be in pieces: this process takes no other file
        return Reply(fault="TooLarge", message=f"{_too_much(request)} to read", is_last=True)
    except Exception as fault:  # the outermost line of this process: the parent reports it with the file
        return Reply(fault="Damaged", message=f"cannot be read ({type(fault).__name__}: {fault})"[:300])


def _extracted(extractor: Extractor, data: bytes, request: Request) -> Extracted:
    if request.seen is None:
        extracted = extractor.extract(data, request.name)
    else:
        extracted = extractor.extract_with(data, request.name, request.seen)  # type: ignore[attr-defined]
    if extracted.details.get("no_text_layer"):
        raise errors.NotIndexable(NO_TEXT_LAYER, hint=READS_SCANS)
    if not extracted.text.strip():
        raise errors.NotIndexable("no text")
    return extracted


def _structured(extracted: Extracted, size: int, request: Request) -> Reply:
    """Return a document with its structure; as plain lines if that takes or makes too much."""
    if request.plain:
        return Reply(_as_lines(extracted, request.plain))
    from concord.text.chunk import outlined  # late: with the first file that is read to its end

    try:
        whole = outlined(extracted)
        if len(whole.sections or ()) > MAX_SECTIONS:
            return Reply(_as_lines(extracted, f"has more than {MAX_SECTIONS:,} sections"))
        room = REPLY_SHARE * max(size, len(extracted.text)) + _REPLY_ROOM
        if len(_encoded(Reply(whole))) > room:
            return Reply(_as_lines(extracted, f"its structure is {REPLY_SHARE} times as long as itself"))
        return Reply(whole)
    except MemoryError:
        return Reply(_as_lines(extracted, _too_much(request)), is_last=True)


def _as_lines(extracted: Extracted, reason: str) -> Extracted:
    details = {**extracted.details, "structure": f"read as plain lines: {reason}"}
    return replace(extracted, details=details, sections=[])


def _too_much(request: Request) -> str:
    return f"needs more than {request.memory_bytes // 1024**2} MB of memory"


def _encoded(reply: Reply) -> bytes:
    try:
        return msgspec.json.encode(reply)
    except UnicodeEncodeError:  # half a character
        return json.dumps(msgspec.to_builtins(reply), ensure_ascii=False).encode("utf-8", "replace")


def _limit_memory(above_now: int) -> None:
    """Limit the address space, to what is taken now and so much more."""
    if not IS_UNIX:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a gigabyte of core dump helps nobody
    with suppress(OSError, ValueError):  # no /proc, or a system that does not limit address space
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, now + above_now)


def _limit_processor(seconds: int) -> None:
    """Allow so many seconds more than have been used: the limit counts from the start of the process."""
    if not IS_UNIX:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime) + seconds)


def _lower(kind: int, wanted: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
