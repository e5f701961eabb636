"""Jupyter notebooks: cells as Markdown and code with what they printed.

Pictures, widgets and HTML that a cell showed are left out; a file that is no notebook after all is data.
Citations count the lines of the Markdown, which is what is shown, not those of the JSON around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode
from concord.extract.markdown_writer import fence_around
from concord.extract.text import MAX_TITLE, first_heading, readable
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_LANGUAGE = re.compile(r"[\w+#-]{1,30}")


class NotebookExtractor(Extractor):
    """Reads .ipynb; the title is its metadata's, else its first heading."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        notebook = _parsed(decode(data))
        if not isinstance(notebook.get("cells"), list):
            return Extracted(clean(readable(data)), "data")
        metadata = _mapping(notebook.get("metadata"))
        language = _language(metadata)
        blocks = (block for cell in notebook["cells"] for block in _blocks(_mapping(cell), language))
        text = clean(without_encoded("\n\n".join(filter(None, blocks))))
        title = str(metadata.get("title") or "")[:MAX_TITLE] or first_heading(text)
        return Extracted(text, "notebook", title)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return _mapping(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return {}


def _language(metadata: dict[str, Any]) -> str:
    """Return what the code is written in, as a fence names it."""
    kernel, info = (_mapping(metadata.get(part)) for part in ("kernelspec", "language_info"))
    names = (kernel.get("language"), info.get("name"))
    return next((name for name in names if isinstance(name, str) and _LANGUAGE.fullmatch(name)), "")


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    """Yield what a cell says, and then what it printed."""
    source = _text(cell.get("source"))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield _fenced(source, language)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        yield _fenced(_printed(_mapping(output)))


def _printed(output: dict[str, Any]) -> str:
    """Return the text of an output; what stands in for a picture is none."""
    if "ename" in output:
        return "\n".join(filter(None, (_text(output["ename"]), _text(output.get("evalue")))))
    shown = _mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in shown):
        return ""
    return _text(shown.get("text/plain") or output.get("text"))


def _text(value: Any) -> str:
    """Return a text, which notebooks keep as one string or as a list of its parts, as a terminal shows it.

    What follows a carriage return replaces what was written on the line before it.
    """
    parts = value if isinstance(value, list) else [value]
    text = "".join(part for part in parts if isinstance(part, str)).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return "\n".join(lines).strip("\n").rstrip()


def _fenced(code: str, language: str = "") -> str:
    fence = fence_around(code)
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
