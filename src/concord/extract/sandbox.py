"""Reads files in a worker process, so that a file that crashes or exhausts its parser dies alone.

The worker starts with the first file and serves the next ones; it is replaced after a crash, a limit or a
number of files. It gets one file's bytes at a time on its standard input and answers with JSON, which is
checked for what it is: data from a process that may have been taken over. It inherits no file but its pipes,
and it ends with its parent, however that ends. A file is read while the caller does something else: what is
begun is waited for by `result`. If the structure of a file is too much, it is read again as plain lines.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from concord.core import errors
from concord.extract.worker import IS_UNIX, LENGTH, LENGTHS, Drawing, Reply, Request
from concord.types import Extracted


class WorkerLimits(NamedTuple):
    """What one file may cost, and how long a worker is kept."""

    memory_bytes: int = 1024**3  # beyond a loaded worker; a PDF of 300 kB is known to ask for 4.5 GB
    cpu_s: int = 30  # however large: a megabyte of text takes half a second, a PDF of 1,000 pages 2 s
    wall_s: float = 120.0  # the same on a machine with four times as much to do
    reply_bytes: int = 256 * 1024**2
    files: int = 500  # starting anew costs 0.15 s; what native libraries leak in 500 files is bearable


DEFAULT_LIMITS = WorkerLimits()

# -P, because the working folder may be the very folder that is indexed: its files must not be imported.
# The folder that this package was imported from goes last, so that it shadows nothing.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from concord.extract.worker import main; main()"
_PACKAGE_HOME = str(Path(__file__).parents[2])

PNG = b"\x89PNG\r\n\x1a\n"  # how an image begins
_NONSENSE = Reply(message="its reader answered nonsense", is_last=True)
_REPLIES = msgspec.json.Decoder(Reply)
_PIPE_BYTES = 1 << 20
_FAULTS: dict[str, type[errors.KBError]] = {
    fault.__name__: fault
    for fault in (*errors.ExtractionError.__subclasses__(), errors.MissingExtra, errors.UnknownName)
}


_Pool = tuple[WorkerLimits, str | None]  # who has the same limits and import path shares workers


class Sandbox:
    """Worker processes for extractors, each with one file at a time; asked from any thread.

    Sandboxes with the same limits and import path share the workers that wait, which end with the last one.
    """

    _lock = threading.Lock()
    _waiting: ClassVar[dict[_Pool, list[_Worker]]] = {}
    _users: ClassVar[Counter[_Pool]] = Counter()

    def __init__(self, limits: WorkerLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._pool: _Pool = (limits, os.environ.get("PYTHONPATH"))
        self._is_open = False
        self._busy: set[_Worker] = set()

    def extract(self, extractor: str, data: bytes, name: str) -> Extracted:
        """Return what an extractor, by its name in the table, makes of a file; raises as `result` does."""
        return self.begin(extractor, data, name).result()

    def begin(
        self,
        extractor: str,
        data: bytes,
        name: str,
        *,
        plain: str = "",
        image: Drawing | None = None,
        seen: dict[int, str] | None = None,
    ) -> FileInWorker:
        """Have a file read while the caller goes on; as plain lines, if there is a reason for that.

        With `image`, a page of it is drawn instead. `seen` is the text of pages that are pictures.
        """
        limits = self._limits
        cpu_s = min(limits.cpu_s, 2 + len(data) // 1_000_000)
        request = Request(extractor, name, limits.memory_bytes, cpu_s, limits.cpu_s, plain, image, seen)
        worker = self._take()
        try:
            worker.send(request, data)
        except BaseException:  # Ctrl-C: half a request is of no use
            self.release(worker, kill=True)
            raise
        return FileInWorker(self, worker, request, data)

    def close(self) -> None:
        """End the workers that nobody else needs, in the middle of a file too."""
        with self._lock:
            self._users[self._pool] -= self._is_open
            self._is_open = False
            ended = [] if self._users[self._pool] else self._waiting.pop(self._pool, [])
            for worker in self._busy:
                worker.process.kill()
        for worker in ended:
            worker.end()

    @property
    def worker_pid(self) -> int | None:
        """The process id of a worker that waits for files, when there is one."""
        waiting = self._waiting.get(self._pool)
        return waiting[-1].process.pid if waiting else None

    def _take(self) -> _Worker:
        """Return a worker that waits, or a new one."""
        with self._lock:
            self._users[self._pool] += not self._is_open
            self._is_open = True
            waiting = self._waiting.setdefault(self._pool, [])
            worker = waiting.pop() if waiting else None
        if worker is not None and worker.process.poll() is not None:  # it has died
            worker.end()
            worker = None
        worker = worker or _Worker(self._limits)
        with self._lock:
            self._busy.add(worker)
        return worker

    def release(self, worker: _Worker, *, kill: bool = False) -> None:
        """Take a worker back for the next file, or end it."""
        with self._lock:
            self._busy.discard(worker)
            is_kept = not kill and self._is_open and worker.served < self._limits.files
            if is_kept:
                self._waiting.setdefault(self._pool, []).append(worker)
        if not is_kept:
            worker.end(kill=kill)


class FileInWorker:
    """A file that a worker is reading."""

    def __init__(self, sandbox: Sandbox, worker: _Worker, request: Request, data: bytes) -> None:
        self._sandbox, self._worker = sandbox, worker
        self._request, self._data = request, data

    def result(self) -> Extracted:
        """Wait for the text of the file; if the worker died of its structure, read it as plain lines.

        Raises:
            ExtractionError: what the extractor said of the file, or what the file did to the worker.
        """
        request = self._request
        try:
            reply = self._received()
        except errors.ExtractionError as fault:
            if not self._worker.has_text or request.plain:
                raise
            return self._sandbox.begin(request.extractor, self._data, request.name, plain=str(fault)).result()
        if reply.extracted is None:
            raise _fault_of(reply)
        return reply.extracted

    def image(self) -> bytes:
        """Wait for the image that was asked for; raises as `result` does."""
        reply = self._received()
        if reply.image is None or not reply.image.startswith(PNG):
            raise _fault_of(_NONSENSE if reply.image else reply)
        return reply.image

    def _received(self) -> Reply:
        try:
            body = self._worker.receive()
        except BaseException:  # Ctrl-C too
            self.abandon()
            raise
        try:
            reply = _REPLIES.decode(body)
        except (ValueError, RecursionError):  # or half a character, which no store can keep
            reply = _NONSENSE
        self._sandbox.release(self._worker, kill=reply.is_last)
        return reply

    def abandon(self) -> None:
        """End the worker: an answer that nobody reads must not be taken for the next file's."""
        self._sandbox.release(self._worker, kill=True)


