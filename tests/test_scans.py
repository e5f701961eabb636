"""Scans and pictures: what they show is found and cited by page, once an engine is installed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.extract.ocr import engine
from concord.extract.pdf import PdfExtractor
from concord.extract.reader import SandboxedReader
from concord.extract.scans import ScanReader
from concord.types import silent
from support.kb_command import Kb
from support.pdf_samples import make_pdf

NOTE = ["", "", "Bleed the radiators in autumn", "", "Invoice number 20417 is paid"]
ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(engine(name) is None, reason=f"{name} is not installed"))
    for name in ("rapidocr", "tesseract")
]


def picture(lines: list[str], width: int = 1200) -> bytes:
    """What a page of these lines looks like."""
    return PdfExtractor().image(make_pdf([lines], sizes=[20] * 9), 1, width)


@pytest.fixture(params=ENGINES)
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KB_OCR_ENGINE", request.param)
    name: str = request.param
    return name


@pytest.mark.slow
def test_a_scan_and_a_picture_are_found_by_what_they_show_and_read_once(chosen: str, kb: Kb, tmp_path: Path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "scan.pdf").write_bytes(make_pdf([picture(NOTE), picture(["", "Second page of the scan"])]))
    (folder / "half.pdf").write_bytes(
        make_pdf([["A written page about ladders."], picture(["", "Shown ladder"])])
    )
    (folder / "shot.png").write_bytes(picture(["", "Password dialog"]))
    (folder / "icon.png").write_bytes(picture(["Tiny"], width=120))
    (folder / "page.md").write_text("Written words.", "utf-8")
    done = kb("add", "files", "--json").json
    assert done["skipped"] == {"no words in its pictures": 1}
    assert found(kb, "invoice 20417").startswith("files/scan.pdf:p")
    assert found(kb, "second page").startswith("files/scan.pdf:p")
    assert found(kb, "shown ladder").startswith("files/half.pdf:p")
    assert found(kb, "written page ladders").startswith("files/half.pdf:p1")
    assert found(kb, "password dialog").startswith("files/shot.png")
    documents = {document["path"]: document for document in kb("list", "files", "--json").json["documents"]}
    assert documents["files/shot.png"]["details"]["ocr"]["engine"] == chosen
    assert documents["files/shot.png"]["type"] == "image"
    assert documents["files/half.pdf"]["details"]["ocr"]["pages"] == [2]
    again = kb("sync", "--json").json["sources"][0]
    assert (again["unchanged"], again["skipped"]) == (4, {"no words in its pictures": 1})


def found(kb: Kb, query: str) -> str:
    first, *_ = kb("search", query, "--json").json["results"]
    citation: str = first["citation"]
    return citation


def test_a_passage_is_marked_where_it_was_read_on_its_page(chosen: str, tmp_path: Path):
    files, scan = SandboxedReader(), make_pdf([picture(NOTE), picture(["", "Second page of the scan"])])
    reader = ScanReader(files, chosen, str(tmp_path))
    assert reader.areas(scan, "a.pdf", 1, NOTE[4]) == []  # it was not read yet
    reader.read(scan, "a.pdf", silent)
    ((left, top, right, bottom),) = reader.areas(scan, "a.pdf", 1, NOTE[4])
    assert 0 < left < right < 1
    assert 0 < top < bottom < 0.3
    first, second = reader.areas(scan, "a.pdf", 1, f"{NOTE[2]} {NOTE[4]}\nSecond page of the scan")
    assert first[3] <= second[1] == top
    plain, marked = (files.image(scan, "a.pdf", 1, 300, areas=areas) for areas in ([], [first]))
    assert plain != marked


def test_without_an_engine_scans_are_left_out_and_read_once_there_is_one(kb: Kb, tmp_path: Path, monkeypatch):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "scan.pdf").write_bytes(make_pdf([picture(NOTE)]))
    told = kb("add", "files").out
    assert "1 no text layer (scanned)" in told
    assert "install tesseract, and sync again" in told
    if engine("auto"):
        monkeypatch.setenv("KB_OCR_ENGINE", "auto")
        assert kb("sync", "--json").json["sources"][0]["added"] == 1
