"""Hits of one section or of one document come as one; a hit tells how long its section is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord import KnowledgeBase
from concord.core.errors import BadValue
from concord.types import SectionSpan
from support.recorders import write

# A long section in several chunks, a short one, and a page that has the word once.
WORDS = "The impeller turns in its housing and moves the water along, whatever the weather may be like. "
PUMP = f"# Pump\n\n## Impeller\n\n{chr(10).join([WORDS] * 12)}\n\n## Hose\n\nA hose of the impeller leaks.\n"
LOG = (
    f"# Log\n\nThe impeller was changed in May.\n\n{chr(10).join(['Nothing else happened that day.'] * 20)}\n"
)


@pytest.fixture(params=["memory", "sqlite"])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    url = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store"
    with KnowledgeBase.open(
        store__url=url, embed__provider="hashing", ingest__chunk_tokens=64, search__diversity=1.0
    ) as made:
        write(tmp_path / "docs" / "pump.md", PUMP)
        write(tmp_path / "docs" / "log.md", LOG)
        made.add(tmp_path / "docs")
        yield made


def test_a_hit_tells_of_its_section_unless_it_is_all_of_it(kb: KnowledgeBase):
    chunks = kb.store.catalog.chunks(kb.document_named("docs/pump.md").id)
    long = [chunk for chunk in chunks if chunk.heading == ("Pump", "Impeller")]
    assert len(long) > 2
    hits = kb.search("impeller housing", mode="fts5").hits
    of_long = next(hit for hit in hits if hit.chunk.heading == ("Pump", "Impeller"))
    section = of_long.section
    assert section is not None
    assert section.heading == ("Pump", "Impeller")
    assert (section.start_line, section.end_line) == (long[0].start_line, long[-1].end_line)
    read = kb.get(of_long.citation, level="section")
    assert (read.start_line, read.end_line) == (section.start_line, section.end_line)
    assert section.tokens == pytest.approx(len(read.text) / 3, rel=0.05)
    hose = next(hit for hit in kb.search("hose leaks", mode="fts5").hits if "hose" in hit.chunk.text)
    assert hose.section is None


@pytest.mark.promise("design.sections")
def test_hits_of_a_section_come_as_one_before_the_list_is_cut(kb: KnowledgeBase):
    alone = kb.search("impeller", mode="fts5", top=3)
    assert [hit.more for hit in alone.hits] == [None] * 3
    merged = kb.search("impeller", mode="fts5", top=3, group="section")
    keys = [(hit.document.path, hit.section or hit.citation) for hit in merged.hits]
    assert len(keys) == len(set(keys)) == 3
    (long,) = (hit for hit in merged.hits if isinstance(hit.section, SectionSpan) and hit.more)
    assert long.more
    assert all(other.chunk.heading == long.chunk.heading for other in long.more)
    assert len({long.citation, *(other.citation for other in long.more)}) == 1 + len(long.more)


@pytest.mark.promise("design.documents")
def test_a_document_comes_once_with_its_passages_under_it(kb: KnowledgeBase):
    hits = kb.search("impeller", group="document").hits
    assert sorted(hit.document.path for hit in hits) == ["docs/log.md", "docs/pump.md"]
    (pump,) = (hit for hit in hits if hit.document.path == "docs/pump.md")
    assert pump.more
    assert {other.document.path for other in pump.more} == {"docs/pump.md"}
    assert [hit.rank for hit in hits] == [1, 2]
    with pytest.raises(BadValue, match="group cannot be 'chapter'"):
        kb.search("impeller", group="chapter")


def test_a_document_that_is_about_it_as_a_whole_comes_before_one_that_mentions_it(tmp_path: Path):
    settings = {"store__url": "memory://", "embed__provider": "hashing", "ingest__chunk_tokens": 64}
    with KnowledgeBase.open(**settings) as kb:
        about = "\n\n".join(
            f"Reefing the mainsail, step {n}: reef, reefing line, mainsail." for n in range(9)
        )
        aside = "\n\n".join(
            f"The engine needs oil {n} and a filter and coolant and a belt." for n in range(40)
        )
        write(tmp_path / "docs" / "about.md", about)
        write(tmp_path / "docs" / "aside.md", f"{chr(10).join(['Reefing the mainsail.'] * 10)}\n\n{aside}")
        kb.add(tmp_path / "docs")
        alone = kb.search("reefing the mainsail", mode="semantic").hits[0]
        assert alone.document.path == "docs/aside.md"
        hits = kb.search("reefing the mainsail", group="document", mode="semantic").hits
        assert [hit.document.path for hit in hits] == ["docs/about.md", "docs/aside.md"]
        assert [hit.moved_from for hit in hits] == [2, 1]


def test_kb_search_prints_files_for_pipes_and_passages_under_their_document(
    tmp_path: Path, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from concord.cli.main import main

    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "none")
    monkeypatch.setenv("KB_INGEST_CHUNK_TOKENS", "64")
    folder = str(tmp_path / "docs")
    assert main(["search", "impeller", "--in", folder, "--files"]) == 0
    assert sorted(capsys.readouterr().out.split()) == [f"{folder}/log.md", f"{folder}/pump.md"]
    assert main(["search", "impeller", "--in", folder, "--group", "document"]) == 0
    out = capsys.readouterr().out
    assert out.count(" 1. ") + out.count(" 2. ") == 2
    assert "· score " in out
    assert main(["search", "nothingofthekind", "--in", folder, "--files"]) == 1
    assert capsys.readouterr().out == ""
