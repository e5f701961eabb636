"""`make shape` counts what it says it counts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def shape() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shape", ROOT / "scripts" / "shape.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_code_is_what_is_left_without_docstrings_comments_and_blank_lines(shape: ModuleType, tmp_path: Path):
    lines = ['"""What is', 'here."""', "", "# why", "TEXT = '''a", "# b'''  # c", "def f():", "    return 1"]
    path = tmp_path / "a.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert shape.measured(path, tmp_path) == ("a.py", 8, 4, [(2, "a.py:f")])


@pytest.mark.slow
def test_a_search_runs_functions_and_a_second_one_fewer(shape: ModuleType):
    calls = shape.traces()
    assert "cli/search.py" in {name for name, _ in calls["search"]}
    assert 0 < len(calls["search again"]) < len(calls["search"])
    assert calls["add"] - calls["search"]
