"""Runs an extractor in a worker process, so that a file that crashes or exhausts it dies alone.

The worker starts with the first risky file and serves the next ones; it is replaced after a crash, a limit or
a number of files. It gets one file's bytes at a time on its standard input and answers with JSON, which is
checked for what it is: data from a process that may have been taken over. It inherits no file but its pipes,
and it ends with its parent, however that ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from concord.core import errors
from concord.extract.worker import REPLY, REQUEST
from concord.types import Extracted


class WorkerLimits(NamedTuple):
    """What one file may cost, and how long a worker is kept."""

    memory_bytes: int = 1024**3  # beyond a loaded worker; a PDF of 300 kB is known to ask for 4.5 GB
    cpu_s: int = 30  # a PDF of 1,000 pages takes 2 s; crafted HTML runs for minutes
    wall_s: float = 120.0  # the same on a machine with four times as much to do
    reply_bytes: int = 256 * 1024**2
    files: int = 500  # starting anew costs 0.15 s; what native libraries leak in 500 files is bearable


DEFAULT_LIMITS = WorkerLimits()

# -P, because the working folder may be the very folder that is indexed: its files must not be imported.
# The folder that this package was imported from goes last, so that it shadows nothing.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from concord.extract.worker import main; main()"
_PACKAGE_HOME = str(Path(__file__).parents[2])

_NONSENSE = "its reader answered nonsense"
_FAULTS: dict[str, type[errors.KBError]] = {
    fault.__name__: fault
    for fault in (
        errors.NotIndexable,
        errors.Unreadable,
        errors.Encrypted,
        errors.Damaged,
        errors.TooLarge,
        errors.MissingExtra,
        errors.UnknownName,
    )
}


class Sandbox:
    """A worker process for extractors: one file at a time, asked from any thread."""

    def __init__(self, limits: WorkerLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def extract(self, extractor: str, data: bytes, name: str) -> Extracted:
        """Return what an extractor, by its name in the table, makes of a file.

        Raises:
            ExtractionError: what the extractor said of the file, or what the file did to the worker.
        """
        with self._lock:
            reply = self._ask(extractor, data, name)
        return _extracted(reply)

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            self._retire()

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker, when there is one."""
        return self._worker.pid if self._worker else None

    def _ask(self, extractor: str, data: bytes, name: str) -> dict[str, Any]:
        if self._worker is not None and not self._worker.is_alive:
            self._retire()
        if self._worker is None:
            self._worker = _Worker(self._limits)
        try:
            reply = self._worker.ask(extractor, data, name)
        except BaseException:  # Ctrl-C too: an answer that nobody read must not be taken for the next file's
            self._retire(kill=True)
            raise
        if self._worker.served >= self._limits.files or reply.get("last"):
            self._retire()
        return reply

    def _retire(self, *, kill: bool = False) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(kill=kill)


class _Worker:
    """One process and its pipes."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._timed_out = False
        self.served = 0
        watched, self._lifeline = os.pipe()  # nothing is ever written there: the worker watches for its end
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, _PACKAGE_HOME, str(watched)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(watched,),
            )
        except OSError as fault:
            os.close(self._lifeline)
            raise errors.TooLarge(
                f"cannot be read now: no process can be started ({fault.strerror})",
                hint="close other programs, then sync again",
            ) from fault
        finally:
            os.close(watched)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, extractor: str, data: bytes, name: str) -> dict[str, Any]:
        """Return the worker's answer about one file; blocked for no longer than the limit allows."""
        alarm = threading.Timer(self._limits.wall_s, self._expire)
        alarm.daemon = True
        alarm.start()
        try:
            self._send(extractor, data, name)
            body = self._receive()
        except (OSError, EOFError) as fault:
            raise self._cause_of_death() from fault
        finally:
            alarm.cancel()
        self.served += 1
        return _parsed(body)

    def end(self, *, kill: bool = False) -> None:
        """Let the process go, or make it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was left to send to a worker that has died
                    pipe.close()
        if kill:
            self._process.kill()
        os.close(self._lifeline)  # ends it by a signal, if the end of its input did not
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _expire(self) -> None:
        self._timed_out = True
        self._process.kill()

    def _send(self, extractor: str, data: bytes, name: str) -> None:
        costs = {"memory_bytes": self._limits.memory_bytes, "cpu_s": self._limits.cpu_s}
        header = json.dumps({"extractor": extractor, "name": name, **costs}).encode("ascii")
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(REQUEST.pack(len(header), len(data)) + header)
        pipe.write(data)
        pipe.flush()

    def _receive(self) -> bytes:
        (length,) = REPLY.unpack(self._read(REPLY.size))
        if length > self._limits.reply_bytes:
            raise errors.TooLarge(f"holds more than {self._limits.reply_bytes // 1024**2} MB of text")
        return self._read(length)

    def _read(self, length: int) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None
        data = pipe.read(length)
        if len(data) < length:
            raise EOFError
        return data

    def _cause_of_death(self) -> errors.ExtractionError:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its end and lives: nothing it says can be trusted now
            status = 0
        limits = self._limits
        if self._timed_out:
            return errors.TooLarge(f"took longer than {limits.wall_s:g} s to read")
        if status == -signal.SIGXCPU:
            return errors.TooLarge(f"took more than {limits.cpu_s} s of processor time to read")
        if status == -signal.SIGKILL:
            return errors.TooLarge("its reader was killed; the machine may be short of memory")
        how = signal.Signals(-status).name if status < 0 else f"exit {status}"
        memory = f"{limits.memory_bytes // 1024**2} MB of memory"
        return errors.Damaged(f"crashed its reader ({how}): it is damaged, or needs more than {memory}")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(body)
        if isinstance(reply, dict):
            return reply
    except (ValueError, RecursionError):
        pass
    raise errors.Damaged(_NONSENSE)


def _extracted(reply: dict[str, Any]) -> Extracted:
    if "error" in reply:
        fault = _FAULTS.get(str(reply["error"]), errors.Damaged)
        hint = reply.get("hint")
        raise fault(str(reply.get("message")), hint=None if hint is None else str(hint))
    try:
        json.dumps(reply, ensure_ascii=False).encode()  # not half a surrogate pair: no store can keep it
        extracted = msgspec.convert(reply, Extracted)
    except (ValueError, RecursionError) as nonsense:
        raise errors.Damaged(_NONSENSE) from nonsense
    is_whole = reply.keys() == set(Extracted.__struct_fields__)
    if not is_whole or not 0 <= extracted.body_start <= len(extracted.text):
        raise errors.Damaged(_NONSENSE)
    return extracted
