"""Folders to walk, and what is found in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from concord.files.walk import Found, walk


def plant(root: Path, *paths: str, text: str = "words") -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def found(root: Path, patterns: Sequence[str] = (), *, max_bytes: int = 1000) -> list[str]:
    return [f.relative for f in walk(root, patterns, max_bytes=max_bytes) if isinstance(f, Found)]
