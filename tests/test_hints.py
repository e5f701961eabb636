"""Hints are data: nothing below the interfaces but the list of actions names a command."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from concord.cli.main import main as kb
from concord.core.errors import Action, Hint, worded
from concord.mcp.table import TOOLS
from concord.mcp.words import WORDS as TOOL_WORDS
from concord.web.words import WORDS as REQUESTS

COMMANDS: Mapping[Action, str] = {}  # an action is a command, unless an interface has another word for it
PACKAGE = Path(__file__).parent.parent / "src" / "concord"
INTERFACES = ("cli", "mcp", "web", "clients")

# A command, an option or a variable of the environment.
NAMED = re.compile(r"`kb\b|\bkb [a-z]+\b|(?<![\w-])--[a-z]|KB_[A-Z]")
OPTION = re.compile(r"--[a-z-]+")
READS_THE_ENVIRONMENT = {"core/config.py": {"KB_HOME", "KB_TEST_", "KB_BENCH_"}}
OTHER_PROGRAMS_OPTIONS = {"extract/ocr.py": {"--list-langs"}}  # tesseract is given it; no user is told of it


def below() -> list[Path]:
    """Return the modules that no interface is made of."""
    return [
        path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in INTERFACES
    ]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_text_below_the_interfaces_names_a_command_an_option_or_a_variable():
    for path in below():
        module = path.relative_to(PACKAGE).as_posix()
        allowed = READS_THE_ENVIRONMENT.get(module, set()) | OTHER_PROGRAMS_OPTIONS.get(module, set())
        assert {text for text in texts_of(path) if NAMED.search(text)} - allowed == set(), path


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, and no actions."""
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef) and node.name == Action.__name__:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting += ast.iter_child_nodes(node)


def test_every_action_is_named_by_some_hint():
    source = "".join(path.read_text(encoding="utf-8") for path in below())
    placeholders = set(re.findall(r"\{(\w+)\}", source))
    assert [
        action
        for action in Action
        if action.name.lower() not in placeholders and f"Hint(Action.{action.name}" not in source
    ] == []


def test_a_hint_has_the_arguments_of_every_action_that_it_names():
    for action, text, args in (hint for path in below() for hint in hints_of(path)):
        given = [name.upper() for name in re.findall(r"\{(\w+)\}", text)]
        named = [Action[name] for name in given if name in Action.__members__] or [action]
        for words in (COMMANDS, TOOL_WORDS, REQUESTS):
            assert {field for name in named for field in fields_of(words.get(name, name))} <= args, text


def hints_of(path: Path) -> Iterator[tuple[Action, str, set[str]]]:
    """Yield the action, the text and the names of arguments of each hint that a module makes."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Hint" and node.args:
            action = ast.unparse(node.args[0]).rpartition(".")[2]
            if action in Action.__members__:
                text = "".join(texts_below(node.args[1])) if len(node.args) > 1 else ""
                yield Action[action], text, {str(keyword.arg) for keyword in node.keywords}


def texts_below(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def fields_of(words: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(words) if field}


def test_tools_and_arguments_that_a_model_is_told_of_are_there():
    tools = {tool.name: tool for tool in TOOLS}
    told = {name for words in TOOL_WORDS.values() for name in re.findall(r"\bkb_\w+", words)}
    assert told <= set(tools)
    arguments = {name for tool in tools.values() for name in tool.names}
    assert {"deadline_ms", "include_superseded", "limit", "mode", "name"} <= arguments


def test_commands_that_a_person_is_told_of_are_there_with_their_options(capsys: pytest.CaptureFixture[str]):
    for told in re.findall(r"`kb ([^`]+)`", " ".join(Action)):
        command = re.match(r"(?:models )?[a-z]+", told)
        assert command is not None
        assert kb([*command[0].split(), "--help"]) == 0
        assert set(OPTION.findall(told)) <= set(OPTION.findall(capsys.readouterr().out)), told


def test_the_same_hint_names_a_command_or_a_tool():
    hint = Hint(Action.REMOVE, "put it back, or {remove}; its index is kept", source="it's")
    assert worded(hint, COMMANDS) == "put it back, or `kb remove it's`; its index is kept"
    assert (
        worded(hint, TOOL_WORDS)
        == """put it back, or kb_remove_source with source "it's"; its index is kept"""
    )
    assert hint == worded(hint, COMMANDS)
    assert (hint.action, hint.args) == (Action.REMOVE, {"source": "it's"})
