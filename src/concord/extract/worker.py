"""The process behind sandbox.py: takes one file at a time on standard input and answers in JSON.

Imports little, to start fast; an extractor and its library load with the first file that needs them.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import resource
import signal
import struct
import sys
from contextlib import suppress
from typing import IO, Any

from concord.core import errors, plugins
from concord.core.protocols import Extractor
from concord.types import Extracted

REQUEST = struct.Struct(">IQ")  # lengths of the header and of the file, which follow
REPLY = struct.Struct(">Q")  # length of the answer, which follows


def main() -> None:
    """Serve files until standard input ends."""
    _die_with_parent(int(sys.argv[2]))
    requests, replies = sys.stdin.buffer, _take_stdout()
    loaded: dict[str, Extractor] = {}
    while (request := _receive(requests)) is not None:
        header, data = request
        answer = _answer(header, data, loaded)
        body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        replies.write(REPLY.pack(len(body)) + body)
        replies.flush()
        if answer.get("last"):
            break


def _die_with_parent(lifeline: int) -> None:
    """Have the kernel end this process when the other end of a pipe closes, even during a native call.

    Without that (not on Linux) the end of standard input and the processor limit do the same, later.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGIO})
    with suppress(OSError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _take_stdout() -> IO[bytes]:
    """Return standard output, and let nobody else write there: a library's print would garble the answers."""
    private = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    return private


def _receive(requests: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    lengths = requests.read(REQUEST.size)
    if len(lengths) < REQUEST.size:
        return None
    header_length, data_length = REQUEST.unpack(lengths)
    header, data = requests.read(header_length), requests.read(data_length)
    return (json.loads(header), data) if len(data) == data_length else None


def _answer(header: dict[str, Any], data: bytes, loaded: dict[str, Extractor]) -> dict[str, Any]:
    name = header["extractor"]
    try:
        if name not in loaded:
            loaded[name] = plugins.load("extractors", name)()
            _limit_memory(header["memory_bytes"])
        _limit_processor(header["cpu_s"])
        return _as_json(loaded[name].extract(data, header["name"]))
    except errors.KBError as fault:
        return {"error": type(fault).__name__, "message": fault.message, "hint": fault.hint}
    except MemoryError:  # what is left of the heap may be in pieces: this process takes no other file
        limit = header["memory_bytes"] // 1024**2
        return {"error": "TooLarge", "message": f"needs more than {limit} MB of memory to read", "last": True}
    except Exception as fault:  # the outermost line of this process: the parent reports it with the file
        return {"error": "Damaged", "message": f"cannot be read ({type(fault).__name__}: {fault})"[:300]}


def _as_json(extracted: Extracted) -> dict[str, Any]:
    return {field: getattr(extracted, field) for field in Extracted.__struct_fields__}


def _limit_memory(above_now: int) -> None:
    """Limit the address space, to what is taken now and so much more."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a gigabyte of core dump helps nobody
    with suppress(OSError, ValueError):  # no /proc, or a system that does not limit address space
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, now + above_now)


def _limit_processor(seconds: int) -> None:
    """Allow so many seconds more than have been used: the limit counts from the start of the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime) + seconds)


def _lower(kind: int, wanted: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
