"""`kb doctor`: what is wrong is found and told, what can be is put right, and nothing else is touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.core.reports import Finding
from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from support import kb_process
from support.recorders import write
from support.small_library import opened
from test_damage import harm


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for n in range(3):
        write(tmp_path / "docs" / f"{n}.md", f"# Page {n}\n\nThe heron number {n} waits.\n")
    with opened(tmp_path) as knowledge:
        knowledge.add(tmp_path / "docs")
        knowledge.note(Note("A note about ospreys."))
        yield knowledge


def checks(findings: tuple[Finding, ...]) -> list[str]:
    """Return what was found, but for what the machine that tests run on may lack."""
    return [finding.fault for finding in findings if finding.fault not in ("disk", "memory")]


@pytest.mark.promise("doctor.finds")
def test_a_knowledge_base_in_order_has_no_findings(kb: KnowledgeBase):
    found = kb.doctor()
    assert checks(found.findings) == []
    assert found.checks == ("open", "storage", "sources", "files", "vectors", "provider", "machine")


@pytest.mark.promise("doctor.finds", "doctor.fixes")
def test_files_that_are_gone_are_ghosts_until_they_are_forgotten(kb: KnowledgeBase, tmp_path: Path):
    (tmp_path / "docs" / "1.md").unlink()
    (finding,) = kb.doctor().findings
    assert (finding.fault, "docs/1.md" in finding.message) == ("ghosts", True)
    assert kb.stats().counts.documents == 4
    found = kb.doctor(fix=True)
    assert (checks(found.findings), checks(found.fixed)) == ([], ["ghosts"])
    assert kb.stats().counts.documents == 3


@pytest.mark.promise("doctor.finds")
def test_a_source_that_cannot_be_read_is_told_of_and_keeps_its_index(kb: KnowledgeBase, tmp_path: Path):
    shutil.rmtree(tmp_path / "docs")
    found = kb.doctor(fix=True)
    (finding,) = found.findings
    assert (finding.fault, finding.is_repairable) == ("sources", False)
    assert "docs is not there any more" in finding.message
    assert kb.stats().counts.documents == 4


@pytest.mark.promise("doctor.finds", "doctor.fixes")
def test_chunks_without_vectors_get_them(kb: KnowledgeBase):
    kb.note(Note("Not embedded yet."), embed=False)
    (finding,) = kb.doctor().findings
    assert (finding.fault, "1 of 5 chunks" in finding.message) == ("embedding", True)
    assert checks(kb.doctor(fix=True).fixed) == ["embedding"]
    assert kb.stats().pending == 0


_OTHER_MODEL = "UPDATE kb_models SET identity = json_set(identity, '$[1]', 'other')"
_MODEL_THAT_IS_GONE = """
UPDATE kb_models SET recipe = json_set(recipe, '$."embed.provider"', 'onnx', '$."embed.model"', '/nowhere')"""


@pytest.mark.promise("doctor.finds")
def test_vectors_of_another_model_are_told_of_and_left_alone(kb: KnowledgeBase, tmp_path: Path):
    kb.close()
    harm(tmp_path / "store" / "default.db", _OTHER_MODEL)
    with opened(tmp_path) as other:
        (finding,) = other.doctor(fix=True).findings
        assert (finding.fault, finding.is_repairable) == ("model", False)
        assert other.stats().counts.vectors == 4
    with opened(tmp_path, embed__provider="none") as without:
        assert checks(without.doctor().findings) == ["model"]


@pytest.mark.promise("doctor.finds")
def test_a_provider_that_does_not_answer_is_a_finding_and_stops_no_other_check(
    kb: KnowledgeBase, tmp_path: Path
):
    kb.note(Note("Not embedded yet."), embed=False)
    (tmp_path / "docs" / "1.md").unlink()
    kb.close()
    harm(tmp_path / "store" / "default.db", _MODEL_THAT_IS_GONE)
    with opened(tmp_path) as without:
        assert checks(without.doctor().findings) == ["ghosts", "embedding", "provider"]
        found = without.doctor(fix=True)
        assert (checks(found.findings), checks(found.fixed)) == (["embedding", "provider"], ["ghosts"])


@pytest.mark.promise("doctor.finds")
@pytest.mark.parametrize(
    "content", [b"this is no database, whatever its name says", b"SQLite format 3\0" * 100]
)
def test_a_store_that_does_not_open_is_a_finding_with_what_to_do(tmp_path: Path, content: bytes):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "default.db").write_bytes(content)
    with opened(tmp_path) as broken:
        (finding,) = (finding for finding in broken.doctor(fix=True).findings if finding.fault == "store")
        assert not finding.is_repairable
        assert "backup" in finding.hint
    assert (tmp_path / "store" / "default.db").read_bytes() == content


@pytest.mark.promise("doctor.finds", "doctor.fixes")
def test_the_command_exits_1_on_findings_and_0_once_they_are_fixed(tmp_path: Path):
    environment = kb_process.environment(tmp_path / "home")
    write(tmp_path / "docs" / "a.md", "# A\n\nfirst\n")
    write(tmp_path / "docs" / "b.md", "# B\n\nsecond\n")
    kb_process.run("add", tmp_path / "docs", env=environment)
    (tmp_path / "docs" / "b.md").unlink()
    status, out, _ = kb_process.run("doctor", "--json", env=environment)
    told = json.loads(out)
    assert (status, told["healthy"], "ghosts" in {finding["check"] for finding in told["findings"]}) == (
        1,
        False,
        True,
    )
    _, out, _ = kb_process.run("doctor", "--fix", env=environment)
    assert out.startswith("fixed: 1 documents whose file is gone: docs/b.md")
    _, out, _ = kb_process.run("doctor", "--json", env=environment)
    assert "ghosts" not in {finding["check"] for finding in json.loads(out)["findings"]}