class _Worker:
    """One process and its pipes."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._cpu_s = 0
        self._timed_out = False
        self.has_text = False  # the file is extracted, and its structure is being read
        self.served = 0
        watched, self._lifeline = os.pipe() if IS_UNIX else (-1, -1)  # the worker watches for its end
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, _PACKAGE_HOME, str(watched)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(watched,) if IS_UNIX else (),
            )
        except OSError as fault:
            _close(self._lifeline)
            raise errors.TooLarge(
                f"cannot be read now: no process can be started ({fault.strerror})",
                hint="close other programs, then sync again",
            ) from fault
        finally:
            _close(watched)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._replies = self.process.stdin, self.process.stdout

    def send(self, request: Request, data: bytes) -> None:
        """Give the worker a file; if it is dead, that is told by `receive`."""
        self._cpu_s, self.has_text = request.cpu_s, False
        header = msgspec.json.encode(request)
        with suppress(OSError):
            self._requests.write(LENGTHS.pack(len(header), len(data)) + header)
            self._requests.write(data)
            self._requests.flush()

    def receive(self) -> bytes:
        """Return the worker's answer about the file; blocked for no longer than the limit allows."""
        alarm = threading.Timer(self._limits.wall_s, self._expire)
        alarm.daemon = True
        alarm.start()
        try:
            while not (length := LENGTH.unpack(self._read(LENGTH.size))[0]):
                self.has_text = True
            if length > self._limits.reply_bytes:
                raise errors.TooLarge(f"holds more than {self._limits.reply_bytes // 1024**2} MB of text")
            body = self._read(length)
        except (OSError, EOFError) as fault:
            raise self._cause_of_death() from fault
        finally:
            alarm.cancel()
        self.served += 1
        return body

    def end(self, *, kill: bool = False) -> None:
        """Let the process go, or make it."""
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # what was left to send to a worker that has died
                pipe.close()
        if kill:
            self.process.kill()
        _close(self._lifeline)  # ends it by a signal, if the end of its input did not
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _expire(self) -> None:
        """Kill the process; whoever reads its answer hears of it."""
        self._timed_out = True
        self.process.kill()

    def _read(self, length: int) -> bytes:
        """Return so many bytes of the answer: from the pipe itself, since a buffer hides what there is."""
        data = bytearray()
        while len(data) < length:
            part = os.read(self._replies.fileno(), min(length - len(data), _PIPE_BYTES))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _cause_of_death(self) -> errors.ExtractionError:
        try:
            status = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its end and lives: nothing it says can be trusted now
            status = 0
        if self._timed_out:
            return errors.TooLarge(f"took longer than {self._limits.wall_s:g} s to read")
        how = signal.Signals(-status).name if status < 0 else f"exit {status}"
        if how == "SIGXCPU":
            return errors.TooLarge(f"took more than {self._cpu_s} s of processor time to read")
        if how == "SIGKILL":
            return errors.TooLarge("its reader was killed; the machine may be short of memory")
        memory = f"{self._limits.memory_bytes // 1024**2} MB of memory"
        return errors.Damaged(f"crashed its reader ({how}): it is damaged, or needs more than {memory}")


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _fault_of(reply: Reply) -> errors.KBError:
    return _FAULTS.get(reply.fault, errors.Damaged)(reply.message, hint=reply.hint)
