"""The JSON API over real HTTP: what a program gets is what the command line's `--json` gives."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from concord import Concord
from concord.core import plugins
from concord.core.config import load_settings
from concord.core.errors import BadValue, NotAllowed, NotFound, Unavailable
from concord.knowledge import KnowledgeBase
from concord.wire import answer_to_json, slice_to_json
from support.gated_embedder import GatedEmbedder
from support.mcp_session import BOUND_S, write_docs
from support.pdf_samples import make_bomb, make_pdf
from support.web_server import ask, serving

API = "/api/v1"


UNHURRIED_MS = 60_000  # for the reader: what it does not read in time depends on the machine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web").resolve()


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    """A server with a few documents, for the tests that only ask."""
    docs = write_docs(place / "docs")
    (docs / "paper.pdf").write_bytes(make_pdf([["Walruses sleep on ice."], ["They eat clams."]]))
    (docs / "bomb.pdf").write_bytes(make_bomb(10))
    with serving(place / "home", reader__budget_ms=UNHURRIED_MS) as served:
        assert ask(served, f"POST {API}/sources?wait=60", {"path": str(docs)}).json["added"] == 5
        yield served


def got(url: str, path: str, **headers: str) -> Any:
    answer = ask(url, f"GET {API}{path}", **headers)
    assert answer.status == 200, answer.body
    return answer.json


def events(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream by name."""
    parts = [part.split("\n") for part in text.split("\n\n") if part.startswith("event: ")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


TIMES = {"search_time_ms", "timings_ms"}  # which differ from run to run


@pytest.mark.promise("http.same-json")
def test_a_search_is_answered_as_the_library_answers_it(url: str, place: Path):
    given = {"embed.provider": "hashing", "reader.budget_ms": UNHURRIED_MS}
    settings = load_settings(given, {"KB_HOME": str(place / "home")})
    query = "where is the session token checked"
    with KnowledgeBase(settings) as kb:
        known = json.loads(json.dumps(answer_to_json(kb.search(query, top=2, explain=True), explain=True)))
        passage = json.loads(json.dumps(slice_to_json(kb.get(known["results"][0]["citation"], context=1))))
    told = got(url, f"/search?query={quote(query)}&limit=2&explain=true")
    assert {k: v for k, v in told.items() if k not in TIMES} == {
        k: v for k, v in known.items() if k not in TIMES
    }
    assert got(url, f"/passages?citation={told['results'][0]['citation']}&context=1") == passage


@pytest.mark.promise("http.progressive")
def test_what_words_find_comes_before_the_whole_answer(url: str):
    def searches() -> int:
        return int(got(url, "/stats")["latencies_ms"].get("search", {"calls": 0})["calls"])

    before = searches()
    answer = ask(url, f"GET {API}/search?query=session+token", Accept="text/event-stream")
    (first, words), (second, whole) = events(answer.body.decode())
    assert searches() == before + 1  # once it is done, with the time that it took
    assert (first, second) == ("words", "answer")
    assert words["confidence"] == "fts_only"
    assert whole["results"][0]["path"] == words["results"][0]["path"] == "docs/auth.md"
    assert ask(url, f"GET {API}/search?query=x&ef_search=0", Accept="text/event-stream").status == 400


def test_a_document_is_read_by_its_id_in_pages_and_by_its_headings(url: str):
    (document,) = (row for row in got(url, "/documents?source=docs")["documents"] if "auth" in row["path"])
    whole = got(url, f"/documents/{document['document_id']}")
    assert "session token" in whole["text"]
    assert "refresh token" in whole["text"]
    assert got(url, f"/documents/{document['document_id']}?max_tokens=500")["next_cursor"] is None
    outline = got(url, f"/documents/{document['document_id']}/outline")
    assert [(part["heading"][-1], part["start_line"], part["level"]) for part in outline["sections"]] == [
        ("Login", 1, 2),
        ("Logout", 7, 2),
    ]
    read = got(url, f"/passages?citation={outline['sections'][1]['citation']}")
    assert "revokes" in read["text"]
    both = got(url, "/passages?citations=docs/auth.md:1-2&citations=docs/none.md&max_tokens=1000")
    assert (both["path"], [row["citation"] for row in both["unread"]]) == ("docs/auth.md", ["docs/none.md"])


@pytest.mark.promise("http.pages")
def test_a_page_of_a_pdf_is_an_image_of_the_width_that_was_asked_for(url: str):
    document = got(url, "/passages?citation=docs/paper.pdf")["document_id"]
    image = ask(url, f"GET {API}/documents/{document}/pages/2.png?width=306")
    assert image.headers["content-type"] == "image/png"
    assert struct.unpack(">II", image.body[16:24]) == (306, 396)
    assert image.body != ask(url, f"GET {API}/documents/{document}/pages/1.png?width=306").body
    for path, status in (("3.png", 404), ("0.png", 400), ("1.png?width=9", 400)):
        assert ask(url, f"GET {API}/documents/{document}/pages/{path}").status == status
    markdown = got(url, "/passages?citation=docs/auth.md")["document_id"]
    assert ask(url, f"GET {API}/documents/{markdown}/pages/1.png").status == 404


@pytest.mark.promise("http.pages")
def test_a_page_that_takes_its_reader_down_leaves_the_server_standing(url: str, place: Path):
    document = got(url, "/passages?citation=docs/bomb.pdf")["document_id"]
    (place / "docs" / "bomb.pdf").write_bytes(make_bomb(20_000_000))
    answer = ask(url, f"GET {API}/documents/{document}/pages/1.png")
    assert (answer.status, answer.json["error"] in ("Damaged", "TooLarge")) == (422, True)
    assert ask(url, "GET /health").status == 200


@pytest.mark.promise("http.pages")
def test_an_image_is_not_drawn_from_what_a_link_leads_to(tmp_path: Path):
    docs = tmp_path / "docs"
    docs.mkdir()
    pdf = make_pdf([["A walrus."]])
    (docs / "paper.pdf").write_bytes(pdf)
    (tmp_path / "secret.pdf").write_bytes(pdf)
    with serving(tmp_path / "home") as url:
        Concord(url).add(docs)
        document = got(url, "/passages?citation=docs/paper.pdf")["document_id"]
        (docs / "paper.pdf").unlink()
        assert ask(url, f"GET {API}/documents/{document}/pages/1.png").status == 404
        (docs / "paper.pdf").symlink_to(tmp_path / "secret.pdf")
        assert ask(url, f"GET {API}/documents/{document}/pages/1.png").status == 422


@pytest.mark.promise("http.jobs")
def test_long_work_is_a_job_that_can_be_watched_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(plugins.TABLES["embedders"], "gated", "support.gated_embedder:GatedEmbedder")
    GatedEmbedder.close_gates(working=True)
    docs = write_docs(tmp_path / "docs")
    with serving(tmp_path / "home", embed__provider="gated") as url:
        begun = ask(url, f"POST {API}/sources", {"path": str(docs)})
        assert (begun.status, begun.headers["location"]) == (202, f"{API}/jobs/{begun.json['id']}")
        assert GatedEmbedder.working.reached.wait(BOUND_S)
        stream = http.client.HTTPConnection(urlsplit(url).netloc, timeout=BOUND_S)
        stream.request("GET", f"{API}/events")
        answer = stream.getresponse()
        ((name, told),) = events((answer.readline() + answer.readline() + b"\n").decode())
        assert (name, [job["state"] for job in told["jobs"]]) == ("jobs", ["running"])
        assert ask(url, f"POST {API}/sources?wait=0.1", {"path": str(docs)}).json["state"] == "waiting"
        stopped = ask(url, f"DELETE {API}{begun.headers['location'].removeprefix(API)}")
        assert stopped.status == 200
        GatedEmbedder.working.open.set()
        while got(url, f"/jobs/{begun.json['id']}")["state"] == "running":
            pass
        ended = got(url, f"/jobs/{begun.json['id']}")
        assert (ended["state"], ended["error"]["error"]) == ("stopped", "Unavailable")
        stream.close()
        assert ask(url, f"GET {API}/jobs/none").status == 404


@pytest.mark.promise("http.errors")
@pytest.mark.parametrize(
    ("request_line", "body", "status", "error"),
    [
        ("GET /search", None, 400, "BadValue"),
        ("GET /search?query=x&within=/etc", None, 400, "BadValue"),
        ("GET /documents/none", None, 404, "NotFound"),
        ("PUT /stats", None, 405, "MethodNotAllowed"),
        ("POST /sources", {}, 400, "BadValue"),
        ("POST /notes", b"{", 400, "BadValue"),
        ("POST /notes", b'{"content": "\\ud800"}', 400, "BadValue"),
        ("POST /notes", {"content": 3}, 400, "BadValue"),
        ("POST /notes", {"content": "x" * 100_001}, 413, "TooLarge"),
        ("DELETE /sources/none", None, 404, "NotFound"),
    ],
)
def test_every_error_has_one_shape_and_the_right_status(
    url: str, request_line: str, body: Any, status: int, error: str
):
    method, path = request_line.split(" ")
    answer = ask(url, f"{method} {API}{path}", body)
    assert (answer.status, answer.json["error"]) == (status, error)
    assert set(answer.json) == {"error", "message", "hint"}
    assert answer.json["message"]


@pytest.mark.promise("http.errors")
def test_what_is_no_json_is_told_so_and_hints_name_requests(url: str):
    answer = ask(url, f"POST {API}/notes", b"content=x", Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 415
    assert "GET /api/v1/sources" in ask(url, f"GET {API}/passages?citation=zzz").json["hint"]


@pytest.mark.promise("http.client")
def test_a_program_asks_a_server_as_it_asks_the_library(tmp_path: Path):
    docs, steps = write_docs(tmp_path / "docs"), []
    with serving(tmp_path / "home") as url:
        kb = Concord(url)
        added = kb.add(docs, tags=("manual",), progress=lambda stage, done, total: steps.append(stage))
        assert (added["added"], bool(steps)) == (3, True)
        answer = kb.search("session token", top=1, tags=["manual"], mode="fts5", since=0.5, explain=False)
        (hit,) = answer["results"]
        assert "session token" in kb.get(hit["citation"], whole=True)["text"]
        assert kb.explain("session token", hit["citation"])["rank"] == 1
        assert kb.feedback(hit["citation"], "good", query="session token")["opinion"] == "good"
        old = kb.note("The walrus is called Tusk.", tags=["zoo"])
        new = kb.note("The walrus is called Ivory.", supersedes=old["document_id"])
        kb.edit_note(new["document_id"], content="The walrus is called Ebony.")
        assert "Ebony" in kb.search("walrus", mode="fts5")["results"][0]["snippet"]
        brief = kb.note("A passing thought.")
        assert kb.remove_note(brief["path"])["document_id"] == brief["document_id"]
        assert kb.links(hit["path"])["document_id"] == kb.links(hit["document_id"])["document_id"]
        assert hit["path"] not in [row["path"] for row in kb.related(hit["path"])["related"]]
        assert [report["unchanged"] for report in kb.sync("docs")] == [3]
        assert {source["source"] for source in kb.sources()} == {"docs", "notes"}
        assert kb.stats()["documents"] == 5
        assert kb.remove("docs")["documents_deleted"] == 3
        for wrong, refused in (
            (lambda: kb.get("docs/none.md"), NotFound),
            (lambda: kb.add("/etc"), NotAllowed),
            (lambda: kb.search("x", limit=0), BadValue),
            (lambda: kb.remove("notes"), Exception),
        ):
            with pytest.raises(refused):
                wrong()
    with pytest.raises(Unavailable, match="does not answer"):
        kb.stats()
    for wrong_url in ("localhost:8420", "http://", "http://host:port", "ftp://host", "http://[x"):
        with pytest.raises(BadValue, match="no address"):
            Concord(wrong_url)
