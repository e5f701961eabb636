"""A knowledge base that a server keeps: the methods of `KnowledgeBase`, over HTTP, with the server's JSON."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from concord.core import errors
from concord.core.errors import BadValue, KBError, Unavailable
from concord.core.protocols import Progress
from concord.core.values import iso_time
from concord.text.json_safe import JsonObject
from concord.types import Level, Opinion, silent

API = "/api/v1"
LOOK_S = 0.25  # how often a job is looked at
_ADDRESS = re.compile(r"https?://(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(:\d{1,5})?(/[^?#]*)?", re.IGNORECASE)


class Concord:
    """The knowledge base of one organisation, on a server: `Concord("http://127.0.0.1:8420", token=…)`."""

    def __init__(self, url: str, *, token: str = "", timeout_s: float = 60.0) -> None:
        """Connect to nothing yet."""
        if not _ADDRESS.fullmatch(url):
            raise BadValue(f"{url!r} is no address of a server", hint="such as http://127.0.0.1:8420")
        parts = urlsplit(url)
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._place, self._timeout_s = parts.netloc, timeout_s
        self._path = parts.path.rstrip("/").removesuffix("/mcp") + API
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}

    def search(self, text: str, **options: Any) -> JsonObject:
        """Search; options are those of `KnowledgeBase.search`."""
        return self._get("/search", query=text, **_as_sent(options))

    def explain(self, text: str, reference: str, **options: Any) -> JsonObject:
        """Say why a passage ranks where it does for a query, or why not at all."""
        return self._get("/explain", query=text, reference=reference, **_as_sent(options))

    def get(
        self, *references: str, context: int = 0, whole: bool = False, level: Level | None = None
    ) -> JsonObject:
        """Read a citation, a document or a chunk; or several, or a glob over paths."""
        named = {"level": level} if level else {}
        return self._get("/passages", citations=references, context=context, whole=whole, **named)

    def add(self, path: str | os.PathLike[str], *, progress: Progress = silent, **options: Any) -> JsonObject:
        """Index a folder or file of the server's disk, and wait; options are those of `KnowledgeBase.add`."""
        return self._done("POST", "/sources", {"path": os.fspath(path), **options}, progress)

    def sync(
        self, names: Sequence[str] = (), *, progress: Progress = silent, **more: Any
    ) -> list[JsonObject]:
        """Bring sources up to date, all or those named, and wait; `more` is whether to embed."""
        named = [names] if isinstance(names, str) else names
        paths = [f"/sources/{quote(name, safe='')}/sync" for name in named] or ["/sync"]
        done = [self._done("POST", path, more, progress) for path in paths]
        return [report for reports in done for report in reports["sources"]]

    def sources(self) -> list[JsonObject]:
        """Return every source, with how much of it is stored."""
        return list(self._get("/sources")["sources"])

    def remove(self, name: str, *, force: bool = False, progress: Progress = silent) -> JsonObject:
        """Delete a source from the index."""
        return self._done("DELETE", f"/sources/{quote(name, safe='')}?force={force:d}", None, progress)

    def note(self, content: str, *, supersedes: str | None = None, **more: Any) -> JsonObject:
        """Keep a note; `more` is its title, tags, details and fields."""
        return self._ask("POST", "/notes", {"content": content, "supersedes": supersedes, **more})

    def edit_note(self, reference: str, **changes: Any) -> JsonObject:
        """Change a note in place: its content, title, tags, details or fields."""
        return self._ask("PATCH", f"/notes/{quote(reference, safe='')}", changes)

    def remove_note(self, reference: str) -> JsonObject:
        """Delete a note for good."""
        return self._ask("DELETE", f"/notes/{quote(reference, safe='')}")

    def links(self, reference: str | None = None) -> JsonObject:
        """Return what a document points to and what points to it; of none, all links that are broken."""
        return self._get(f"/documents/{quote(reference, safe='')}/links" if reference else "/links")

    def related(self, reference: str, *, limit: int = 10) -> JsonObject:
        """Return the documents nearest to one, and why."""
        return self._get(f"/documents/{quote(reference, safe='')}/related", limit=limit)

    def feedback(self, reference: str, opinion: Opinion, *, query: str = "") -> JsonObject:
        """Keep an opinion, good or bad, on a result for a query."""
        return self._ask("POST", "/feedback", {"reference": reference, "opinion": opinion, "query": query})

    def stats(self) -> JsonObject:
        """Return the state of the knowledge base."""
        return self._get("/stats")

    def _get(self, path: str, **options: Any) -> JsonObject:
        given = {n: int(v) if isinstance(v, bool) else v for n, v in options.items() if v is not None}
        return self._ask("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path)

    def _done(self, method: str, path: str, body: Any, progress: Progress) -> JsonObject:
        """Start a job, and wait for what comes of it."""
        job = self._ask(method, path, body)
        while job["state"] in ("waiting", "running"):
            progress(job["stage"], job["done"], job["total"])
            time.sleep(LOOK_S)
            job = self._ask("GET", f"/jobs/{job['id']}")
        if job["error"]:
            raise _fault(job["error"])
        return dict(job["result"])

    def _ask(self, method: str, path: str, body: Any = None) -> JsonObject:
        text = None if body is None else json.dumps(body)
        connection = self._kind(self._place, timeout=self._timeout_s)
        try:
            connection.request(method, self._path + path, text, self._headers)
            answer = connection.getresponse()
            wire: JsonObject = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise Unavailable(f"the server does not answer: {fault}", hint="is it running?") from fault
        finally:
            connection.close()
        if answer.status >= 400:
            raise _fault(wire)
        return wire


def _as_sent(options: Mapping[str, Any]) -> JsonObject:
    """Return the options of a search under the names that a server has for them, moments as dates."""
    moments = {n: iso_time(options[n]) for n in ("since", "until") if isinstance(options.get(n), float)}
    return {"limit" if name == "top" else name: value for name, value in {**options, **moments}.items()}


def _fault(wire: Mapping[str, Any]) -> KBError:
    """Return an error of the server as the error that it would be here."""
    kind = getattr(errors, str(wire.get("error")), KBError)
    kind = kind if isinstance(kind, type) and issubclass(kind, KBError) else KBError
    return kind(str(wire.get("message")), hint=wire.get("hint"))
