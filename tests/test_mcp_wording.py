"""What is said for the command line, said for a model that has only tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from concord.mcp.wording import for_tools

PACKAGE = Path(__file__).parent.parent / "src" / "concord"
FACES = ("cli", "mcp")

# What no tool does: it is for a person to run, whom a model may tell.
COMMANDS_FOR_PEOPLE = (
    "feedback",
    "backfill", "backup", "calibrate", "config", "doctor", "eval", "migrate", "models", "serve",
    "list notes --json", "note --export", "note --remove ID", "remove NAME --force", "sync --watch",
)  # fmt: skip
OPTIONS_FOR_PEOPLE = {
    "--ef-search", "--force", "--fts-only", "--org", "--print", "--scope", "--store", "--to",
    "--unanswerable", "--force-reinstall", "--upgrade",
}  # fmt: skip
_COMMAND = re.compile(r"`kb ([^`]*)`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def test_only_commands_that_a_tool_stands_for_are_put_in_its_words():
    assert for_tools("none yet: `kb add PATH`") == "none yet: kb_add_source"
    assert for_tools("a longer --deadline-ms; `kb stats` tells") == "a longer deadline_ms; kb_stats tells"
    for_people = "`kb remove notes --force`, `kb sync --watch`, `kb doctor`"
    assert for_tools(for_people) == for_people


def test_a_source_to_remove_is_named_whatever_its_name_is():
    for name in ("docs", "my docs", "a-b", "it's"):
        said = for_tools(f"put it back, or `kb remove {name}`; `kb remove notes --force`")
        assert said == f"put it back, or kb_remove_source with source {name!r}; `kb remove notes --force`"


def test_nothing_is_said_to_a_model_for_which_a_tool_has_other_words():
    texts = [text for path in sorted(PACKAGE.rglob("*.py")) if not is_face(path) for text in texts_of(path)]
    told = [for_tools(text) for text in texts]
    commands = {command for text in told for command in _COMMAND.findall(text)}
    assert {one for one in commands if not one.startswith(COMMANDS_FOR_PEOPLE)} == set()
    options = {option for text in told for option in _OPTION.findall(_COMMAND.sub("", text))}
    assert options - OPTIONS_FOR_PEOPLE == set()


def is_face(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0] in FACES


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, with NAME for what is put into them."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "NAME" for part in node.values)
            yield "".join(map(str, parts))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting += ast.iter_child_nodes(node)
