"""Promises and tests name each other: neither stands alone."""

from __future__ import annotations

import ast
from pathlib import Path

from requirements import PROMISES

TESTS = Path(__file__).parent


def named_promises() -> dict[str, list[str]]:
    """Return promise id → tests that name it, by reading the test files."""
    named: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for promise in _promises(node):
                    named.setdefault(promise, []).append(f"{path.name}::{node.name}")
    return named


def _promises(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    marks = [d for d in test.decorator_list if isinstance(d, ast.Call)]
    return [
        str(argument.value)
        for mark in marks
        if isinstance(mark.func, ast.Attribute) and mark.func.attr == "promise"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    ]


def test_every_promise_has_a_test():
    assert sorted(set(PROMISES) - set(named_promises())) == []


def test_every_promise_that_a_test_names_exists():
    strangers = {name: tests for name, tests in named_promises().items() if name not in PROMISES}
    assert strangers == {}
