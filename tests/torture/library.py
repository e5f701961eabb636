"""A small knowledge base to harm, and all that it is asked before and after."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

from concord import KnowledgeBase, Note
from concord.core.errors import KBError
from concord.types import Hit
from support.recorders import write
from support.small_library import UNHURRIED, secluded

TOPICS = ("heron", "boiler", "ledger", "compass", "violin", "glacier", "harbour", "orchard")
WORDS = ("stands", "measures", "keeps", "returns", "opens", "carries", "Monday", "report", "quietly", "slow")
QUERIES: tuple[tuple[str, dict[str, Any]], ...] = (
    *((topic, {"mode": "fts5"}) for topic in TOPICS),
    *((f"what does the {topic} carry on Monday?", {}) for topic in TOPICS[:4]),
    ("heron_report_3", {}),
    ("quietly returns", {"mode": "semantic"}),
    ("report", {"tags": ("kept",)}),
    ("ledger", {"type": "code"}),
    ("note about the glacier", {"path": "notes/"}),
)
NOTES = 6


def opened(folder: Path) -> KnowledgeBase:
    """Open what lies in a folder, as a new process would."""
    return secluded(folder, f"sqlite://{folder}/store", **UNHURRIED)


def database(folder: Path) -> Path:
    return folder / "store" / "default.db"


def build(folder: Path) -> None:
    """Make a knowledge base of some files of several types and some notes, and close it."""
    draw = random.Random(7)
    for topic in TOPICS:
        write(folder / "docs" / f"{topic}.md", _page(topic, draw))
    write(folder / "docs" / "ledger.py", f"def heron_report_3():\n    return '{_sentence('ledger', draw)}'\n")
    with opened(folder) as kb:
        kb.add(folder / "docs", tags=("kept",))
        for n in range(NOTES):
            kb.note(note(TOPICS[n], n))


def note(topic: str, n: int) -> Note:
    """Return one of the notes."""
    return Note(f"A note about the {topic}: call number {n}. Grüße, ひ.", tags=("call",), details={"n": n})


def _page(topic: str, draw: random.Random) -> str:
    parts = (f"## Part {n}\n\n" + " ".join(_sentence(topic, draw) for _ in range(20)) for n in range(3))
    return f"# The {topic}\n\n" + "\n\n".join(parts) + "\n"


def _sentence(topic: str, draw: random.Random) -> str:
    return f"The {topic} {' '.join(draw.choices(WORDS, k=7))} {draw.randrange(1000)}."


def copied(library: Path, folder: Path) -> Path:
    """Copy a knowledge base into a folder that is not there yet; sources stay where they were."""
    shutil.copytree(library / "store", folder / "store")
    return folder


def answers(kb: KnowledgeBase) -> dict[str, Any]:
    """Return all that a knowledge base answers; where it raises an error with a hint, the class of that."""
    asked: dict[str, Any] = {f"{text} {given}": _found(kb, text, given) for text, given in QUERIES}
    asked["documents"] = _or_error(lambda: [document.path for document in kb.documents()])
    asked["notes"] = _or_error(lambda: list(kb.notes()))
    asked["texts"] = _or_error(lambda: [kb.get(document.id, whole=True).text for document in kb.documents()])
    return asked


def _found(kb: KnowledgeBase, text: str, given: dict[str, Any]) -> Any:
    def find() -> Any:
        answer = kb.search(text, top=50, **given)
        reasons = [each.reason for each in answer.degraded]
        raw = [reason for reason in reasons if re.match(r"\w+(Error|Iteration): ", reason)]
        assert not raw, f"no sentence for people: {raw}"
        return sorted(map(_shown, answer.hits)), reasons

    return _or_error(find)


def _shown(hit: Hit) -> tuple[float, str, str, str]:
    """Return what is shown of a hit, the best first: of those that are as good, the order is by age."""
    return -round(hit.score, 4), hit.citation, hit.chunk.text, hit.document.title


def _or_error(ask: Any) -> Any:
    try:
        return ask()
    except KBError as fault:
        if not fault.hint:
            raise
        return type(fault).__name__


def complaints(kb: KnowledgeBase, *, fix: bool = False) -> list[str]:
    """Return what `kb doctor` finds wrong with what is stored; each finding says what to do."""
    findings = kb.doctor(fix=fix).findings
    assert all(finding.hint for finding in findings)
    return [f"{finding.fault}: {finding.message}" for finding in findings if finding.fault != "disk"]
