"""Retrievers for other libraries, with the real libraries, which the dev extra leaves out: they are large.

pip install -e '.[langchain,llamaindex]'
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concord import Concord, KnowledgeBase
from concord.core.config import load_settings
from support.mcp_session import write_docs
from support.web_server import serving

QUERY = "where is the session token checked"


@pytest.fixture(params=["here", "on a server"])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    docs = write_docs(tmp_path / "docs")
    settings = load_settings({"embed.provider": "hashing"}, {"KB_HOME": str(tmp_path / "home")})
    with KnowledgeBase(settings) as knowledge:
        knowledge.add(docs)
        if request.param == "here":
            yield knowledge
            return
    with serving(tmp_path / "home") as url:
        yield Concord(url)


@pytest.mark.promise("I.retrievers")
@pytest.mark.filterwarnings("ignore")
def test_a_langchain_retriever_gives_citations_scores_and_whether_it_is_an_answer(kb: Any):
    pytest.importorskip("langchain_core", reason="concord-kb[langchain] is not installed")
    from concord.clients.langchain import ConcordRetriever

    best, *others = ConcordRetriever(kb=kb, top=2, options={"source": "docs"}).invoke(QUERY)
    assert best.metadata["citation"].startswith("docs/auth.md:")
    assert "session token" in best.page_content
    assert best.metadata["answerable"] in (True, False, None)
    assert len(others) <= 1
    assert all(0 <= found.metadata["score"] <= best.metadata["score"] for found in others)


@pytest.mark.promise("I.retrievers")
@pytest.mark.filterwarnings("ignore")
def test_a_llamaindex_retriever_gives_citations_scores_and_whether_it_is_an_answer(kb: Any):
    pytest.importorskip("llama_index.core", reason="concord-kb[llamaindex] is not installed")
    from llama_index.core.schema import MetadataMode

    from concord.clients.llamaindex import ConcordRetriever

    best, *others = ConcordRetriever(kb, top=2, source="docs").retrieve(QUERY)
    assert best.metadata["citation"].startswith("docs/auth.md:")
    assert best.score == best.metadata["score"]
    prompt = best.node.get_content(MetadataMode.LLM)
    assert "session token" in prompt
    assert best.metadata["citation"] in prompt
    assert best.metadata["document_id"] not in prompt
    assert len(others) <= 1
