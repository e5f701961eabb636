"""Put a bundle for Claude Desktop together: a folder of a manifest, the wheel, and what starts it.

`make bundle` has it validated and packed by the tool of those who defined the format.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from concord import __version__
from concord.mcp.table import INSTRUCTIONS, TOOLS

HERE = Path(__file__).parent
PROJECT = """\
[project]
name = "concord-bundle"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["concord-kb"]

[tool.uv.sources]
concord-kb = {{ path = "{wheel}" }}
"""


def manifest() -> dict[str, Any]:
    """Return what Claude Desktop is told of the bundle."""
    folders = {
        "type": "directory",
        "title": "Folders",
        "description": "Claude may index these folders, and what is in them.",
        "multiple": True,
        "required": False,
        "default": ["${DOCUMENTS}"],
    }
    run = ["run", "--project", "${__dirname}", "${__dirname}/server.py", "${user_config.folders}"]
    return {
        "manifest_version": "0.4",
        "name": "concord",
        "display_name": "Concord",
        "version": __version__,
        "description": "Search your own documents, code and notes, with citations and how far to trust them.",
        "long_description": INSTRUCTIONS,
        "author": {"name": "The Concord authors"},
        "license": "Apache-2.0",
        "keywords": ["search", "knowledge base", "documents", "notes"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {"command": "uv", "args": run, "env": {}},
        },
        "tools": [{"name": row.name, "description": row.title} for row in TOOLS],
        "user_config": {"folders": folders},
        "compatibility": {"platforms": ["linux", "darwin"], "runtimes": {"python": ">=3.11"}},
    }


def put_together(wheel: Path, folder: Path) -> None:
    """Write the bundle's files into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest(), indent=2) + "\n", encoding="utf-8")
    project = PROJECT.format(version=__version__, wheel=wheel.name)
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    shutil.copy(HERE / "bundle" / "server.py", folder)
    shutil.copy(wheel, folder)


if __name__ == "__main__":
    put_together(Path(sys.argv[1]), Path(sys.argv[2]))
