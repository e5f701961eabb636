"""A server of embeddings that answers nonsense: words answer, no wrong vector is kept, later all is well."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.types import ChunkId, Vector
from contract.stored import vectors_of
from support.embedding_server import serving
from support.recorders import write
from support.small_library import UNHURRIED, secluded

TOPICS = ("heron", "boiler", "ledger", "compass", "violin", "glacier", "harbour", "orchard")
SYNCS = 6  # while the server is at fault
NUMBER = re.compile(rb"-?\d+\.\d+(?:e-?\d+)?")
RAW = re.compile(r"\w+(Error|Exception)\b")  # of Python, not a sentence
FAULTS: tuple[Callable[[bytes], bytes], ...] = (
    lambda body: NUMBER.sub(b"0.5, 0.5", body, count=1),  # a dimension too many, of one vector
    lambda body: NUMBER.sub(b"NaN", body, count=1),
    lambda body: NUMBER.sub(b"-Infinity", body, count=1),
    lambda body: NUMBER.sub(b"1e999", body, count=1),
    lambda body: NUMBER.sub(b"9" * 400, body, count=1),
    lambda body: NUMBER.sub(b"9" * 5_000, body, count=1),
    lambda body: NUMBER.sub(b"0.0", body),
    lambda body: NUMBER.sub(b'"0.5"', body, count=1),
    lambda body: NUMBER.sub(b"[0.5]", body, count=1),
    lambda body: body.replace(b"[[", b"[[], [", 1),  # a vector too many
    lambda body: body[: len(body) // 2],
    lambda body: b"",
    lambda body: b"[" * 100_000,
    lambda body: b'{"embeddings":' * 50_000,
    lambda body: b"null",
    lambda body: body.replace(b'"index": 0', b'"index": 1e999'),
    lambda body: b'{"embeddings": null}',
    lambda body: b'{"embeddings": {"a": 1}}',
    lambda body: b"\xff\xfe" + body,
    lambda body: b"<html>not now</html>",
)


def vectors(kb: KnowledgeBase) -> dict[ChunkId, Vector]:
    if kb.store.catalog.snapshot().active is None:
        return {}
    return vectors_of(kb.store).fetch(range(1, 100))


def opened(home: Path, url: str) -> KnowledgeBase:
    """Open one whose vectors come from a server, in the dialect that its address tells."""
    provider = "openai" if url.endswith("/v1") else "ollama"
    given: dict[str, Any] = {"embed__url": url, "embed__batch": 3}
    given |= {"embed__provider": provider, "embed__model": "granite", **UNHURRIED}
    return secluded(home, f"sqlite://{home}/store", **given)


@pytest.mark.promise("torture.faulty-servers")
@pytest.mark.campaign(whole=400, part=6)
def test_a_server_that_answers_nonsense_costs_meaning_only(
    seed: int, home: Path, counted: Callable[[int, int], None]
):
    draw, garbled, well = random.Random(seed), [0], [0]
    share, own = draw.choice((0.2, 0.6, 1.0)), FAULTS[seed % len(FAULTS)]

    def garble(body: bytes) -> bytes:
        well[0] -= 1
        if well[0] >= 0 or draw.random() > share:
            return body
        made = draw.choice((own, draw.choice(FAULTS)))(body)
        garbled[0] += made != body
        return made

    for topic in TOPICS:
        write(
            home / "docs" / f"{topic}.md",
            f"# The {topic}\n\nThe {topic} waits.\n\n## Old\n\nIt was {topic}.\n",
        )
    with serving() as server:
        url = server.url + draw.choice(("", "/v1"))
        with opened(home / "honest", url) as kb:
            kb.add(home / "docs")
            wanted = vectors(kb)
        assert len(wanted) >= len(TOPICS)
        server.behaviour.garble = garble
        with opened(home / "faulty", url) as kb:
            for report in (kb.add(home / "docs"), *(kb.sync()[0] for _ in range(SYNCS))):
                well[0] = draw.randrange(5)
                assert (report.pending > 0) == bool(report.degraded)
                assert not RAW.search(report.degraded or "")
            for topic in TOPICS[:4]:
                answer = kb.search(topic)
                assert topic in answer.hits[0].document.path
                assert not any(RAW.search(each.reason) for each in answer.degraded)
            assert vectors(kb).items() <= wanted.items()
            server.behaviour.garble = None
            (report,) = kb.sync()
            assert (report.pending, report.degraded) == (0, None)
            assert vectors(kb) == wanted
    counted(garbled[0], garbled[0])
