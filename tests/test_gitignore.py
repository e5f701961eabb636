"""Which files are ignored: rules as git understands them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.files.ignore import Rules, parse, parse_all
from support.walked import found, plant


def test_gitignore_files_hold_for_what_is_below_them(tmp_path: Path):
    plant(
        tmp_path, "a.log", "keep.log", "sub/b.log", "sub/c.txt", "sub/deep/c.txt", "out/x.md", "sub/out/y.md"
    )
    plant(tmp_path, ".gitignore", text="*.log\n!keep.log\n/out/\n")
    plant(tmp_path, "sub/.gitignore", text="c.txt\n!b.log\n")
    assert found(tmp_path) == ["keep.log", "sub/b.log", "sub/out/y.md"]


def test_kbignore_has_the_last_word(tmp_path: Path):
    plant(tmp_path, "a.md", "private.md", "generated/doc.md")
    plant(tmp_path, ".gitignore", text="generated/\n")
    plant(tmp_path, ".kbignore", text="private.md\n!generated/\n")
    assert found(tmp_path) == ["a.md", "generated/doc.md"]


def test_the_repository_around_a_folder_has_a_say_unless_it_ignores_the_folder_itself(tmp_path: Path):
    plant(tmp_path, ".gitignore", text="docs/_out/\n*.draft\ncache/\n")
    plant(tmp_path, "docs/a.md", "docs/b.draft", "docs/_out/a.md", "cache/c.md", "cache/d.draft")
    (tmp_path / ".git" / "info").mkdir(parents=True)
    plant(tmp_path, ".git/info/exclude", text="secretly.md\n")
    plant(tmp_path, "docs/secretly.md")
    assert found(tmp_path / "docs") == ["a.md"]
    assert found(tmp_path / "cache") == ["c.md", "d.draft"]


def test_without_a_repository_the_folders_above_have_no_say(tmp_path: Path):
    plant(tmp_path, ".gitignore", text="*.md\n")
    plant(tmp_path, "docs/a.md")
    assert found(tmp_path / "docs") == ["a.md"]


def test_what_tools_install_cache_and_lock_is_left_out(tmp_path: Path):
    plant(tmp_path, "a.md", "node_modules/x/README.md", ".git/HEAD", "__pycache__/a.txt", ".venv/lib/a.py")
    plant(tmp_path, "package-lock.json", "uv.lock", "app.min.js", ".DS_Store", "draft.md~")
    assert found(tmp_path) == ["a.md"]


def test_drawings_are_looked_at_for_their_words(tmp_path: Path):
    plant(tmp_path, "flow.svg", "diagram.mmd")
    assert found(tmp_path) == ["diagram.mmd", "flow.svg"]


def test_a_user_can_ask_for_what_is_left_out_by_kbignore_or_pattern(tmp_path: Path):
    plant(tmp_path, "node_modules/x/README.md", "app.min.js", "package.json")
    assert found(tmp_path) == ["package.json"]
    assert found(tmp_path, ["node_modules/**/*.md"]) == ["node_modules/x/README.md"]
    assert found(tmp_path, ["*.js"]) == []
    plant(tmp_path, ".kbignore", text="!node_modules/\n!*.min.js\n")
    assert found(tmp_path) == ["app.min.js", "package.json", "node_modules/x/README.md"]


def test_an_allow_list_does_not_take_back_what_nobody_wants(tmp_path: Path):
    plant(tmp_path, "a.md", "b.txt", "sub/c.md", "node_modules/d.md", ".git/e.md")
    plant(tmp_path, ".gitignore", text="*\n!*/\n!*.md\n")
    plant(tmp_path, ".kbignore", text="!*/\n")
    assert found(tmp_path) == ["a.md", "sub/c.md"]


LINES = [
    "a",
    "b/",
    "/a",
    "!a",
    "*.md",
    "!*.md",
    "a/**",
    "**/b",
    "a/*/c",
    "!a/",
    "*",
    "!*/",
    "[ab]",
    "?",
    "a*",
    "*b*",
]
PATHS = ["a", "b", "x.md", "a.md", "ab"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
@settings(max_examples=25)
@given(
    st.lists(st.lists(st.sampled_from(PATHS), min_size=1, max_size=4), min_size=1, max_size=8),
    st.dictionaries(st.sampled_from(["", "a", "a/b", "b"]), st.lists(st.sampled_from(LINES), max_size=5)),
)
def test_a_walk_finds_what_git_would_add(files: list[list[str]], ignores: dict[str, list[str]]):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for parts in files:
            file = root.joinpath(*parts)
            if not file.exists() and all(not above.is_file() for above in file.parents):
                plant(root, "/".join(parts))
        for folder, lines in ignores.items():
            if (root / folder).is_dir():
                (root / folder / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
        ours = found(root)
        assert sorted(ours) == sorted(_untracked(root))


def _untracked(root: Path) -> list[str]:
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard", "-z"], check=True, capture_output=True
    )
    return [path for path in listed.stdout.decode().split("\0") if path and not path.endswith(".gitignore")]


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=300)
def test_any_line_is_a_pattern_or_nothing_and_judges_any_path(line: str, path: str):
    pattern = parse(line)
    spoken = Rules(parse_all([line])).verdict(path.rpartition("/")[2], path, True)
    assert spoken in (None, pattern and pattern.ignores)


def test_what_is_in_a_folder_does_not_stand_for_the_folder():
    rules = Rules(parse_all(["a/*", "b/**"]))
    assert [rules.verdict(name, name, True) for name in "ab"] == [None, None]
    assert [rules.verdict("c", f"{name}/c", True) for name in "ab"] == [True, True]
