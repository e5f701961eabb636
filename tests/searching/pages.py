"""Pages to search, and knowledge bases that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concord.knowledge import KnowledgeBase
from concord.types import Answer
from support.postgres_server import fresh_org, server_url
from support.recorders import write

PAGES = {
    "git.md": "---\ntags: [tools]\n---\n# Git\n\nThe installation of git takes a minute. Install it first.\n",
    "ops/deploy.md": "---\ntags: [ops, production]\n---\n# Deploy\n\nDeploy to production on Mondays.\n",
    "ops/staging.md": "---\ntags: [ops]\n---\n# Staging\n\nDeploy to staging whenever you like.\n",
    "deploy.py": '"""Deploy the service."""\n\n\ndef deploy(target: str) -> None:\n    """Go."""\n',
    "machines.txt": "The old machine has a 386DX33 and four megabytes.\n",
}
BACKENDS = ["memory", "sqlite", "postgresql"]


def opened(backend: str, folder: Path, **options: Any) -> KnowledgeBase:
    known = {"store__url": f"sqlite://{folder}/store", "embed__provider": "hashing"}
    if backend == "memory":
        known["store__url"] = "memory://"
    if backend == "postgresql":
        known |= {"store__url": server_url(), "org": fresh_org()}
    return KnowledgeBase.open(**known | options)


def plant(folder: Path) -> Path:
    for name, text in PAGES.items():
        write(folder / name, text)
    return folder


def paths(answer: Answer) -> set[str]:
    return {hit.document.path.rpartition("/")[2] for hit in answer.hits}
