"""A model server over HTTP: kept-alive connections, and a bound on time, on tries and on what is read.

What can succeed later is tried again: a refused or dropped connection, 429 and 5xx. What cannot is not: any
other 4xx, a redirect, an answer that is no JSON, and whatever has used up its time.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from concord.core.errors import BadValue, EmbedderDown

MOST_BYTES = 64 << 20  # of an answer; ten vectors of 4,096 numbers take 1 MB
FIRST_PAUSE_S = 0.1  # before the second try; it doubles
_MAX_IDLE = 4  # connections kept for the next request
_REASON_LENGTH = 200  # characters of what a server says about a fault
_TRY_AGAIN = (408, 425, 429)
_EXAMPLE = "for example http://127.0.0.1:11434"


class Refused(Exception):
    """The server answered that it will not do this. `status` says why, `reason` says it in its words."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


class Server:
    """One server. May be used by several threads at once."""

    def __init__(self, url: str, *, name: str, key: str = "", timeout_s: float, start: str) -> None:
        self._scheme, self._host, self._port, self._path = _parts(url)
        self._timeout_s = timeout_s
        self._start = start  # a hint how to start it
        self._idle: list[http.client.HTTPConnection] = []
        self._closings = 0
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {_printable(key)}"
        self.name = f"{name} at {self._scheme}://{self._host}:{self._port}"

    def ask(self, path: str, body: Mapping[str, Any] | None = None, *, tries: int = 1) -> Any:
        """Return what the server answers, within the time allowed for all tries.

        Raises:
            Refused: it answers that it will not.
            EmbedderDown: it does not answer, or not in time (then because of a TimeoutError), or nonsense.
        """
        ends = time.monotonic() + self._timeout_s
        pause = FIRST_PAUSE_S
        while True:
            tries -= 1
            try:
                return self._try(path, body, ends)
            except (Refused, OSError, UnicodeError, http.client.HTTPException) as fault:
                if not tries or not _may_pass(fault) or time.monotonic() + pause >= ends:
                    raise self._as_ours(fault) from fault
            time.sleep(pause)
            pause *= 2

    def close(self) -> None:
        """Close the connections that nobody uses; the next request opens a new one."""
        self._closings += 1  # what is in use now is closed as soon as it comes back
        while self._idle:
            self._idle.pop().close()

    def _try(self, path: str, body: Mapping[str, Any] | None, ends: float) -> Any:
        data = None if body is None else json.dumps(body).encode()
        closings = self._closings
        try:
            connection = self._idle.pop()
            response = self._sent(connection, path, data, ends)
        except (IndexError, ConnectionError, http.client.HTTPException):
            # None is kept, or the server closed it while it was idle: that says nothing about the server.
            connection = self._connection()
            response = self._sent(connection, path, data, ends)
        content = _read(connection, response, ends)
        if response.will_close or len(self._idle) >= _MAX_IDLE or closings != self._closings:
            connection.close()
        else:
            self._idle.append(connection)
        if response.status != http.HTTPStatus.OK:
            raise Refused(response.status, _reason(content, response.reason))
        try:
            return json.loads(content)
        except ValueError as fault:
            raise EmbedderDown(f"{self.name} answers with what is no JSON", hint=self._start) from fault

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._scheme == "https" else http.client.HTTPConnection
        return kind(self._host, self._port)

    def _sent(
        self, connection: http.client.HTTPConnection, path: str, data: bytes | None, ends: float
    ) -> http.client.HTTPResponse:
        try:
            _limit(connection, ends)
            connection.request("GET" if data is None else "POST", self._path + path, data, self._headers)
            _limit(connection, ends)
            return connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _as_ours(self, fault: Exception) -> Exception:
        if isinstance(fault, Refused):
            return fault
        if isinstance(fault, TimeoutError):
            return EmbedderDown(
                f"{self.name} did not answer within {self._timeout_s:g} s",
                hint="it may be loading its model: try again, or raise embed.timeout_s",
            )
        why = getattr(fault, "strerror", None) or str(fault) or type(fault).__name__
        return EmbedderDown(f"{self.name} does not answer: {why}", hint=self._start)


def _may_pass(fault: Exception) -> bool:
    """Whether the same request may succeed a moment later; no such host, or no time left, takes as long."""
    if isinstance(fault, Refused):
        return fault.status >= http.HTTPStatus.INTERNAL_SERVER_ERROR or fault.status in _TRY_AGAIN
    return isinstance(fault, ConnectionError | http.client.HTTPException)


def _printable(key: str) -> str:
    """Return a key without the line end that files and shells add to it."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise BadValue("embed.key holds characters that no key has", hint="check how it was pasted")
    return key


def _parts(url: str) -> tuple[str, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise BadValue(f"embed.url is no address: {fault}", hint=_EXAMPLE) from fault
    if parts.username or parts.password:
        raise BadValue("embed.url must not hold a password", hint="give it as embed.key")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url.rpartition("@")[2]  # what is before it may be a password
        raise BadValue(f"embed.url is no address of a web server: {shown!r}", hint=_EXAMPLE)
    standard = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, port or standard, parts.path.rstrip("/")


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, ends: float) -> bytes:
    """Read an answer to its end, in no more time and no more bytes than are allowed."""
    data = bytearray()
    try:
        while part := response.read1(1 << 16):
            data += part
            if len(data) > MOST_BYTES:
                raise TimeoutError("the answer takes too long")
            _limit(connection, ends)
        if response.length:  # the server broke off
            raise http.client.IncompleteRead(bytes(data), response.length)
    except BaseException:
        connection.close()
        raise
    response.close()  # read1 does not, and the connection takes no request before
    return bytes(data)


def _limit(connection: http.client.HTTPConnection, ends: float) -> None:
    """Let the next step of a connection take no longer than the time that is left."""
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no time is left")
    connection.timeout = left
    if connection.sock is not None:  # it is gone from the connection when the server will close it
        connection.sock.settimeout(left)


def _reason(data: bytes, phrase: str) -> str:
    """Return what a server says about a fault: most put it under `error`, some under `message`."""
    text = data.decode("utf-8", "replace")
    try:
        reason = json.loads(text)
    except ValueError:
        return " ".join(text.split())[:_REASON_LENGTH] or phrase
    for key in ("error", "message", "detail"):
        if isinstance(reason, dict) and reason.get(key):
            reason = reason[key]
    return (reason if isinstance(reason, str) else json.dumps(reason))[:_REASON_LENGTH]
