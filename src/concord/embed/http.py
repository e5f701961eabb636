"""A model server over HTTP, with a bound on time, on tries and on what is read.

What can succeed later is tried again: a refused or dropped connection, 429 and 5xx. What cannot is not: any
other 4xx, a redirect, an answer that is no JSON, and whatever has used up its time.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from concord.core.errors import BadValue, EmbedderDown

MOST_BYTES = 64 << 20  # of an answer; ten vectors of 4,096 numbers take 1 MB
FIRST_PAUSE_S = 0.1  # before the second try; it doubles
_LIMITS = httpx2.Limits(max_keepalive_connections=4, keepalive_expiry=60)
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
        self._url = _checked(url)
        self._timeout_s = timeout_s
        self._start = start  # a hint how to start it
        key = key.strip()  # of the line end that files and shells add to it
        if not (key.isascii() and key.isprintable()):
            raise BadValue("embed.key holds characters that no key has", hint="check how it was pasted")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = self._opened()
        self.name = f"{name} at {'/'.join(self._url.split('/')[:3])}"

    def ask(self, path: str, body: Mapping[str, Any], *, tries: int = 1) -> Any:
        """Return what the server answers, within the time allowed for all tries.

        Raises:
            Refused: it answers that it will not.
            EmbedderDown: it does not answer, or not in time (then because of a timeout), or nonsense.
        """
        ends = time.monotonic() + self._timeout_s
        pause = FIRST_PAUSE_S
        while True:
            tries -= 1
            try:
                return self._try(path, body, ends)
            except httpx2.TimeoutException as fault:
                raise EmbedderDown(
                    f"{self.name} did not answer within {self._timeout_s:g} s",
                    hint="it may be loading its model: try again, or raise embed.timeout_s",
                ) from fault
            except Refused as fault:
                may_pass = fault.status >= httpx2.codes.INTERNAL_SERVER_ERROR or fault.status in _TRY_AGAIN
                if not may_pass or not tries or time.monotonic() + pause >= ends:
                    raise
            except httpx2.TransportError as fault:
                if not tries or time.monotonic() + pause >= ends:
                    why = str(fault).rpartition("] ")[2] or type(fault).__name__
                    raise EmbedderDown(f"{self.name} does not answer: {why}", hint=self._start) from fault
            time.sleep(pause)
            pause *= 2

    def close(self) -> None:
        """Close the connections; the next request opens a new one."""
        closed, self._client = self._client, self._opened()
        closed.close()

    def _opened(self) -> httpx2.Client:
        # What the environment says of proxies is not asked: a key must go nowhere else.
        trusted = ssl.create_default_context() if self._url.startswith("https") else False
        return httpx2.Client(headers=self._headers, limits=_LIMITS, trust_env=False, verify=trusted)

    def _try(self, path: str, body: Mapping[str, Any], ends: float) -> Any:
        data = bytearray()
        left = max(0.001, ends - time.monotonic())
        with self._client.stream("POST", self._url + path, json=body, timeout=left) as response:
            for part in response.iter_bytes():
                data += part
                if len(data) > MOST_BYTES or time.monotonic() > ends:
                    raise httpx2.ReadTimeout("the answer takes too long")
        if response.status_code != httpx2.codes.OK:
            raise Refused(response.status_code, _reason(bytes(data)) or response.reason_phrase)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as fault:
            raise EmbedderDown(f"{self.name} answers with what is no JSON", hint=self._start) from fault


def _checked(url: str) -> str:
    """Return an address without a slash at its end."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # as of a port that is no number
        is_one = False
    shown = url.rpartition("@")[2]  # what is before it may be a password
    if not is_one:
        raise BadValue(f"embed.url is no address of a web server: {shown!r}", hint=_EXAMPLE)
    if parts.username or parts.password:
        raise BadValue("embed.url must not hold a password", hint="give it as embed.key")
    return url.rstrip("/")


def _reason(data: bytes) -> str:
    """Return what a server says about a fault: most put it under `error`, some under `message`."""
    text = data.decode("utf-8", "replace")
    try:
        reason = json.loads(text)
    except (ValueError, RecursionError):
        reason = " ".join(text.split())
    for key in ("error", "message", "detail"):
        if isinstance(reason, dict) and reason.get(key):
            reason = reason[key]
    return (reason if isinstance(reason, str) else json.dumps(reason))[:_REASON_LENGTH]
