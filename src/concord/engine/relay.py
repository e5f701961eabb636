"""`stdin` ↔ engine, for an MCP client: neither the SDK nor a store is loaded here.

The engine may end while its client lives on. Whatever it has not answered by then is answered here, as an
error that says to ask again; the client's next line is for another engine, which is greeted as the first was.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from socket import SHUT_WR

from concord.core.config import Settings
from concord.core.errors import KBError
from concord.core.leaving import leave
from concord.engine.client import START_S, greeted, start
from concord.engine.place import Channel

STDIN, STDOUT = 0, 1
INTERNAL_ERROR = -32603
HELLO, READY = "initialize", "notifications/initialized"
MOST_SILENT = 3  # engines that end without a word: another one would, too
ENDED = "the engine ended before it had answered; what it had stored stays: send the request again"
NONE_STARTS = "the engine has ended and no other can be started: start the server again"


def run(settings: Settings) -> bool:
    """Serve the client that started us until it goes; return False if there is no engine to do so.

    Raises:
        KBError: with such settings nobody could serve it.
    """
    relay = Relay(settings)
    if settings["engine.start"] == "never" or not relay.connect():
        return False
    threading.Thread(target=relay.from_client, daemon=True).start()
    with suppress(KeyboardInterrupt, BrokenPipeError):  # how it is ended at a terminal, or by its client
        relay.from_engine()
    leave()


class Relay:
    """What a client has asked for, and the engine that works on it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._channel: Channel | None = None
        self._changed = threading.Condition()  # guards what follows, and tells of a new channel
        self._open: dict[str | int, str] = {}  # requests without an answer, by id, and their methods
        self._greeting: list[bytes] = []  # the lines that began the session
        self._replayed: str | int | None = None  # a greeting whose answer the client has had
        self._has_ended = False  # there are no more lines
        self._writing = threading.Lock()

    def connect(self) -> bool:
        """Connect to an engine, started if need be, and begin the session again if there was one.

        Raises:
            KBError: it cannot work with these settings.
        """
        with self._changed:
            channel = self._greeted() or (self._greeted() if start(self._settings) else None)
            if channel is None:
                return False
            if self._greeting:
                number, _ = _head(self._greeting[0])
                self._replayed = None if number in self._open else number
                with suppress(OSError):  # it has ended again, as its reader will see
                    channel.socket.sendall(b"".join(self._greeting))
            self._channel = channel
            self._changed.notify_all()
            return True

    def _greeted(self) -> Channel | None:
        return greeted(self._settings, wait_s=START_S, service="mcp", roots=self._settings["mcp.roots"])

    def from_client(self) -> None:
        """Pass on the client's lines until there are no more."""
        with open(STDIN, "rb", closefd=False) as stdin:
            for line in stdin:
                self._pass_on(line)
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
            if self._channel:
                with suppress(OSError):
                    self._channel.socket.shutdown(SHUT_WR)

    def _pass_on(self, line: bytes) -> None:
        number, method = _head(line)
        with self._changed:
            channel = self._channel if self._channel or self._reconnected() else None
            if channel and number is not None and method is not None:
                self._open[number] = method
            if method == HELLO:
                self._greeting = [line]
            elif method == READY:
                self._greeting[1:] = [line]
        if channel:
            with suppress(OSError):  # it has just ended: whoever reads from it answers for it
                channel.socket.sendall(line)
        elif number is not None and method is not None:
            self._fail(number, NONE_STARTS)

    def _reconnected(self) -> bool:
        with suppress(KBError):  # a folder that it may read has gone, or the like
            return self.connect()
        return False

    def from_engine(self) -> None:
        """Pass on what one engine after the other sends, until the client has gone."""
        silent = 0  # how many engines in turn have said nothing at all
        while channel := self._next():
            silent += 1
            for line in _lines(channel):
                silent = 0
                if self._is_for_client(line):
                    self._write(line)
            with self._changed:
                channel.close()
                self._channel = None
                # A client that has not been greeted sends nothing before: it gets another engine at once.
                waits = HELLO in self._open.values() and not self._has_ended and silent < MOST_SILENT
                is_greeted = not (waits and self._reconnected())
                lost = [number for number, method in self._open.items() if is_greeted or method != HELLO]
                self._open = {number: HELLO for number in self._open if number not in lost}
            for number in lost:
                self._fail(number, ENDED)

    def _next(self) -> Channel | None:
        """Return the next engine's channel, once the client has something for it; None when it has gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._channel or self._has_ended)
            return self._channel

    def _is_for_client(self, line: bytes) -> bool:
        """Whether the client waits for a line; an answer closes the request that it is for."""
        number, method = _head(line)
        if number is None or method is not None:
            return True
        with self._changed:
            is_replayed = number == self._replayed and number not in self._open
            if is_replayed:
                self._replayed = None
            self._open.pop(number, None)
        return not is_replayed

    def _fail(self, number: str | int, message: str) -> None:
        error = {"code": INTERNAL_ERROR, "message": message}
        self._write(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        with self._writing:
            while line:
                line = line[os.write(STDOUT, line) :]


def _lines(channel: Channel) -> Iterator[bytes]:
    """Yield what an engine sends until it ends; half a line is nothing."""
    with suppress(ConnectionError, ValueError):
        while (line := channel.lines.readline()).endswith(b"\n"):
            yield line


def _head(line: bytes) -> tuple[str | int | None, str | None]:
    """Return the id and the method of a message, None for each that it has not."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):  # no message: the engine says so
        return None, None
    if not isinstance(said, dict):
        return None, None
    number, method = said.get("id"), said.get("method")
    is_id = isinstance(number, str | int) and not isinstance(number, bool)
    return number if is_id else None, method if isinstance(method, str) else None
