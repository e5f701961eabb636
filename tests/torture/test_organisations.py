"""Two organisations on one server and one store, asked for anything: neither hears a word of the other's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from concord.web.guard import API
from concord.web.keys import add_token
from support.postgres_server import fresh_org, server_url
from support.recorders import write
from support.small_library import UNHURRIED
from support.web_server import Answer, ask, serving

STEPS = 50  # requests in one case
MARKERS = ("velmorant", "quondrix")  # one is in all that an organisation keeps, and in the names of it
NEARLY = ("velmorent", "velm*", "quondrx", "quon*", "kept heron", '"the heron"', "boiler -ledger", "qondrix?")
ID = re.compile(rb'"(?:document_id|id)": ?"([\w:.-]+)"')
WITH_ID = (
    *(
        "GET /documents/{}",
        "GET /documents/{}/outline",
        "GET /documents/{}/links",
        "GET /documents/{}/related",
    ),
    *("GET /passages?citation={}", "GET /rendered?citation={}", "GET /explain?query=heron&reference={}"),
    *("PATCH /notes/{}", "DELETE /notes/{}", "GET /jobs/{}", "DELETE /jobs/{}", "POST /feedback"),
)
WITHOUT = (
    *(
        "GET /sources",
        "GET /documents",
        "GET /links",
        "GET /stats",
        "GET /models",
        "GET /eval",
        "GET /doctor",
    ),
    *("GET /jobs", "GET /session", "POST /sync?wait=60", "POST /sources?wait=60", "POST /notes"),
    *("GET /passages?citation=**", "GET /documents?source=nobody", "GET /nowhere"),
)


class Member:
    """Somebody of one organisation, who knows ids of both."""

    def __init__(self, url: str, token: str, marker: str, docs: Path) -> None:
        self.url, self.token, self.marker, self.docs = url, token, marker, docs
        self.ids: set[str] = set()

    def ask(self, request: str, body: Any = None) -> Answer:
        answer = ask(self.url, request, body, Authorization=f"Bearer {self.token}")
        found = {each.decode() for each in ID.findall(answer.body)}
        self.ids |= {each for each in found if not any(marker in each for marker in MARKERS)}
        return answer

    def body(self, request: str, draw: random.Random, named: str) -> Any:
        text = f"The {self.marker} of {draw.choice(('heron', 'boiler', 'ledger'))} is kept."
        return {
            "POST /sources": {"path": str(self.docs)},
            "POST /notes": {"content": f"{text} Call {draw.randrange(999)}.", "title": f"On {self.marker}"},
            "PATCH /notes": {"content": text},
            "POST /feedback": {"reference": named, "opinion": "good", "query": "heron"},
            "POST /sync": {},
        }.get("/".join(request.partition("?")[0].split("/")[:2]))

    def step(self, draw: random.Random, other: Member) -> bool:
        """Ask for something; return whether all is well with the answer."""
        kind, named = draw.random(), ""
        if kind < 0.35:
            asked = {"query": draw.choice(NEARLY), "mode": draw.choice(("auto", "fts5", "semantic"))}
            request = f"GET /search?{urlencode({**asked, 'explain': draw.choice(('true', 'false'))})}"
        elif kind < 0.7 and (self.ids | other.ids):
            named = draw.choice(sorted(self.ids | other.ids))
            request = draw.choice(WITH_ID).format(named)
        else:
            request = draw.choice(WITHOUT)
        theirs = other.ids - self.ids
        method, _, path = request.partition(" ")
        answer = self.ask(f"{method} {API}{path}", self.body(request, draw, named))
        told = repr(answer.headers).encode() + answer.body
        is_refused = named not in theirs or answer.status >= 400
        return other.marker.encode() not in told.lower() and is_refused and not theirs & self.ids


@pytest.mark.promise("torture.organisations")
@pytest.mark.campaign(whole=200, part=2)
def test_nothing_of_the_others_is_in_any_reply(seed: int, home: Path, counted: Callable[[int, int], None]):
    draw, store = random.Random(seed), server_url() if seed % 4 == 1 else f"sqlite://{home}/store"
    docs = [home / f"{marker}-docs" for marker in MARKERS]
    for folder, marker in zip(docs, MARKERS, strict=True):
        for name in ("heron", "boiler"):
            text = f"# The {name} of {marker}\n\nThe heron of {marker} stands. See [it]({marker}.md).\n"
            write(folder / f"{marker}-{name}.md", text)
    tokens = [add_token(home / "tokens", fresh_org()) for _ in MARKERS]
    settings: dict[str, Any] = {"store__url": store, "reader__enabled": False, **UNHURRIED}
    with serving(home / "home", tokens=home / "tokens", **settings) as url:
        members = [Member(url, *given) for given in zip(tokens, MARKERS, docs, strict=True)]
        for member in members:
            assert member.ask(f"POST {API}/sources?wait=60", {"path": str(member.docs)}).status == 200
            assert member.marker in member.ask(f"GET {API}/search?query=heron").body.decode()
        pairs = [draw.sample(members, 2) for _ in range(STEPS)]
        well = [asking.step(draw, other) for asking, other in pairs]
        assert all(member.marker in member.ask(f"GET {API}/sources").body.decode() for member in members)
    counted(STEPS, sum(well))
    assert all(well)
